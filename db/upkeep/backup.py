"""Copy an SQLite database while the service is running, and release the disk space of a pruned database."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from sqlalchemy.engine import URL

from db.engine.connections import BUSY_TIMEOUT_MS, normalise_url

_PAGES = 2000
"""Copied between two reports of the progress. Not tuned."""

Progress = Callable[[float], None]
"""Is given the share that is copied, from 0 to 1."""


class CannotBackUp(Exception):
    """The message says why, and what to do instead."""


def back_up(url: str, target: Path, progress: Progress = lambda share: None) -> None:
    """Write a consistent copy of the database to a new file, which appears when it is whole. Raises CannotBackUp.

    The copy is the database at the moment of the call. Other processes may write meanwhile; what they write stays in
    the file ``-wal`` until the copy is done.
    """
    source = _file(normalise_url(url))
    _require_new(target)
    part = target.with_name(f".{target.name}.part")
    part.unlink(missing_ok=True)
    try:
        _copy(source, part, progress)
        _require_new(target)
        part.rename(target)
    except sqlite3.OperationalError as error:
        raise CannotBackUp(f"the copy to {target} failed ({error}); look for room and rights in its folder") from error
    finally:
        part.unlink(missing_ok=True)


def _require_new(target: Path) -> None:
    if target.exists():
        raise CannotBackUp(f"{target} exists already; give the name of a new file")


def _copy(source: str, part: Path, progress: Progress) -> None:
    with closing(sqlite3.connect(source, isolation_level=None)) as original, closing(sqlite3.connect(part)) as copy:
        # Without a transaction of its own, a copy begins again whenever another process commits.
        original.execute("BEGIN")
        original.execute("SELECT count(*) FROM sqlite_schema").fetchone()
        original.backup(copy, pages=_PAGES, progress=lambda _, left, all_: progress(1 - left / max(all_, 1)))
        # integrity_check, which also compares each index with its table, takes ten times as long as the copy.
        (verdict,) = copy.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise CannotBackUp(f"the database is damaged ({verdict}); restore an earlier backup")
    with part.open("rb") as file:
        os.fsync(file.fileno())


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
