"""The version of what is stored: each commit of any process changes it, so that what was read is current as long as
the version is the same.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from dataclasses import dataclass

from sqlalchemy import Engine, text

from db.access.visibility import Viewer
from db.engine.outages import translated
from db.errors import DatabaseAway

_SNAPSHOT = text("SELECT pg_postmaster_start_time() || ' ' || pg_current_snapshot()")
_PRIVATE_USERS = "SELECT DISTINCT user_name FROM job_counts WHERE private IS TRUE"


@dataclass(frozen=True, slots=True)
class Version:
    """``token`` differs from the one of any other version. ``private_users`` have or had private jobs."""

    token: str
    private_users: frozenset[str]

    def sight_of(self, viewer: Viewer | None) -> Viewer | None:
        """Return a viewer who sees the same: users without private jobs all see what a guest sees."""
        return viewer if viewer is None or viewer.user_name in self.private_users else Viewer(None)


class Versions:
    """Reads the version. Threads may share it."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._file = _File(engine.url.database or "") if engine.dialect.name == "sqlite" else None
        self._latest = Version("", frozenset())

    def read(self) -> Version:
        """Return a version that has all that was committed before this call. Raise `db.errors.Unavailable`.

        Of a file it takes some microseconds, and waits for nobody.
        """
        if self._file is not None:
            return self._file.read()
        with translated(), self._engine.connect() as connected:
            connection = connected.execution_options(isolation_level="AUTOCOMMIT")
            # A snapshot lists the transactions that it does not see, so that equal ones see the same. A server that
            # crashed may lose the last transactions, and use their numbers again.
            token = str(connection.scalar(_SNAPSHOT))
            latest = self._latest
            if latest.token != token:
                # Read last: who is among them by a later commit is told from others too early, and never too late.
                users = frozenset(connection.scalars(text(_PRIVATE_USERS)))
                latest = self._latest = Version(token, users)
            return latest

    def close(self) -> None:
        """Close what is open for this alone."""
        if self._file is not None:
            self._file.close()


class _File:
    """A connection to a file, used for nothing else: its ``data_version`` counts the commits of all others."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._name = ""
        self._latest = Version("", frozenset())

    def read(self) -> Version:
        with self._lock:
            try:
                return self._read()
            except sqlite3.Error as error:
                self._drop()
                raise DatabaseAway(f"the database does not answer: {error}") from error

    def _read(self) -> Version:
        connection = self._connection or self._connect()
        [(count,)] = connection.execute("PRAGMA data_version").fetchall()
        token = f"{self._name} {count}"
        if self._latest.token != token:
            users = connection.execute(_PRIVATE_USERS).fetchall()
            self._latest = Version(token, frozenset(name for (name,) in users))
        return self._latest

    def _connect(self) -> sqlite3.Connection:
        # Not one of the engine's, which may wait for a lock for a minute.
        self._connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        # Two connections count alike.
        self._name = secrets.token_hex(8)
        return self._connection

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _drop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None
