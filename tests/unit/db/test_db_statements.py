"""Statements that are made once are those of their arguments, and limited for each viewer by itself."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import Select, bindparam, select

from db import Database, migrate
from db.access.views import Quota
from db.access.visibility import Viewer
from db.engine.statements import cache_statements, is_made_once
from db.models import User
from db.results.best_schedules import BestScheduleQuery, _page
from db.states import Scope


def test_a_statement_is_made_once_for_its_arguments(tmp_path: Path) -> None:
    made = []

    @cache_statements
    def named(role: Scope) -> Select[str]:
        made.append(role)
        return select(User.name).where(User.role == role, User.name >= bindparam("first")).order_by(User.name)

    assert named(Scope.READ) is named(Scope.READ)
    assert is_made_once(named(Scope.SUBMIT).get_execution_options())
    assert not is_made_once(select(User.name).get_execution_options())
    assert made == [Scope.READ, Scope.SUBMIT]
    url = f"sqlite:///{tmp_path / 'a.db'}"
    migrate.upgrade(url)
    database = Database(url)
    for name, role in (("ada", Scope.READ), ("bob", Scope.SUBMIT), ("eve", Scope.READ)):
        database.users.create(name, role, Quota())
    for seen in (database, database.seen_by(Viewer("ada"))):
        with seen._sessions.read() as session:
            assert session.scalars(named(Scope.READ), {"first": ""}).all() == ["ada", "eve"]
            assert session.scalars(named(Scope.READ), {"first": "b"}).all() == ["eve"]
            assert session.scalars(named(Scope.SUBMIT), {"first": "b"}).all() == ["bob"]
    database.close()


def test_another_order_is_another_statement() -> None:
    assert _page(BestScheduleQuery(sort="peak")) is not _page(BestScheduleQuery(sort="op"))
    assert _page(BestScheduleQuery(text="a")) is _page(BestScheduleQuery(text="a"))
