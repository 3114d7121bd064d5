"""``INSERT … ON CONFLICT``, which both databases spell alike but SQLAlchemy keeps apart."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import ARRAY, bindparam, cast, column, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.engine.changes import run_last
from db.models import Base

Insert = postgresql.Insert | sqlite.Insert


def insert(session: Session, table: type[Base]) -> Insert:
    """An insert into `table` that has ``on_conflict_do_nothing`` and ``on_conflict_do_update``."""
    return insert_of(_dialect(session), table)


def insert_lists(table: type[Base], names: Sequence[str], prefix: str = "") -> postgresql.Insert:
    """An insert of many rows whose parameters are a list for each column: a server runs it once, and not by the row.

    The parameters have the names of the columns, behind ``prefix``.
    """
    columns = [table.__table__.c[name] for name in names]
    # Lists may be of lists as JSON.
    types = [ARRAY(each.type, dimensions=1) for each in columns]
    lists = (
        cast(bindparam(f"{prefix}{each.key}", type_=kind), kind) for each, kind in zip(columns, types, strict=True)
    )
    rows = func.unnest(*lists).table_valued(*(column(each.key, each.type) for each in columns)).render_derived()
    return postgresql.insert(table).from_select(list(names), select(*rows.c))


def insert_new(session: Session, table: type[Base], rows: list[dict[str, Any]]) -> int:
    """Insert the rows that no unique constraint refuses; returns how many."""
    statement, connection = _inserting_new(_dialect(session), table), session.connection()
    return sum(
        connection.execute(statement, row, execution_options={"preserve_rowcount": True}).rowcount for row in rows
    )


def insert_last(session: Session, rows: Sequence[tuple[type[Base], Sequence[Mapping[str, Any]]]]) -> None:
    """Insert rows into different tables, those of a table after those that they refer to; all of a table are alike.

    A server does that at the end of the transaction (`db.engine.changes.run_last`), once for each table.
    """
    for table, some in rows:
        if not some:
            continue
        if _dialect(session) == "sqlite":
            session.connection().execute(insert_of("sqlite", table), some)
        else:
            names = tuple(some[0])
            run_last(session, _inserting(table, names, is_one=len(some) == 1), _facts(table, names, some))


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


def add_last(
    session: Session, table: type[Base], key: Sequence[str], sums: Sequence[str], rows: Sequence[Mapping[str, Any]]
) -> None:
    """Do as `add_all`, for rows with different keys; a server does it at the end, as in `insert_last`."""
    if _dialect(session) == "sqlite":
        add_all(session, table, key, sums, rows)
    else:
        names, is_one = tuple(rows[0]), len(rows) == 1
        run_last(
            session, _adding_last(table, tuple(key), tuple(sums), names, is_one=is_one), _facts(table, names, rows)
        )


def _facts(table: type[Base], names: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the parameters of `_inserting`."""
    is_one = len(rows) == 1
    return {f"{_prefix(table)}{name}": rows[0][name] if is_one else [row[name] for row in rows] for name in names}


def _dialect(session: Session) -> str:
    return session.get_bind().dialect.name


@functools.cache
def insert_of(dialect: str, table: type[Base]) -> Insert:
    """Return such an insert for a database that is known by the name of its dialect."""
    return sqlite.insert(table) if dialect == "sqlite" else postgresql.insert(table)


# Statements that are made once, because to make one takes longer than to run it.


@functools.cache
def _inserting_new(dialect: str, table: type[Base]) -> Insert:
    return insert_of(dialect, table).on_conflict_do_nothing()


@functools.cache
def _inserting(table: type[Base], names: Sequence[str], *, is_one: bool) -> postgresql.Insert:
    """Insert a row, or lists of columns; the parameters have the name of the table before those of the columns."""
    if not is_one:
        return insert_lists(table, names, _prefix(table))
    columns = table.__table__.c
    values = {name: bindparam(f"{_prefix(table)}{name}", type_=columns[name].type) for name in names}
    return postgresql.insert(table).values(values).inline()


def _prefix(table: type[Base]) -> str:
    return f"{table.__tablename__}_"


@functools.cache
def _adding(dialect: str, table: type[Base], key: Sequence[str], sums: Sequence[str]) -> Insert:
    return _summing(insert_of(dialect, table), table, key, sums)


@functools.cache
def _adding_last(
    table: type[Base], key: Sequence[str], sums: Sequence[str], names: Sequence[str], *, is_one: bool
) -> Insert:
    return _summing(_inserting(table, names, is_one=is_one), table, key, sums)


def _summing(statement: Insert, table: type[Base], key: Sequence[str], sums: Sequence[str]) -> Insert:
    more = {name: getattr(table, name) + statement.excluded[name] for name in sums}
    return statement.on_conflict_do_update(index_elements=list(key), set_=more)
