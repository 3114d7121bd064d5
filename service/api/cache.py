"""An in-memory cache for results that are expensive to compute and never change."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Cache(Generic[Value]):
    """Keeps values up to a total size, and removes the least recently used value first. Thread-safe.

    ``size`` measures a value, in the unit of ``limit``. Two concurrent calls for a key may both compute its value.
    """

    def __init__(self, limit: int, size: Callable[[Value], int]) -> None:
        self._limit = limit
        self._size = size
        self._kept: OrderedDict[Hashable, Value] = OrderedDict()
        self._used = 0
        self._lock = threading.Lock()

    def __contains__(self, key: Hashable) -> bool:
        """Return whether the value of ``key`` is there; it may be gone a moment later."""
        with self._lock:
            return key in self._kept

    def get(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """Return the value of ``key``, computed by ``make`` if it is not cached. Exceptions are not cached."""
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
