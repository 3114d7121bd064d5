"""Jobs as the API sends them: read anew while they run, and once when they have ended."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from db.inputs import WorkerReport
from db.jobs.left import NO_TIME, why_partly
from db.views import JobView
from loopwright.codegen.kinds import JobState, SandboxLevel
from service.context import Context
from service.identity.visitor import Identities
from service.jobs import wire
from service.jobs.sent import on_wire, page_json
from service.jobs.waits import Waits
from service.settings import Settings
from tests.contract.db.conftest import BASELINE, World
from tuner.types import Activity, Measured

_IDLE = Activity()


@pytest.fixture
def ctx(world: World) -> Context:
    unused: Any = None
    return Context(Settings(), world.db, unused, Identities(world.db), unused, unused, unused, unused)


def test_jobs_are_sent_with_their_tasks_in_the_order_asked_for(world: World, ctx: Context) -> None:
    world.measured(0.5)
    world.measured(0.25, hash="w1")
    world.job("a", "b")
    views = world.db.jobs.page().items
    waits = Waits.read(ctx)
    expected = [wire.job(view, world.db.tasks.of_job(view.id), waits.activity(view)) for view in views]
    for job in expected:
        if job.state == "succeeded":
            job.activity = None
    for _ in range(2):
        assert on_wire(ctx, views) == expected
        assert on_wire(ctx, views[::-1]) == expected[::-1]


def test_all_reads_of_a_snapshot_are_of_one_time(world: World) -> None:
    job = world.job()
    with world.db.snapshot():
        assert world.db.jobs.get(job.id).state == JobState.QUEUED
        with ThreadPoolExecutor(1) as other:
            other.submit(world.db.jobs.request_cancel, job.id).result()
            # Another thread has snapshots of its own.
            assert other.submit(world.db.jobs.get, job.id).result().state == JobState.CANCELLED
        assert world.db.jobs.get(job.id).state == JobState.QUEUED
        assert [view.state for view in world.db.jobs.page().items] == [JobState.QUEUED]
    assert world.db.jobs.get(job.id).state == JobState.CANCELLED


def test_a_job_that_does_not_get_on_says_why(world: World, ctx: Context) -> None:
    queued = world.job(labels={"rack": "b"})
    machine: dict[str, Any] = {"host": "host", "device": "cpu", "device_class": world.device_class, "builders": 2}

    def activity(view: JobView) -> str:
        [job] = on_wire(ctx, [view])
        assert job.activity is not None
        return job.activity

    def register(labels: dict[str, str], activity: Activity = _IDLE) -> None:
        report = WorkerReport("host/cpu", **machine, sandbox=SandboxLevel.NONE, labels=labels, activity=activity)
        world.db.workers.register(report)

    register({"rack": "a"})
    none = f"waiting for a worker of the device class {world.device_class.id} with rack=b: none is alive"
    assert activity(queued) == none
    register({"rack": "b"})
    assert activity(queued) == "waiting for its turn in the queue"
    world.db.workers.drain("host/cpu", drained=True)
    assert activity(queued) == "waiting for a worker: all that can measure it are drained or in quarantine"
    world.db.workers.drain("host/cpu", drained=False)
    claimed = world.claim()
    world.db.jobs.set_activity(queued.id, claimed.lease_token, "searching")
    running = world.db.jobs.get(queued.id)
    assert activity(running) == "searching"
    register({"rack": "b"}, Activity(waits_for="python3 (process 7)"))
    assert activity(running) == "searching; waiting for the machine, which python3 (process 7) uses"
    world.clock.forward(60)
    assert activity(running).startswith(
        f"searching; waiting for a worker of the device class {world.device_class.id} (cpu-1) with rack=b"
    )


def test_a_job_that_has_ended_can_be_described(world: World, ctx: Context) -> None:
    world.measured(0.5)
    [view] = world.db.jobs.page().items
    on_wire(ctx, [view])
    world.db.jobs.describe(view.id, tags=["kept"], description="for the record")
    [job] = on_wire(ctx, world.db.jobs.page().items)
    assert (job.tags, job.description) == (["kept"], "for the record")
    assert job.tasks[0].finished_at is not None


def test_a_job_that_ended_partly_is_sent_with_what_other_jobs_certify_later(world: World, ctx: Context) -> None:
    claimed, task = world.started("a")
    world.propose(claimed, task, "[1]")
    world.db.tasks.fail(task.id, claimed.lease_token, NO_TIME)
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.PARTLY, why_partly([task], 1))
    ended = world.db.jobs.get(claimed.job.id)
    assert "7 of 9 tasks have no certificate (name_a, name_a, name_a, name_a, name_a and 2 more)" in why_partly(
        [task] * 7, 9
    )
    for _ in range(2):
        [job] = on_wire(ctx, [ended])
        assert (job.tasks[0].certified, job.model, job.notes) == (False, None, [])
    world.measured(0.125, hash="a")
    page = json.loads(page_json(ctx, world.db.jobs.page()))
    sent = next(job for job in page["items"] if job["id"] == ended.id)
    assert (sent["state"], sent["model"]["speedup"], sent["tasks"][0]["certified"]) == ("partly", 8.0, True)
    assert sent["notes"] == ["name_a has the certificate of another job since 2030-01-01, 00:00 UTC"]


def test_a_running_job_is_read_anew(world: World, ctx: Context) -> None:
    claimed, task = world.started()
    assert on_wire(ctx, [claimed.job])[0].tasks[0].baseline_us is None
    [trial] = world.db.trials.propose(task.id, claimed.lease_token, [BASELINE])
    assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    assert on_wire(ctx, [claimed.job])[0].tasks[0].baseline_us == 0.5e6


def test_a_job_that_has_ended_is_read_once(world: World, ctx: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    world.measured(0.5)
    views = world.db.jobs.page().items
    sent = on_wire(ctx, views)
    monkeypatch.setattr(world.db, "tasks", None)
    assert on_wire(replace(ctx, database=world.db), views) == sent
