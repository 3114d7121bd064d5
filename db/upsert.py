"""``INSERT … ON CONFLICT``, which both databases spell alike but SQLAlchemy keeps apart."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.models import Base


def insert(session: Session, table: type[Base]) -> postgresql.Insert | sqlite.Insert:
    """An insert into `table` that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    if session.get_bind().dialect.name == "sqlite":
        return sqlite.insert(table)
    return postgresql.insert(table)


def insert_new(session: Session, table: type[Base], rows: list[dict[str, Any]]) -> int:
    """Insert the rows that no unique constraint refuses; returns how many."""
    inserted = 0
    for row in rows:
        statement = insert(session, table).values(**row).on_conflict_do_nothing()
        counted = session.connection().execute(statement, execution_options={"preserve_rowcount": True})
        inserted += counted.rowcount
    return inserted
