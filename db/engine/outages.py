"""Classify a driver's errors: of the database (away, full, closed, damaged), of a conflict, and of the statement."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as NoConnection

from db.errors import AccessRefused, DatabaseAway, DatabaseDamaged, DatabaseError, DiskFull, TransactionConflict

_REFUSED = re.compile(
    r"password authentication failed|no password supplied|no pg_hba\.conf entry|is not permitted to log in"
    r"|(database|role) .* does not exist|permission denied for database"
)
"""PostgreSQL's words for a connection that it refuses. libpq passes on no code of such an error."""
_AWAY_CLASSES = ("08", "57P")
"""Connection exceptions, and a server that shuts down, starts or has crashed."""
_AWAY_STATES = ("53300", "25006")
"""Too many connections; a server that only reads, as it does before it takes over from another."""
_STUCK_STATES = ("55P03", "57014", "25P03")
"""A lock, a statement and a transaction that took too long (`db.engine.connections`)."""
_CONFLICT_STATES = ("40P01", "40001")
"""A deadlock, and a serialization failure: the server has rolled back this transaction so that another can go on."""
_FULL_STATE = "53100"


@contextmanager
def translated() -> Iterator[None]:
    """Raise an error of `db.errors` in place of a driver's error that concerns the database itself or a conflict."""
    try:
        yield
    except (DBAPIError, NoConnection) as error:
        found = found_in(error)
        if found is None:
            raise
        raise found from error


def found_in(error: DBAPIError | NoConnection) -> DatabaseError | None:
    """Return the error of the database itself, or of a conflict; None if the error concerns the statement only."""
    if isinstance(error, NoConnection):
        return DatabaseAway("the database does not answer: all connections are in use")
    original = error.orig
    if isinstance(original, sqlite3.Error):
        return _of_sqlite(original)
    if isinstance(original, psycopg.OperationalError | psycopg.InterfaceError) or error.connection_invalidated:
        return _of_postgresql(original)
    return None


def _of_sqlite(error: sqlite3.Error) -> DatabaseError | None:
    # The lowest byte is the primary code.
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            # Not a conflict: it has waited for the lock for as long as a writer may.
            return DatabaseAway(f"a transaction has waited too long for others to end: {error}")
        case sqlite3.SQLITE_PROTOCOL | sqlite3.SQLITE_IOERR:
            return DatabaseAway(f"the database does not answer: {error}")
        case sqlite3.SQLITE_FULL:
            return DiskFull(f"the disk of the database is full: {error}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return AccessRefused(f"the database cannot be written: {error}")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return DatabaseDamaged(f"the database is damaged: {error}")
    return None


def _of_postgresql(error: BaseException | None) -> DatabaseError | None:
    first_line = str(error).strip().partition("\n")[0]
    state = getattr(error, "sqlstate", None)
    if state == _FULL_STATE:
        return DiskFull(f"the disk of the database is full: {first_line}")
    if state in _CONFLICT_STATES:
        # With the lines that name the processes and the row.
        words = " ".join(str(error).split())
        return TransactionConflict(f"the database rolled back a transaction in favour of another: {words}")
    if state in _STUCK_STATES:
        return DatabaseAway(f"a transaction has waited or run for too long: {first_line}")
    if state is None and _REFUSED.search(str(error)):
        return AccessRefused(f"the database refuses the connection: {first_line}")
    if state is None or state.startswith(_AWAY_CLASSES) or state in _AWAY_STATES:
        return DatabaseAway(f"the database does not answer: {first_line}")
    return None
