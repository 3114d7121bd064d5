"""Detect whether the machine runs at full speed.

A hypervisor may place all virtual cores of an idle machine on one real core, for a second or more. Parallel programs
then take up to twice as long, and nothing inside the machine shows it except a kernel of known speed.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_SLACK = 1.3
"""Ratio to the kernel's best time that still counts as full speed; not tuned."""
_PATIENCE_SECONDS = 2.0
"""Not tuned."""


class FullSpeed:
    """Compare a kernel with its known speed.

    Args:
        kernel: Runs for less than a millisecond on all threads and returns its seconds.
        best: Seconds of the kernel at full speed.
    """

    def __init__(self, kernel: Callable[[], float], best: float) -> None:
        self._kernel = kernel
        self._slowest = _SLACK * best

    def now(self) -> bool:
        return min(self._kernel(), self._kernel()) < self._slowest

    def wait(self) -> None:
        """Wait for full speed, at most `_PATIENCE_SECONDS`. The hypervisor spreads cores that are busy."""
        until = time.perf_counter() + _PATIENCE_SECONDS
        while not self.now() and time.perf_counter() < until:
            pass
