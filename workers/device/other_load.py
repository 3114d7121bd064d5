"""The processor time that other processes of the host take, for which a race waits."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tuner.types import Waited

QUIET_CORES = 0.3
"""What others may take of all cores together: Ray and the service take some hundredths. Not tuned."""
MOST_SECONDS = 5.0
"""Of all waits of a race. Not tuned."""
_LOOK_SECONDS = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)
"""Places of idle time and of waiting for disks in a line of /proc/stat; guests (8, 9) are counted as users, too."""


class OtherLoad:
    """Waits for the host's other processes, while the caller's own rest.

    ``waited`` says how long it did, and for how many cores at the last look; None if it never had to.
    """

    def __init__(self) -> None:
        self.waited: Waited | None = None

    def wait(self) -> None:
        """Return as soon as the others rest, or after `MOST_SECONDS` in all."""
        while True:
            before = self.waited.seconds if self.waited is not None else 0.0
            if before >= MOST_SECONDS:
                return
            cores = busy_cores(_LOOK_SECONDS)
            if cores <= QUIET_CORES:
                return
            self.waited = Waited(before + _LOOK_SECONDS, cores)


def busy_cores(seconds: float) -> float:
    """Return how many cores of the host are busy, on average over some seconds in which the caller rests."""
    before, began = _busy_seconds(), time.monotonic()
    time.sleep(seconds)
    return (_busy_seconds() - before) / (time.monotonic() - began)


def _busy_seconds() -> float:
    _, *ticks = Path("/proc/stat").read_text().partition("\n")[0].split()
    return sum(int(each) for place, each in enumerate(ticks[:8]) if place not in _IDLE) / _TICKS
