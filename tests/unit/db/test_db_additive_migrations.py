"""Migrations within a minor version only add: code of an earlier patch version works on the tables of a later one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateColumn

from db import migrate
from db.engine.connections import create_engine
from db.revisions import current
from db.revisions import newest as newest_revision

FIRST = "0004"
"""The first revision whose code works on later tables. The release that begins a minor version moves it to its own."""


def tables(url: str) -> sa.MetaData:
    engine = create_engine(url)
    found = sa.MetaData()
    try:
        found.reflect(engine)
    finally:
        engine.dispose()
    return found


def broken(before: sa.MetaData, after: sa.MetaData) -> list[str]:
    """Return what keeps code of ``before`` from working on ``after``, a sentence each."""
    return [
        sentence
        for name, table in before.tables.items()
        for sentence in (_broken_table(table, after.tables[name]) if name in after.tables else [f"{name} is gone"])
    ]


def _broken_table(before: sa.Table, after: sa.Table) -> Iterator[str]:
    for column in before.columns:
        if column.name not in after.columns:
            yield f"{column} is gone"
        elif _definition(column) != _definition(after.columns[column.name]):
            yield f"{column} was {_definition(column)} and is {_definition(after.columns[column.name])}"
    for column in after.columns:
        if column.name not in before.columns and not column.nullable and column.server_default is None:
            yield f"{column} is new, and rows that earlier code inserts lack it: it needs a server default"
    known = {column.name for column in before.columns}
    for rule in sorted(_rules(after) - _rules(before)):
        kind, columns, _ = rule
        if kind == "check" or known.issuperset(columns):
            yield f"{after.name} has a new rule that earlier code does not know: {rule}"


def _definition(column: sa.Column[Any]) -> str:
    return str(CreateColumn(column).compile(dialect=sqlite.dialect()))


def _rules(table: sa.Table) -> set[tuple[str, tuple[str, ...], str]]:
    """Return what rows must obey: kind, columns, and the rest."""
    found: set[tuple[str, tuple[str, ...], str]] = set()
    for constraint in table.constraints:
        if isinstance(constraint, sa.CheckConstraint):
            found.add(("check", (), str(constraint.sqltext)))
        elif isinstance(constraint, sa.ForeignKeyConstraint):
            found.add(("foreign key", tuple(constraint.column_keys), constraint.referred_table.name))
        elif isinstance(constraint, sa.UniqueConstraint | sa.PrimaryKeyConstraint):
            found.add(("unique", tuple(constraint.columns.keys()), ""))
    for index in table.indexes:
        if index.unique:
            where = index.dialect_options["sqlite"]["where"]
            found.add(("unique", tuple(index.columns.keys()), str(where)))
    return found


def test_earlier_code_works_on_the_tables_of_this_one(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'loopwright.db'}"
    migrate.upgrade(url, FIRST)
    revisions = {FIRST: tables(url)}
    while current(url) != newest_revision():
        migrate.upgrade(url, "+1")
        revisions[str(current(url))] = tables(url)
    newest = revisions.pop(str(newest_revision()))
    assert newest.tables.keys() >= {"jobs", "trials", "workers"}
    findings = {revision: broken(before, newest) for revision, before in revisions.items()}
    assert not any(findings.values()), findings


JOBS = (
    "id TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER DEFAULT 1 NOT NULL, state TEXT CHECK (state IN ('a', 'b'))"
)


@pytest.mark.parametrize(
    ("changed", "finding"),
    [
        ("id TEXT PRIMARY KEY, name TEXT NOT NULL, size INTEGER DEFAULT 1 NOT NULL", "jobs.state is gone"),
        (f"{JOBS}, place INTEGER NOT NULL", "jobs.place is new"),
        (JOBS.replace("size INTEGER DEFAULT 1", "size INTEGER"), "jobs.size was"),
        (JOBS.replace("size INTEGER", "size TEXT"), "jobs.size was"),
        (JOBS.replace("('a', 'b')", "('a')"), "a new rule"),
        (f"{JOBS}, UNIQUE (name)", "a new rule"),
        (f"{JOBS}, FOREIGN KEY (name) REFERENCES users (name)", "a new rule"),
    ],
)
def test_what_stops_earlier_code_is_found(tmp_path: Path, changed: str, finding: str) -> None:
    (found,) = broken(made(tmp_path / "before.db", JOBS), made(tmp_path / "after.db", changed))
    assert finding in found


def test_additions_do_not_stop_earlier_code(tmp_path: Path) -> None:
    more = f"{JOBS}, place INTEGER, place_of TEXT DEFAULT 'a' NOT NULL, UNIQUE (name, place)"
    assert broken(made(tmp_path / "before.db", JOBS), made(tmp_path / "after.db", more)) == []


def made(path: Path, columns: str) -> sa.MetaData:
    """Return the tables of a database with jobs of these columns."""
    engine = create_engine(f"sqlite:///{path}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE users (name TEXT PRIMARY KEY)")
        connection.exec_driver_sql(f"CREATE TABLE jobs ({columns})")
    engine.dispose()
    return tables(f"sqlite:///{path}")
