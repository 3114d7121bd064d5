"""Which jobs a controller takes up while its places are taken, and which go back into the queue for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from db import Database, migrate
from db.access.views import Quota
from db.inputs import LAST, NewJob
from db.states import Scope
from db.views import JobView
from loopwright.codegen.kinds import JobState
from service.controller import controller
from service.controller.controller import Controller
from service.settings import Settings
from tests.support.idle_loops import IdleLoops, OneNode
from tests.support.played_fleet import MACHINE
from tuner.budget import Budget
from tuner.types import TaskSpec, Workload
from workers.ray.cluster import Offer


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    settings = Settings(data_dir=tmp_path)
    migrate.upgrade(settings.database)
    for pause in ("_WAIT_SECONDS", "_ROOM_SECONDS", "_ANSWERS_SECONDS", "_CLAIM_SECONDS"):
        monkeypatch.setattr(controller, pause, 0.0)
    return settings


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    database = Database(settings.database)
    for name in ("ada", "bob"):
        database.users.create(name, Scope.SUBMIT, Quota())
    yield database
    database.close()


class Desk:
    """A controller whose turns the test takes."""

    def __init__(self, settings: Settings, database: Database, places: int) -> None:
        self.database = database
        self.loops = IdleLoops(places)
        self.controller = Controller(settings, database, OneNode(), self.loops)

    def submit(self, name: str, **fields: Any) -> JobView:
        new = NewJob(name, "{}", fields.pop("machine", MACHINE), Budget(8), **fields)
        return self.database.jobs.create(new, [TaskSpec(Workload(name, name, name, "{}", "", ()), 1)], "0.27")

    def turns(self, count: int = 10) -> list[str]:
        """Return the names of the jobs that were taken up in so many turns."""
        before = len(self.loops.started)
        for _ in range(count):
            self.controller._turn()
        return self.loops.started[before:]

    def end(self) -> None:
        """End all jobs that were taken up."""
        for loop in self.loops.running:
            self.database.jobs.finish(loop.claimed.job.id, loop.claimed.lease_token, JobState.SUCCEEDED)
            loop.leaving = True


def test_a_job_waits_for_a_worker_with_its_labels(settings: Settings, database: Database) -> None:
    desk = Desk(settings, database, places=2)
    cluster = OneNode()
    desk.controller = Controller(settings, database, cluster, desk.loops)
    desk.submit("labelled", labels={"rack": "a"})
    desk.submit("any")
    assert desk.turns() == ["any"]
    cluster.labels = {"rack": "a", "tier": "gold"}
    desk.controller._next_heartbeat = 0.0
    assert desk.turns() == ["labelled"]


def test_a_drained_worker_gets_no_job_until_it_is_let_in(settings: Settings, database: Database) -> None:
    desk = Desk(settings, database, places=2)
    assert desk.turns(1) == []  # its heartbeat registers the worker
    database.workers.drain("host/0", drained=True)
    desk.controller._next_heartbeat = 0.0
    desk.submit("job")
    assert desk.turns() == []
    database.workers.drain("host/0", drained=False)
    desk.controller._next_heartbeat = 0.0
    assert desk.turns() == ["job"]


@pytest.fixture
def desk(settings: Settings, database: Database) -> Desk:
    return Desk(settings, database, places=2)


def test_a_job_without_a_place_stays_in_the_queue(desk: Desk) -> None:
    jobs = [desk.submit(name) for name in "abc"]
    assert desk.turns() == ["a", "b"]
    assert [desk.database.jobs.get(job.id).state for job in jobs] == ["running", "running", "queued"]
    assert desk.database.jobs.get(jobs[2].id).attempts == 0


def test_a_job_without_a_machine_stays_in_the_queue_and_holds_up_nobody(desk: Desk) -> None:
    waits = desk.submit("a", machine=replace(MACHINE, model="another"), priority=5)
    desk.submit("b")
    assert desk.turns() == ["b"]
    assert desk.database.jobs.get(waits.id).state == "queued"


def test_workers_that_have_just_left_are_not_asked_again_at_once(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def present(self: OneNode, offers: list[Offer]) -> list[Offer]:
        asked.append(len(offers))
        return []

    monkeypatch.setattr(OneNode, "present", present)
    job = desk.submit("a")
    assert desk.turns() == []
    assert asked == [1]
    view = desk.database.jobs.get(job.id)
    assert (view.state, view.attempts) == ("queued", 0)


def test_on_one_host_jobs_that_nobody_waits_for_keep_away_from_the_user(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = desk.submit("later", priority=LAST)
    assert desk.turns() == ["later"]
    desk.submit("a")
    assert desk.turns() == ["a"]
    assert desk.database.jobs.get(later.id).state == "queued", "it is put back, and does not begin again"
    desk.end()
    assert desk.turns() == [], "the user times the model now"
    desk.submit("b")
    assert desk.turns() == ["b"]
    desk.end()
    monkeypatch.setattr(controller, "_ASKER_SECONDS", 0.0)
    assert desk.turns() == ["later"]
    assert desk.database.jobs.get(later.id).attempts == 1


def test_jobs_of_one_priority_take_turns_of_a_minute(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        desk.submit(name)
    assert desk.turns() == ["a", "b"]
    monkeypatch.setattr(controller, "_TURN_SECONDS", 0.0)
    # Each turn has one job leave at most, the one with the longest.
    assert desk.turns(1) == ["c"]
    assert desk.turns(1) == ["a"]
    assert desk.turns(1) == ["b"]
    assert [desk.database.jobs.get(each.id).attempts for each in desk.database.jobs.page().items].count(1) == 2


def test_a_job_of_a_higher_priority_waits_for_no_turn(desk: Desk) -> None:
    for name, priority in (("a", 1), ("b", 0)):
        desk.submit(name, priority=priority)
    assert desk.turns() == ["a", "b"]
    desk.submit("c", priority=1)
    assert desk.turns() == ["c"]
    assert {loop.claimed.job.name for loop in desk.loops.running} == {"a", "c"}


def test_a_job_of_a_lower_priority_takes_no_place(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "ab":
        desk.submit(name, priority=1)
    assert desk.turns() == ["a", "b"]
    monkeypatch.setattr(controller, "_TURN_SECONDS", 0.0)
    desk.submit("c")
    assert desk.turns() == []


def test_the_user_with_the_most_jobs_gives_up_a_place(
    settings: Settings, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk(settings, database, places=3)
    for name, user in (("a", "bob"), ("b", "ada"), ("c", "ada")):
        desk.submit(name, user_name=user)
    assert desk.turns() == ["a", "b", "c"]
    monkeypatch.setattr(controller, "_TURN_SECONDS", 0.0)
    desk.submit("d", user_name="bob")
    assert desk.turns(1) == ["d"]
    assert {loop.claimed.job.name for loop in desk.loops.running if not loop.leaving} == {"a", "c", "d"}


def test_of_several_controllers_one_gives_up_a_place(settings: Settings, database: Database) -> None:
    names = [settings.model_copy(update={"data_dir": settings.data_dir / name}) for name in "xyz"]
    desks = [Desk(name, database, places=1) for name in names]
    for desk, name in zip(desks, "abc", strict=True):
        desk.submit(name)
        assert desk.turns() == [name]
    desks[0].submit("urgent", priority=1)
    assert [name for _ in range(3) for desk in desks for name in desk.turns(1)] == ["urgent"]
    assert [loop.claimed.job.name for desk in desks for loop in desk.loops.running] == ["urgent", "b", "c"]


def test_all_jobs_are_put_back_at_the_end(desk: Desk) -> None:
    jobs = [desk.submit(name) for name in "ab"]
    assert desk.turns() == ["a", "b"]
    desk.controller._let_go()
    views = [desk.database.jobs.get(job.id) for job in jobs]
    assert [(view.state, view.attempts) for view in views] == [("queued", 0), ("queued", 0)]
