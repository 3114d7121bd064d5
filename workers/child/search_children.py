"""Warm children for the searches of jobs, started when they are needed and kept for the next job."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

from workers.child.walled_search import search_child
from workers.child.warm_child import WarmChild
from workers.walls.levels import Level


class SearchChildren:
    """Thread-safe. ``level`` is that of the walls around each child."""

    def __init__(self, level: Level) -> None:
        self._level = level
        self._idle = [search_child(level)]
        self._lock = threading.Lock()

    def start(self) -> None:
        """Begin to start a child that no search uses, so that the next job does not wait for its imports."""
        with self._lock:
            for child in self._idle[-1:]:
                threading.Thread(target=child.start, name="first search child", daemon=True).start()

    @contextlib.contextmanager
    def one(self) -> Iterator[WarmChild]:
        """Use a child for one search, until the context ends."""
        with self._lock:
            child = self._idle.pop() if self._idle else search_child(self._level)
        try:
            child.start()
            yield child
        finally:
            with self._lock:
                self._idle.append(child)
