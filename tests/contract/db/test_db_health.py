"""What is known of a worker's health: activity, checks, lost trials, quarantine."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from db import NotFound
from db.inputs import WorkerReport
from db.states import WebhookEvent
from db.views import WorkerStanding, WorkerView
from db.workers import CHECKS
from loopwright.codegen.kinds import FailureKind, JobState, Origin, SandboxLevel, Stage
from tests.contract.db.conftest import World
from tuner.types import Activity, Failure, MeasureCandidate


def register(world: World, id: str = "host/cpu", **fields: Any) -> None:
    machine: dict[str, Any] = {"host": "host", "device": "cpu", "device_class": world.device_class, "builders": 2}
    world.db.workers.register(WorkerReport(id, **machine, sandbox=SandboxLevel.NONE, **fields))


def worker(world: World) -> WorkerView:
    (view,) = world.db.workers.all(30)
    return view


def test_a_worker_tells_what_it_is_at(world: World) -> None:
    claimed, task = world.started()
    (trial,) = world.propose(claimed, task, "[1]")
    register(world)
    assert (worker(world).activity, worker(world).slot_job_id) == (Activity(), None)
    at_work = Activity(2, world.clock(), trial.id, 0.75)
    register(world, activity=at_work)
    assert (worker(world).activity, worker(world).slot_job_id) == (at_work, claimed.job.id)
    register(world)
    assert worker(world).activity == Activity()


def test_the_fastest_check_and_the_newest_are_at_hand(world: World) -> None:
    register(world)
    for number in range(CHECKS + 5):
        world.db.workers.add_check("host/cpu", 1.0 + (number != 2) * (1 + number))
        world.clock.forward(60)
    secs = [check.secs for check in worker(world).checks]
    assert secs == [1.0, *(2.0 + number for number in range(5, CHECKS + 5))]


def test_old_checks_go(world: World) -> None:
    register(world)
    world.db.workers.add_check("host/cpu", 1.0)
    world.clock.forward(timedelta(days=8).total_seconds())
    world.db.workers.add_check("host/cpu", 3.0)
    assert [check.secs for check in worker(world).checks] == [3.0]


def test_workers_that_are_gone_for_long_go_unless_somebody_decided_about_them(world: World) -> None:
    for id in ("gone", "drained", "slow", "here"):
        register(world, id)
        world.db.workers.add_check(id, 1.0)
    world.db.workers.drain("drained", drained=True)
    world.db.workers.quarantine("slow", "slow")
    world.clock.forward(timedelta(days=91).total_seconds())
    register(world, "here")
    world.db.workers.add_check("here", 2.0)
    assert world.db.workers.forget(90) == 1
    left = {view.id: [check.secs for check in view.checks] for view in world.db.workers.all(30)}
    assert left == {"drained": [], "slow": [], "here": [2.0]}


def test_quarantine_lasts_from_its_beginning_until_it_is_lifted(world: World) -> None:
    register(world)
    world.db.workers.quarantine("host/cpu", "slow")
    began = world.clock()
    world.clock.forward(5)
    world.db.workers.quarantine("host/cpu", "slower")
    assert (worker(world).quarantined_at, worker(world).quarantine_reason) == (began, "slower")
    # A heartbeat does not lift it.
    register(world)
    assert worker(world).quarantine_reason == "slower"
    world.db.workers.quarantine("host/cpu", None)
    assert (worker(world).quarantined_at, worker(world).quarantine_reason) == (None, None)


def told(world: World) -> list[tuple[str, dict[str, str]]]:
    """The events that are due for webhooks, with their facts, each once."""
    messages = [json.loads(due.body) for due in world.db.webhooks.claim_due(50, 60)]
    for due in world.db.webhooks.all():
        for delivery in world.db.webhooks.deliveries(due.id).items:
            world.db.webhooks.delivered(delivery.id)
    return [(message["type"], message["data"]) for message in messages]


MACHINE = {"worker": "host/cpu", "host": "host", "device": "cpu"}


def test_webhooks_are_told_once_when_a_quarantine_begins(world: World) -> None:
    world.db.webhooks.create("http://receiver", "whsec_", events=list(WebhookEvent), user_name="owner")
    register(world)
    world.db.workers.quarantine("host/cpu", "slow")
    facts = MACHINE | {"device_class": worker(world).device_class.id, "reason": "slow"}
    assert told(world) == [("worker.quarantined", facts)]
    world.db.workers.quarantine("host/cpu", "slower")
    world.db.workers.quarantine("host/cpu", None)
    world.db.workers.quarantine("nobody", "slow")
    assert told(world) == []
    world.db.workers.quarantine("host/cpu", "slow again")
    assert [event for event, _ in told(world)] == ["worker.quarantined"]


def test_webhooks_are_told_of_a_missing_worker_once_each_time(world: World) -> None:
    for url in ("http://one", "http://two"):
        world.db.webhooks.create(url, "whsec_", events=[WebhookEvent.WORKER_LOST], user_name="owner")
    register(world)
    register(world, "other/cpu")
    last_seen = world.clock()
    world.clock.forward(100)
    register(world, "other/cpu")
    assert world.db.workers.missing(120, 3600) == []
    world.db.workers.tell_missing("host/cpu", 120)
    world.db.workers.tell_missing("nobody", 120)
    assert told(world) == []
    world.clock.forward(30)
    assert world.db.workers.missing(120, 3600) == ["host/cpu"]
    world.db.workers.tell_missing("host/cpu", 120)
    facts = MACHINE | {"device_class": worker_of(world).device_class.id, "last_seen_at": last_seen.isoformat()}
    assert told(world) == [("worker.lost", facts)] * 2
    world.db.workers.tell_missing("host/cpu", 120)  # as another controller would
    assert told(world) == []
    register(world)
    world.clock.forward(130)
    world.db.workers.tell_missing("host/cpu", 120)
    assert [event for event, _ in told(world)] == ["worker.lost"] * 2
    world.clock.forward(3600)
    assert world.db.workers.missing(120, 3600) == []


def worker_of(world: World, id: str = "host/cpu") -> WorkerView:
    return next(view for view in world.db.workers.all(30) if view.id == id)


def test_readmission_forgets_what_was_before(world: World) -> None:
    register(world)
    lose(world, 3)
    world.db.workers.add_check("host/cpu", 1.0)
    world.db.workers.quarantine("host/cpu", "slow")
    world.clock.forward(1)
    world.db.workers.readmit("host/cpu")
    view = worker(world)
    assert (view.quarantined_at, view.quarantine_reason, view.checks) == (None, None, ())
    assert world.db.workers.lost(600) == {}
    world.clock.forward(1)
    world.db.workers.add_check("host/cpu", 2.0)
    assert [check.secs for check in worker(world).checks] == [2.0]
    with pytest.raises(NotFound):
        world.db.workers.readmit("nobody")


def lose(world: World, count: int, worker: str = "host/cpu", kind: FailureKind = FailureKind.DEVICE_LOST) -> None:
    claimed, task = world.started(f"w{world.clock().timestamp()}")
    candidates = [MeasureCandidate(f"[{number}]", Origin.RANDOM) for number in range(count)]
    for trial in world.db.trials.propose(task.id, claimed.lease_token, candidates):
        world.db.trials.finish(trial.id, claimed.lease_token, Failure(Stage.RUN, kind, "gone", worker))
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.FAILED, "for the test")
    world.clock.forward(1)


def test_lost_trials_are_counted_by_worker_and_time(world: World) -> None:
    register(world)
    lose(world, 2)
    lose(world, 4, worker="host/cuda:0")
    lose(world, 4, kind=FailureKind.CRASH)
    lose(world, 4, kind=FailureKind.KILLED)  # that is the candidates' doing
    assert world.db.workers.lost(600).get("host/cpu") == 2
    world.clock.forward(300)
    lose(world, 1)
    assert world.db.workers.lost(600).get("host/cpu") == 3
    world.clock.forward(400)
    assert world.db.workers.lost(600).get("host/cpu") == 1


def test_a_worker_is_drained_from_the_first_time_until_it_is_let_in(world: World) -> None:
    register(world)
    assert (worker(world).drained_at, world.db.workers.drained()) == (None, frozenset())
    began = world.clock()
    world.db.workers.drain("host/cpu", drained=True)
    world.clock.forward(5)
    register(world)
    world.db.workers.drain("host/cpu", drained=True)
    assert (worker(world).drained_at, world.db.workers.drained()) == (began, {"host/cpu"})
    world.db.workers.drain("host/cpu", drained=False)
    assert (worker(world).drained_at, world.db.workers.drained()) == (None, frozenset())
    with pytest.raises(NotFound):
        world.db.workers.drain("nobody", drained=True)


def test_a_worker_whose_host_leaves_gets_no_work_until_it_is_back(world: World) -> None:
    register(world, activity=Activity(leaving=True))
    assert world.db.workers.drained() == {"host/cpu"}
    assert worker(world).activity.leaving
    register(world)
    assert world.db.workers.drained() == frozenset()


def test_checks_are_read_of_the_workers_that_have_new_ones(world: World) -> None:
    assert world.db.workers.checks_after(0) == (0, {})
    for id in ("a/cpu", "b/cpu"):
        register(world, id)
        for secs in (2.0, 1.0, 3.0):
            world.clock.forward(1)
            world.db.workers.add_check(id, secs)
    newest, checks = world.db.workers.checks_after(0)
    assert {id: [check.secs for check in own] for id, own in checks.items()} == {
        "a/cpu": [2.0, 1.0, 3.0],
        "b/cpu": [2.0, 1.0, 3.0],
    }
    assert world.db.workers.checks_after(newest) == (newest, {})
    world.db.workers.readmit("b/cpu")
    world.clock.forward(1)
    world.db.workers.add_check("b/cpu", 5.0)
    again, changed = world.db.workers.checks_after(newest)
    assert again > newest
    assert {id: [check.secs for check in own] for id, own in changed.items()} == {"b/cpu": [5.0]}


def test_standings_say_who_is_held_out_and_since_when_slots_are_taken(world: World) -> None:
    register(world, "a/cpu", activity=Activity(slot_since=world.clock()))
    register(world, "b/cpu")
    world.db.workers.quarantine("b/cpu", "slow")
    assert world.db.workers.standings() == {
        "a/cpu": WorkerStanding(world.clock(), None, None),
        "b/cpu": WorkerStanding(None, "slow", None),
    }
    world.db.workers.readmit("b/cpu")
    assert world.db.workers.standings()["b/cpu"] == WorkerStanding(None, None, world.clock())
