"""The revision of a database's tables, for processes that only compare it, without Alembic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from sqlalchemy import Connection, event, inspect, text

from db.engine.connections import create_engine
from db.engine.outages import translated
from db.errors import SchemaTooNew

Result = TypeVar("Result")

_SCRIPTS = Path(__file__).parent / "migrations" / "versions"
"""Each begins with its revision, and they follow each other in the order of their names."""
_TABLE = "alembic_version"
_LOCK = 0x100
"""Number of the PostgreSQL advisory lock under which migrations run, one process at a time."""


def known() -> list[str]:
    """Return the revisions that this code knows, the oldest first."""
    return sorted(script.name.partition("_")[0] for script in _SCRIPTS.glob("[0-9]*.py"))


def newest() -> str:
    """Return the revision that this code needs."""
    return known()[-1]


def current(url: str) -> str | None:
    """Return the revision of the database at ``url``; None before the first one."""
    return in_transaction(url, stored)


def stored(connection: Connection) -> str | None:
    """Return the revision of the connection's database; None before the first one."""
    if not inspect(connection).has_table(_TABLE):
        return None
    revision: str | None = connection.scalar(text(f"SELECT version_num FROM {_TABLE}"))
    return revision


def is_behind(url: str) -> bool:
    """Return whether the tables at ``url`` are older than this code needs.

    Tables at a revision that this code does not know are newer: a later release has renewed them.
    """
    revision = current(url)
    return revision is None or revision in known()[:-1]


def check(url: str) -> None:
    """Raises `db.errors.SchemaTooNew` if the tables at ``url`` are of a version after this one."""
    require_known(current(url))


def in_transaction(url: str, work: Callable[[Connection], Result]) -> Result:
    """Read a revision, or apply one as a whole or not at all, also on SQLite; one process at a time on PostgreSQL."""
    engine = create_engine(url, limited=False)
    is_sqlite = engine.dialect.name == "sqlite"
    if is_sqlite:
        # A table that is copied to change it is dropped once, which would violate the keys that refer to it.
        event.listen(engine, "connect", lambda connection, _: connection.execute("PRAGMA foreign_keys=OFF"))
    try:
        with translated(), engine.begin() as connection:
            if not is_sqlite:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_LOCK})"))
            return work(connection)
    finally:
        engine.dispose()


def require_known(revision: str | None) -> None:
    """Raises `db.errors.SchemaTooNew`."""
    if revision is not None and revision not in known():
        raise SchemaTooNew(revision)
