"""Warm children that calls use one after another, in the order of the calls."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from service.problems import ProblemError
from workers.child.warm_child import WarmChild

_LOOK_SECONDS = 0.05
"""Between two looks of a call that waits at whether its caller is still there. Not tuned."""


@dataclass(frozen=True, slots=True)
class Load:
    """Children, those that work, and calls that wait for one."""

    children: int
    working: int
    waiting: int


class Pool:
    """Thread-safe. ``waiting`` calls may wait for a child, each for so many ``seconds``."""

    def __init__(self, children: Sequence[WarmChild], waiting: int, seconds: float) -> None:
        self._children = len(children)
        self._idle = list(children)
        self._waiting = waiting
        self._seconds = seconds
        self._line: deque[object] = deque()
        self._changed = threading.Condition()

    def load(self) -> Load:
        """Return how busy the children are now."""
        with self._changed:
            return Load(self._children, self._children - len(self._idle), len(self._line))

    @contextlib.contextmanager
    def child(self, stay: Callable[[], None]) -> Iterator[WarmChild]:
        """Use a child until the context ends. ``stay`` is called during the wait, and its exceptions end the wait.

        Raises ProblemError (503) if too many calls wait already, or if this one waits for too long: each of them holds
        one of the threads that answer requests, and reads must find some free.
        """
        child = self._take(stay)
        try:
            yield child
        finally:
            with self._changed:
                self._idle.append(child)
                self._changed.notify_all()

    def _take(self, stay: Callable[[], None]) -> WarmChild:
        place = object()
        until = time.monotonic() + self._seconds
        with self._changed:
            if len(self._line) >= self._waiting and not self._idle:
                raise _busy()
            self._line.append(place)
            try:
                while True:
                    stay()
                    if self._idle and self._line[0] is place:
                        return self._idle.pop()
                    if time.monotonic() >= until:
                        raise _busy()
                    self._changed.wait(_LOOK_SECONDS)
            finally:
                self._line.remove(place)
                self._changed.notify_all()


def _busy() -> ProblemError:
    detail = "The service is busy with other requests. Nothing was stored. Send the request again in a few seconds."
    return ProblemError(503, "busy", detail, headers={"Retry-After": "2"})
