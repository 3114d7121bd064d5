"""Stop warm children that have not been used for a while, so that an idle service needs little memory."""

from __future__ import annotations

import threading
import time
import weakref
from typing import Protocol

REST_SECONDS = 600.0
"""A child's start costs a core two or three seconds, and a child a hundred megabytes. Not tuned."""
UNUSED_SECONDS = 120.0
"""For a child that was started for whoever comes soon, and nobody has come. Not tuned."""
_LOOK_SECONDS = 30.0


class CanRest(Protocol):
    def rest(self, seconds: float, unused_seconds: float) -> None:
        """Stop the process if it has not been used for this time, or since its start for the other one.

        It starts again when it is needed.
        """


class Rests:
    """Checks the children in a thread that starts with the first child."""

    def __init__(self, seconds: float = REST_SECONDS, unused_seconds: float = UNUSED_SECONDS) -> None:
        self._seconds = seconds
        self._unused_seconds = unused_seconds
        self._children: weakref.WeakSet[CanRest] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None

    def look_after(self, child: CanRest) -> None:
        with self._lock:
            self._children.add(child)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="rests", daemon=True)
                self._thread.start()

    def look(self) -> None:
        """Ask all children to rest that have been idle for long enough."""
        with self._lock:
            children = list(self._children)
        for child in children:
            child.rest(self._seconds, self._unused_seconds)

    def _run(self) -> None:
        while True:
            time.sleep(_LOOK_SECONDS)
            self.look()


RESTS = Rests()
"""Those of this process."""
