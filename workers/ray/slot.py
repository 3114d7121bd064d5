"""The running call of an actor, and the use of a measuring slot, which other threads read."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Iterator

from workers.child.warm_child import WarmChild
from workers.messages import MeasurerStatus
from workers.walls.levels import Level


class Turn:
    """Whose call an actor works on, with its children; another thread may stop it."""

    def __init__(self, *children: WarmChild) -> None:
        self._children = children
        self._lock = threading.Lock()
        self.caller: str | None = None
        self.stopped = False

    @contextlib.contextmanager
    def of(self, caller: str) -> Iterator[None]:
        with self._lock:
            self.caller, self.stopped = caller, False
        try:
            yield
        finally:
            with self._lock:
                self.caller = None

    def stop(self, caller: str) -> None:
        """End what the children do for a caller. Does nothing if it is another's turn by now."""
        with self._lock:
            if self.caller == caller:
                self.stopped = True
                for child in self._children:
                    child.stop()


class Slot:
    """The use of a measuring slot; another thread reads the status."""

    def __init__(self) -> None:
        self.trial: str | None = None
        self._since: float | None = None
        self._seconds = 0.0

    @contextlib.contextmanager
    def used(self) -> Iterator[None]:
        self._since = time.time()
        try:
            yield
        finally:
            self._seconds += time.time() - self._since
            self._since = self.trial = None

    def status(self, sandbox: Level, system: str) -> MeasurerStatus:
        since = self._since
        running = 0.0 if since is None else time.time() - since
        return MeasurerStatus(os.getpid(), sandbox, system, since, self.trial, self._seconds + running)
