"""Whether processes that start get on: a busy machine may take minutes for what takes seconds on an idle one."""

from __future__ import annotations

import contextlib
import time

import psutil

_SHARE = 1 / 60
"""Of a core, that processes use which get on. Those that wait for one that died use less: Ray's, some 1 %."""
_WINDOW_SECONDS = 30.0
"""That they have for it. Not tuned."""
_LEAST_SECONDS, _MOST_SECONDS = 60.0, 600.0
_LOOKS = 15
"""A window: to look costs milliseconds, as all processes of the machine are read."""


class Progress:
    """Of the processes that this process has started, and of those that they have started."""

    def __init__(
        self, least: float = _LEAST_SECONDS, most: float = _MOST_SECONDS, window: float = _WINDOW_SECONDS
    ) -> None:
        """Processes get on for the first ``least`` seconds, and for no more than ``most``.

        Between, they must use processor time in each ``window``.
        """
        self._began = self._last = time.monotonic()
        self._least, self._most, self._window = least, most, window
        self._used = _used()
        self._looked = self._began

    def goes_on(self) -> bool:
        """Return whether the processes get on. To be called several times a window."""
        now = time.monotonic()
        if now - self._looked > self._window / _LOOKS:
            self._looked, used = now, _used()
            # What ended since took its time with it.
            if used < self._used or used - self._used > _SHARE * self._window:
                self._used, self._last = used, now
        if now - self._began < self._least:
            return True
        return now - self._last < self._window and now - self._began < self._most


def _used() -> float:
    """Return the processor time of all descendants that live, in seconds."""
    total = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system
    return total
