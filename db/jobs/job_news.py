"""Notifies controllers that jobs were queued: to query for jobs ten times a second would use much of an idle core.

PostgreSQL notifies (LISTEN, NOTIFY). SQLite counts the changes of its file, which is read in microseconds.
"""

from __future__ import annotations

import contextlib
from typing import Any

import psycopg
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.orm import Session

from db.engine.changes import notify_at_end

_CHANNEL = "loopwright_jobs_queued"


def tell_queued(session: Session) -> None:
    """Notify listeners at the end of the transaction, in which jobs were queued."""
    notify_at_end(session, _CHANNEL)


class JobNews:
    """Listens on a connection of its own. For one thread."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._connection: Any = None
        self._version: int | None = None
        """Of the file, when it was last read."""

    def there_is(self) -> bool:
        """Return whether jobs may have been queued since the last call; True also if the database cannot tell."""
        try:
            if self._connection is None:
                self._connection = self._listen()
                self._news()
                return True
            return self._news()
        except (self._engine.dialect.loaded_dbapi.Error, DBAPIError):
            self.close()
            return True

    def close(self) -> None:
        if self._connection is not None:
            with contextlib.suppress(self._engine.dialect.loaded_dbapi.Error):
                self._connection.close()
            self._connection = None

    def _news(self) -> bool:
        if isinstance(self._connection, psycopg.Connection):
            return bool(list(self._connection.notifies(timeout=0)))
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        before, self._version = self._version, version
        return bool(version != before)

    def _listen(self) -> Any:
        pooled = self._engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        if isinstance(connection, psycopg.Connection):
            connection.autocommit = True
            connection.execute(f"LISTEN {_CHANNEL}")
        return connection
