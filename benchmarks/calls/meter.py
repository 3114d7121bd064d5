"""The processor time of calls of the database: this process's, and that of the server if there is one."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import psutil
import sqlalchemy

from db.engine.connections import create_engine

Figures = dict[str, float]
T = TypeVar("T")


class Meter:
    """Measures calls on the database at ``url``."""

    def __init__(self, url: str) -> None:
        self._server = server(url)

    def repeated(self, call: Callable[[], object], repeats: int) -> Figures:
        """Return what `measured` returns, for a call without an argument."""
        return self.measured(lambda _: call(), range(repeats))

    def measured(self, call: Callable[[T], object], arguments: Iterable[T]) -> Figures:
        """Return the mean milliseconds of processor time of a call, here and in the server, and the longest wall time.

        It is called with each of the ``arguments``. The first call does not count: statements are compiled in it.
        """
        first, *others = arguments
        call(first)
        here, there, longest = time.process_time(), cpu_seconds(self._server), 0.0
        for argument in others:
            started = time.perf_counter()
            call(argument)
            longest = max(longest, time.perf_counter() - started)
        here, there = time.process_time() - here, cpu_seconds(self._server) - there
        per_call = 1e3 / len(others)
        return {"cpu_ms": (here + there) * per_call, "server_ms": there * per_call, "longest_ms": longest * 1e3}


def server(url: str) -> psutil.Process | None:
    """Return the first process of a database's server; None for a file."""
    engine = create_engine(url)
    try:
        if engine.dialect.name == "sqlite":
            return None
        with engine.connect() as connection:
            pid = connection.execute(sqlalchemy.text("SELECT pg_backend_pid()")).scalar_one()
        return psutil.Process(psutil.Process(pid).ppid())
    finally:
        engine.dispose()


def cpu_seconds(process: psutil.Process | None) -> float:
    """Return how long a process and its children have run, to a nanosecond; those that have ended are left out."""
    if process is None:
        return 0.0
    return sum(own_seconds(each.pid) for each in (process, *process.children(recursive=True)))


def own_seconds(pid: int) -> float:
    """Return how long the threads of a process have run, to a nanosecond."""
    total = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        with contextlib.suppress(OSError):
            total += int(file.read_text().split()[0])
    return total / 1e9
