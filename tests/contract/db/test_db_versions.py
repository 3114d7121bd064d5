"""The version of what is stored, by which answers are known to be current."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from db import Database
from db.access.versions import Version
from db.access.views import Quota
from db.access.visibility import Viewer
from db.errors import Unavailable
from db.states import Scope
from tests.contract.db.conftest import World
from tests.support.waiting import wait_for


def test_each_commit_of_any_process_changes_the_version(world: World, url: str) -> None:
    other = Database(url, world.clock)
    seen = [world.db.version().token]
    for change in (
        lambda: world.job("w0"),
        lambda: other.users.create("ada", Scope.SUBMIT, Quota()),
        lambda: other.jobs.request_cancel(world.db.jobs.page().items[0].id),
        lambda: world.db.jobs.describe(world.db.jobs.page().items[0].id, tags=["a"]),
    ):
        change()
        seen.append(world.db.version().token)
        assert seen[-1] not in seen[:-1]
    other.close()


def test_reading_does_not_change_the_version(world: World) -> None:
    world.job("w0")

    def is_the_same() -> bool:
        before = world.db.version()
        assert world.db.jobs.page().items
        world.db.totals()
        return world.db.version() == before

    wait_for("a moment in which nobody else writes to the server", is_the_same)


def test_a_version_from_before_a_commit_is_not_the_one_after_it(world: World) -> None:
    world.db.version()
    with world.db._sessions.write() as session:
        during = world.db.version()
        session.connection().exec_driver_sql("UPDATE users SET daily_bytes = 5")
        assert world.db.version().private_users == during.private_users
        written = world.db.version()
    assert world.db.version().token not in (during.token, written.token)


def test_who_never_had_a_private_job_sees_what_guests_see(world: World) -> None:
    for name in ("ada", "bob"):
        world.db.users.create(name, Scope.SUBMIT, Quota())
    world.job("w0", user_name="bob")
    ada, bob, guest = Viewer("ada"), Viewer("bob"), Viewer(None)
    assert [world.db.version().sight_of(viewer) for viewer in (ada, bob, guest, None)] == [guest, guest, guest, None]
    secret = world.job("w1", user_name="ada", private=True)
    assert [world.db.version().sight_of(viewer) for viewer in (ada, bob, guest, None)] == [ada, guest, guest, None]
    world.db.jobs.request_cancel(secret.id)
    assert world.db.version().sight_of(ada) == ada
    assert Version("", frozenset()).sight_of(ada) == guest


def test_a_file_that_cannot_be_read_is_away_and_then_read_anew(sqlite_template: Path, tmp_path: Path) -> None:
    file = shutil.copy(sqlite_template, tmp_path / "a.db")
    database = Database(f"sqlite:///{file}")
    before = database.version()
    database.close()
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("PRAGMA locking_mode=EXCLUSIVE")
    other.execute("UPDATE users SET daily_bytes = 7")
    with pytest.raises(Unavailable):
        database.version()
    other.close()
    assert database.version().token != before.token
    database.close()
