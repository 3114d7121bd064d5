"""Copy an SQLite database while the service is running, and release the disk space of a pruned database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy.engine import URL

from db.engine.connections import BUSY_TIMEOUT_MS, normalise_url

_PAGES = 2000
"""Copied at a time; writers wait for that."""


class CannotBackUp(Exception):
    """The message says why, and what to do instead."""


def back_up(url: str, target: Path) -> None:
    """Write a consistent copy of the database to a new file. Raises CannotBackUp."""
    source = _file(normalise_url(url))
    if target.exists():
        raise CannotBackUp(f"{target} exists already; give the name of a new file")
    with sqlite3.connect(source) as original, sqlite3.connect(target) as copy:
        original.backup(copy, pages=_PAGES)
        (verdict,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
    copy.close()
    original.close()
    if verdict != "ok":
        target.unlink()
        raise CannotBackUp(f"the database is damaged ({verdict}); restore an earlier backup")


def shrink(url: str) -> None:
    """Release the space of deleted rows to the file system. Writers wait meanwhile. Raises CannotBackUp."""
    with sqlite3.connect(_file(normalise_url(url)), timeout=BUSY_TIMEOUT_MS / 1000) as connection:
        connection.execute("VACUUM")
    connection.close()


def _file(url: URL) -> str:
    if url.get_backend_name() != "sqlite":
        raise CannotBackUp(
            "PostgreSQL has its own tools: pg_dump --format=custom --file=FILE DATABASE_URL, and pg_restore; "
            "it reuses the space of deleted rows by itself"
        )
    return str(url.database)
