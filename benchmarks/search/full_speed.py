"""Whether the machine runs at full speed just now.

A hypervisor may put the virtual cores of a machine that was idle onto one real core, for a second and more: parallel
programs then take up to twice as long, and no figure inside the machine tells. A kernel of known speed does.
"""

from __future__ import annotations

import time
from collections.abc import Callable

_SLACK = 1.3
_PATIENCE_SECONDS = 2.0


class FullSpeed:
    """``kernel`` runs for less than a millisecond on all threads and returns its seconds, ``best`` at full speed."""

    def __init__(self, kernel: Callable[[], float], best: float) -> None:
        self._kernel = kernel
        self._slowest = _SLACK * best

    def now(self) -> bool:
        return min(self._kernel(), self._kernel()) < self._slowest

    def wait(self) -> None:
        """Until it is there or patience ends; the waiting keeps all cores busy, so that they are taken apart."""
        until = time.perf_counter() + _PATIENCE_SECONDS
        while not self.now() and time.perf_counter() < until:
            pass
