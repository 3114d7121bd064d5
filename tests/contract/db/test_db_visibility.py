"""What is private stays so, whichever repository is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from db import Database, NotFound
from db.access.views import Quota
from db.access.visibility import Viewer, _criteria
from db.inputs import WorkerReport
from db.results.best_schedules import BestScheduleQuery
from db.states import Scope
from db.views import RecordView
from loopwright.codegen.kinds import SandboxLevel
from tests.contract.db.conftest import World
from tuner.types import Activity


@pytest.fixture
def private(world: World) -> str:
    """A finished private job of ada's, on the workload ``secret-8``; the owner has a public one, on ``open-8``."""
    world.db.users.create("ada", Scope.SUBMIT, Quota())
    world.db.users.create("bob", Scope.SUBMIT, Quota())
    world.measured(0.5, hash="open-8")
    world.measured(0.25, hash="secret-8", user_name="ada", private=True, gate={"against": "functions"})
    job_id = next(job.id for job in world.db.jobs.page().items if job.private)
    world.db.comparisons.put(job_id, "ada", {"machine": "m"})
    return job_id


LISTS: dict[str, Callable[[Database], Any]] = {
    "jobs": lambda db: [job.id for job in db.jobs.page().items],
    "workloads": lambda db: [view.hash for view in db.workloads.page().items],
    "records": lambda db: [view.id for view in db.records.page().items],
    "fastest records": lambda db: [view.id for view in db.records.page(sort="latency").items],
    "bests": lambda db: [view.certificate.id for view in db.certificates.bests().items],
    "best schedules": lambda db: [row.certificate_id for row in db.best_schedules.page(BestScheduleQuery())[0]],
    "total": lambda db: db.best_schedules.page(BestScheduleQuery())[1],
    "workloads with bests": lambda db: list(db.certificates.workloads_with_bests(None)),
    "bests of workloads": lambda db: [
        best.certificate.id for best in db.certificates.bests_of(["open-8", "secret-8"], None)
    ],
    "modules": lambda db: list(db.workloads.modules(["open-8", "secret-8"])),
    "sizes of modules": lambda db: list(db.workloads.module_bytes(["open-8", "secret-8"])),
    "lookup": lambda db: list(db.lookup.bests(["open-8", "secret-8"], '{"kind":"llvm"}')),
    "counts": lambda db: (db.counts().jobs, db.counts().trials),
    "totals": lambda db: (db.totals().workloads, db.totals().bests, db.totals().trials),
}


@pytest.mark.parametrize("what", LISTS)
def test_others_lists_are_as_if_a_private_job_were_not_there(world: World, private: str, what: str) -> None:
    ask = LISTS[what]
    everything = ask(world.db)
    assert ask(world.db.seen_by(Viewer("ada"))) == everything
    seen = ask(world.db.seen_by(Viewer("bob")))
    assert seen != everything
    assert ask(world.db.seen_by(Viewer(None))) == seen
    if isinstance(everything, list):
        assert len(seen) == len(everything) - (2 if "records" in what else 1)


ITEMS: dict[str, Callable[[Database, str], Any]] = {
    "job": lambda db, job_id: db.jobs.get(job_id),
    "inputs": lambda db, job_id: db.jobs.inputs(job_id),
    "tasks": lambda db, job_id: db.tasks.of_job(job_id),
    "trials": lambda db, job_id: db.trials.page(job_id).items,
    "all trials": lambda db, job_id: list(db.trials.all_of_job(job_id)),
    "events": lambda db, job_id: db.events.after(job_id),
    "comparison": lambda db, job_id: db.comparisons.of_job(job_id),
    "gate": lambda db, job_id: db.gates.of_job(job_id),
    "records": lambda db, job_id: _records(db, job_id),
    "workload": lambda db, _: db.workloads.get("secret-8"),
    "best": lambda db, _: db.certificates.best("secret-8", _class(db)),
}


def _records(db: Database, job_id: str) -> list[RecordView]:
    return [record for task in db.tasks.of_job(job_id) for record in db.records.of_task(task.id)]


def _class(db: Database) -> str:
    return db.devices.all()[0].id


@pytest.mark.parametrize("what", ITEMS)
def test_a_private_job_and_its_workload_are_not_found_by_others(world: World, private: str, what: str) -> None:
    ask = ITEMS[what]
    assert ask(world.db.seen_by(Viewer("ada")), private)
    for viewer in (Viewer("bob"), Viewer(None)):
        try:
            found = ask(world.db.seen_by(viewer), private)
        except NotFound:
            continue
        assert not found


def test_a_record_is_not_found_by_its_id(world: World, private: str) -> None:
    (record, *_) = _records(world.db, private)
    assert world.db.seen_by(Viewer("ada")).records.get(record.id).record == record
    with pytest.raises(NotFound):
        world.db.seen_by(Viewer("bob")).records.get(record.id)


def test_who_submits_the_same_function_sees_what_is_known_of_it(world: World, private: str) -> None:
    world.job("secret-8", user_name="bob", private=True)
    bob = world.db.seen_by(Viewer("bob"))
    best = bob.certificates.best("secret-8", _class(bob))
    assert best is not None
    # But not whose job found it.
    assert bob.records.get(best.certificate.trial_id).record.job_id is None
    with pytest.raises(NotFound):
        bob.jobs.get(private)
    assert world.db.seen_by(Viewer(None)).certificates.best("secret-8", _class(bob)) is None


def test_an_import_shows_a_private_function_to_who_imports_it_alone(world: World, private: str) -> None:
    world.db.workloads.import_([world.workload("secret-8"), world.workload("new-8")], "0.27", "bob")
    assert world.db.seen_by(Viewer("bob")).workloads.get("secret-8")
    guest = world.db.seen_by(Viewer(None))
    assert guest.workloads.get("new-8")
    with pytest.raises(NotFound):
        guest.workloads.get("secret-8")


def test_a_public_job_shares_its_workload_for_good(world: World, private: str) -> None:
    world.job("secret-8", user_name="bob")
    guest = world.db.seen_by(Viewer(None))
    assert guest.workloads.get("secret-8")
    world.job("secret-8", user_name="ada", private=True)
    assert guest.workloads.get("secret-8")
    assert private not in {job.id for job in guest.jobs.page().items}


def test_the_jobs_of_a_user(world: World, private: str) -> None:
    assert [job.id for job in world.db.jobs.page(user_name="ada").items] == [private]
    assert world.db.seen_by(Viewer("bob")).jobs.page(user_name="ada").items == ()


def test_what_a_worker_does_for_a_private_job_names_no_job(world: World, private: str) -> None:
    claimed, task = world.started("secret-9", user_name="ada", private=True)
    (trial,) = world.propose(claimed, task, "[0]")
    activity = Activity(slot_since=world.clock(), slot_trial_id=trial.id)
    report = WorkerReport("host/cpu", "host", "cpu", world.device_class, 1, SandboxLevel.NAMESPACES, activity=activity)
    world.db.workers.register(report)
    assert [view.slot_job_id for view in world.db.workers.all(60)] == [claimed.job.id]
    assert [view.slot_job_id for view in world.db.seen_by(Viewer("bob")).workers.all(60)] == [None]
    assert [lease.job_id for lease in world.db.jobs.leases()] == [claimed.job.id]
    assert world.db.seen_by(Viewer("bob")).jobs.leases() == []


def test_a_best_does_not_name_the_private_job_that_found_it(world: World, private: str) -> None:
    world.job("secret-8")  # now everybody has the workload

    def named(viewer: Viewer) -> list[str | None]:
        rows, _ = world.db.seen_by(viewer).best_schedules.page(BestScheduleQuery(text="secret"))
        return [row.job_id for row in rows]

    assert named(Viewer("ada")) == [private]
    assert named(Viewer("bob")) == [None]
    assert [row.job_id for row in world.db.seen_by(Viewer("bob")).best_schedules.gainers(1, 1)] == [None]


def test_the_conditions_of_a_viewer_are_made_once() -> None:
    assert _criteria(Viewer("ada")) is _criteria(Viewer("ada"))
    assert _criteria(Viewer("ada")) is not _criteria(Viewer(None))
