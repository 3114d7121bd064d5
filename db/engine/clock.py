"""The time of a database server: leases and liveness use this one clock, whatever the clocks of the processes say."""

from __future__ import annotations

import threading
import time
from datetime import datetime, timedelta

from sqlalchemy import Engine, text

from db.engine.outages import translated

_MEASURE_SECONDS = 10.0
"""Between two looks at the server's clock. Two clocks drift apart by less than a millisecond in that time."""


class ServerClock:
    """Tells a PostgreSQL server's time: asked about every `_MEASURE_SECONDS`, and counted on by this machine between.

    Asking takes a connection. Who has one already waits for no other by a call, because `look` was called before; else
    all connections could be with threads that wait for one more. Threads may share it. A call and `look` raise
    `db.errors.Unavailable` if they have to ask and the server does not answer.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._lock = threading.Lock()
        self._asked: tuple[float, datetime] | None = None
        """When the server was asked, by this machine's clock, and what it said."""

    def __call__(self) -> datetime:
        then, time_then = self._asked or self.look()
        return time_then + timedelta(seconds=max(0.0, elapsed() - then))

    def look(self) -> tuple[float, datetime]:
        """Ask the server if that was long ago, or never; return when it was asked, and what it said.

        While another thread asks, what was known before is good enough.
        """
        known = self._asked
        if known is not None and (elapsed() - known[0] <= _MEASURE_SECONDS or self._lock.locked()):
            return known
        with self._lock:
            if self._asked is None or self._asked is known:
                self._asked = self._ask()
            return self._asked

    def _ask(self) -> tuple[float, datetime]:
        with translated(), self._engine.connect() as connection:
            connection.execute(text("SELECT 1"))  # connecting takes longer than asking
            before = elapsed()
            said: datetime = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
            return (before + elapsed()) / 2, said


def elapsed() -> float:
    """Return seconds since the start of the machine, sleep included: nobody can set this clock."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
