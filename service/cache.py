"""Answers that take long to make and never change: the latest are kept in memory."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Holds values up to a size in all; the one that was asked for longest ago goes first. Thread-safe.

    ``size`` measures a value, in the unit of ``limit``. Two calls for the same at once may both make it.
    """

    def __init__(self, limit: int, size: Callable[[Value], int]) -> None:
        self._limit = limit
        self._size = size
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._used = 0
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        """Whether the value of ``key`` is there; it may be gone a moment later."""
        with self._lock:
            return key in self._kept

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value of ``key``, made if it is not there; what ``make`` raises is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key]
        made = make()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = made
                self._used += self._size(made)
            while self._used > self._limit:
                _, oldest = self._kept.popitem(last=False)
                self._used -= self._size(oldest)
        return made
