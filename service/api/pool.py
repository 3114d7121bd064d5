"""Warm children that calls use one after another, in the order of the calls; no caller has all of them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter, deque
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


@dataclass(eq=False, frozen=True, slots=True)
class _Place:
    """A place in the line of those that wait."""

    caller: str | None


class Pool:
    """Thread-safe. ``waiting`` calls may wait for a child, each for so many ``seconds``.

    One caller has all children but one at most, so that nobody can keep all others waiting. Work of the service itself
    has no caller (None).
    """

    def __init__(self, children: Sequence[WarmChild], waiting: int, seconds: float) -> None:
        self._children = len(children)
        self._idle = list(children)
        self._waiting = waiting
        self._seconds = seconds
        self._line: deque[_Place] = deque()
        self._each = max(1, len(children) - 1)
        self._working: Counter[str | None] = Counter()
        self._changed = threading.Condition()

    def load(self) -> Load:
        """Return how busy the children are now."""
        with self._changed:
            return Load(self._children, self._children - len(self._idle), len(self._line))

    @contextlib.contextmanager
    def child(self, caller: str | None, stay: Callable[[], None]) -> Iterator[WarmChild]:
        """Use a child until the context ends. ``stay`` is called during the wait, and its exceptions end the wait.

        Raises ProblemError (503) if too many calls wait already, or if this one waits for too long: each of them holds
        one of the threads that answer requests, and reads must find some free.
        """
        child = self._take(_Place(caller), stay)
        try:
            yield child
        finally:
            with self._changed:
                self._idle.append(child)
                self._working[caller] -= 1
                self._working += Counter()  # without those at zero
                self._changed.notify_all()

    def _take(self, place: _Place, stay: Callable[[], None]) -> WarmChild:
        until = time.monotonic() + self._seconds
        with self._changed:
            if len(self._line) >= self._waiting and not self._idle:
                raise _busy()
            self._line.append(place)
            try:
                while True:
                    stay()
                    if self._idle and self._next() is place:
                        self._working[place.caller] += 1
                        return self._idle.pop()
                    if time.monotonic() >= until:
                        raise _busy()
                    self._changed.wait(_LOOK_SECONDS)
            finally:
                self._line.remove(place)
                self._changed.notify_all()

    def _next(self) -> _Place | None:
        """Return the first place whose caller may have a child more."""
        free = (place for place in self._line if place.caller is None or self._working[place.caller] < self._each)
        return next(free, None)


def _busy() -> ProblemError:
    detail = "The service is busy with other requests. Nothing was stored. Send the request again in a few seconds."
    return ProblemError(503, "busy", detail, headers={"Retry-After": "2"})
