"""``INSERT … ON CONFLICT``, which both databases spell alike but SQLAlchemy keeps apart."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, bindparam, cast, column, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.models import Base

Insert = postgresql.Insert | sqlite.Insert


def insert(session: Session, table: type[Base]) -> Insert:
    """An insert into `table` that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    return insert_of(_dialect(session), table)


def insert_lists(table: type[Base], names: Sequence[str]) -> postgresql.Insert:
    """An insert of many rows whose parameters are a list for each column: a server runs it once, and not by the row."""
    columns = [table.__table__.c[name] for name in names]
    lists = (cast(bindparam(each.key, type_=ARRAY(each.type)), ARRAY(each.type)) for each in columns)
    rows = func.unnest(*lists).table_valued(*(column(each.key, each.type) for each in columns)).render_derived()
    return postgresql.insert(table).from_select(list(names), select(*rows.c))


def insert_new(session: Session, table: type[Base], rows: list[dict[str, Any]]) -> int:
    """Insert the rows that no unique constraint refuses; returns how many."""
    statement, connection = _inserting_new(_dialect(session), table), session.connection()
    return sum(
        connection.execute(statement, row, execution_options={"preserve_rowcount": True}).rowcount for row in rows
    )


def add(
    session: Session,
    table: type[Base],
    key: Mapping[str, Any],
    sums: Mapping[str, float],
    others: Mapping[str, Any] | None = None,
) -> None:
    """Add to sums in the row with this key; if there is none, insert one with these sums and with ``others``."""
    add_all(session, table, tuple(key), tuple(sums), [{**key, **sums, **(others or {})}])


def add_all(
    session: Session, table: type[Base], key: Sequence[str], sums: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Add to sums in several rows, in their order; each has columns that are the key, the sums, and others as `add`."""
    session.connection().execute(_adding(_dialect(session), table, tuple(key), tuple(sums)), rows)


def _dialect(session: Session) -> str:
    return session.get_bind().dialect.name


def insert_of(dialect: str, table: type[Base]) -> Insert:
    """Return such an insert for a database that is known by the name of its dialect."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


# Statements that are made once, because to make one takes longer than to run it.


@functools.cache
def _inserting_new(dialect: str, table: type[Base]) -> Insert:
    return insert_of(dialect, table).on_conflict_do_nothing()


@functools.cache
def _adding(dialect: str, table: type[Base], key: Sequence[str], sums: Sequence[str]) -> Insert:
    statement = insert_of(dialect, table)
    more = {name: getattr(table, name) + statement.excluded[name] for name in sums}
    return statement.on_conflict_do_update(index_elements=list(key), set_=more)
