"""The version of what is stored, by which answers are known to be current."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from db import Database
from db.access.versions import Part, Version
from db.access.views import Quota
from db.access.visibility import Viewer
from db.engine.changes import Topic
from db.errors import Unavailable
from db.inputs import WorkerReport
from db.states import Scope
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, SandboxLevel, Stage
from tests.contract.db.conftest import World
from tests.support.waiting import wait_for
from tuner.types import Failure, Measured


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


class Parts:
    """Says which of some parts have changed since it was last asked."""

    def __init__(self, world: World, job_id: str, other_id: str) -> None:
        trials = (Topic.TRIALS,)
        self._parts = {
            "bests": Part((Topic.OTHER,)),
            "jobs": Part((Topic.JOBS,)),
            "workers": Part((Topic.WORKERS,)),
            "trials": Part(trials),
            "own job": Part(trials, job_id=job_id),
            "other job": Part(trials, job_id=other_id),
            "own workload": Part(trials, workload_hash="w0"),
            "other workload": Part(trials, workload_hash="w1"),
            "no job": Part(trials, job_id="there is\x00none"),
        }
        self._db = world.db
        self._seen: dict[str, str] = {}
        self.changed()

    def changed(self) -> set[str]:
        before, self._seen = self._seen, {name: self._db.version(part).token for name, part in self._parts.items()}
        return {name for name, token in self._seen.items() if before.get(name) != token}


ALL = {"bests", "jobs", "workers", "trials", "own job", "other job", "own workload", "other workload", "no job"}


def test_a_commit_changes_the_versions_of_what_it_concerns(world: World) -> None:
    claimed, task = world.started("w0")
    other = world.job("w1")
    own, token = claimed.job.id, claimed.lease_token
    parts, db = Parts(world, own, other.id), world.db
    assert parts.changed() == set()
    first, second = world.propose(claimed, task, "[1]", "[2]")
    assert parts.changed() == {"own job"}
    db.trials.finish(first.id, token, Measured((0.5,), "worker"))
    assert parts.changed() == {"trials", "own job", "own workload"}
    db.trials.finish(second.id, token, Failure(Stage.RUN, FailureKind.CRASH, "signal 11", "worker"))
    assert parts.changed() == {"trials", "own job"}
    db.jobs.set_activity(own, token, "races")
    assert parts.changed() == {"jobs"}
    report = WorkerReport("host/cpu", "host", "cpu", world.device_class, 1, SandboxLevel.NONE)
    db.workers.register(report)
    assert parts.changed() == {"workers"}
    db.workers.drain("host/cpu", drained=True)
    assert parts.changed() == ALL
    stored = db.certificates.store(task.id, token, world.certificate(first, 0.5), 64)
    assert parts.changed() == ALL
    db.tasks.answer(task.id, token, stored.id, AnsweredFrom.SEARCH)
    assert parts.changed() == {"jobs", "trials", "own job"}
    db.jobs.finish(own, token, JobState.SUCCEEDED)
    assert parts.changed() == {"jobs", "trials", "own job"}
    db.jobs.request_cancel(other.id)
    assert parts.changed() == {"jobs", "trials", "other job"}


def test_what_no_answer_shows_changes_no_part(world: World) -> None:
    claimed, task = world.started("w0")
    [trial] = world.propose(claimed, task, "[1]")
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    parts, db = Parts(world, claimed.job.id, "none"), world.db
    everything = db.version().token
    assert db.jobs.renew(claimed.job.id, claimed.lease_token, 30.0, 1.0)
    assert db.tallies.add_up() == 1
    db.audit.add(user_name="owner", token_id="", action="read", object="/jobs", status=200, address="")
    assert db.jobs.claim("another", 30.0) is None
    # What writes nothing, although it might.
    with db._sessions.write():
        pass
    db.workers.quarantine("unknown", "a reason")
    assert parts.changed() == set()
    assert db.version().token != everything


def test_changes_of_many_at_once_are_all_counted(world: World, url: str) -> None:
    """On a server, each counts in some of several rows."""
    seen = set()
    for number in range(30):
        world.db.users.create(f"user-{number}", Scope.SUBMIT, Quota())
        seen.add(world.db.version(Part((Topic.OTHER,))).token)
    assert len(seen) == 30
