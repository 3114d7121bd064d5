"""``INSERT … ON CONFLICT``, which both databases spell alike but SQLAlchemy keeps apart."""

from __future__ import annotations

from collections.abc import Mapping
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


def add(
    session: Session,
    table: type[Base],
    key: Mapping[str, Any],
    sums: Mapping[str, float],
    others: Mapping[str, Any] | None = None,
) -> None:
    """Add to sums in the row with this key; if there is none, insert one with these sums and with ``others``."""
    statement = insert(session, table).values(**key, **sums, **(others or {}))
    more = {name: getattr(table, name) + number for name, number in sums.items()}
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=more))
