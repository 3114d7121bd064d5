"""Ends warm children that nobody has needed for a while: an idle service is to take little memory."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol

REST_SECONDS = 600.0
"""A child's start costs a core two or three seconds, and a child a hundred megabytes. Not tuned."""
_LOOK_SECONDS = 30.0


class Restful(Protocol):
    def rest(self, seconds: float) -> None:
        """End the process, if nobody has needed it for so long; it starts again when it is needed."""


class Rests:
    """Looks after children in a thread that begins with the first one."""

    def __init__(self, seconds: float = REST_SECONDS) -> None:
        self._seconds = seconds
        self._children: weakref.WeakSet[Restful] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def look_after(self, child: Restful) -> None:
        with self._lock:
            self._children.add(child)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rests", daemon=True)
                self._thread.start()

    def look(self) -> None:
        """Ask all of them to rest, whose time has come."""
        with self._lock:
            children = list(self._children)
        for child in children:
            child.rest(self._seconds)

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            self.look()


RESTS = Rests()
"""Those of this process."""
