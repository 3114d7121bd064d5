"""What monitoring asks: the queue, workers, deliveries, use, and the tables' revision."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from db import revisions
from db.inputs import WorkerReport
from db.states import LeaseLoss, WebhookEvent
from db.upkeep.gauges import Outbox, Queue, Use
from loopwright.codegen.kinds import JobState, SandboxLevel
from tests.contract.db.conftest import World
from tuner.types import Activity


def test_the_queue_is_empty_at_first(world: World) -> None:
    assert world.db.gauges.queue() == Queue(oldest_secs=0, leases=0, expired=0, reclaims=0, most_claims=0)


def test_the_age_of_the_queue_is_that_of_its_oldest_job(world: World) -> None:
    world.job("a")
    world.clock.forward(20)
    world.job("b")
    world.clock.forward(5)
    assert world.db.gauges.queue().oldest_secs == pytest.approx(25)
    assert world.db.gauges.wanted_devices() == {world.device_class.id: 2}
    claimed = world.claim(seconds=30)
    assert world.db.gauges.queue().oldest_secs == pytest.approx(5)
    other = replace(world.device_class, threads=4)
    world.job("b", device_class=other)
    assert world.db.gauges.wanted_devices() == {world.device_class.id: 2, other.id: 1}
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.FAILED)
    assert world.db.gauges.wanted_devices() == {world.device_class.id: 1, other.id: 1}


def test_leases_are_held_until_they_expire_and_claims_are_counted_until_the_job_ends(world: World) -> None:
    world.job("a")
    first = world.claim(seconds=30)
    assert world.db.gauges.queue() == Queue(oldest_secs=0, leases=1, expired=0, reclaims=0, most_claims=1)
    world.clock.forward(31)
    assert world.db.gauges.queue() == Queue(oldest_secs=0, leases=0, expired=1, reclaims=0, most_claims=1)
    again = world.claim(seconds=30)
    assert again.job.id == first.job.id
    assert world.db.gauges.queue() == Queue(oldest_secs=0, leases=1, expired=0, reclaims=1, most_claims=2)
    world.db.jobs.request_cancel(again.job.id)
    assert world.db.jobs.finish(again.job.id, again.lease_token, "cancelled")  # type: ignore[arg-type]
    assert world.db.gauges.queue() == Queue(oldest_secs=0, leases=0, expired=0, reclaims=0, most_claims=0)


def test_leases_that_expire_and_those_of_loops_that_die_are_counted_and_others_are_not(world: World) -> None:
    assert world.db.counts().lease_losses == {}
    world.job("a")
    world.claim(seconds=30)
    assert world.db.counts().lease_losses == {}
    world.clock.forward(31)
    taken_over = world.claim(seconds=30)
    assert world.db.counts().lease_losses == {LeaseLoss.EXPIRED: 1}
    assert world.db.jobs.release(taken_over.job.id, taken_over.lease_token)
    again = world.claim(seconds=30)
    assert world.db.counts().lease_losses == {LeaseLoss.EXPIRED: 1}
    assert world.db.jobs.release(again.job.id, again.lease_token, died=True)
    # An earlier holder has nothing more to lose.
    assert not world.db.jobs.release(again.job.id, taken_over.lease_token, died=True)
    assert world.db.counts().lease_losses == {LeaseLoss.EXPIRED: 1, LeaseLoss.DIED: 1}
    last = world.claim(seconds=30)
    world.clock.forward(31)
    # One that expires and is taken up by nobody else is not lost.
    assert world.db.jobs.finish(last.job.id, last.lease_token, JobState.CANCELLED)
    assert world.db.counts().lease_losses == {LeaseLoss.EXPIRED: 1, LeaseLoss.DIED: 1}


def register(world: World, worker_id: str, **activity: Any) -> None:
    machine: dict[str, Any] = {"host": worker_id, "device": "cpu", "device_class": world.device_class, "builders": 2}
    report = WorkerReport(worker_id, **machine, sandbox=SandboxLevel.NONE, activity=Activity(**activity))
    world.db.workers.register(report)


def test_workers_of_the_last_day_are_told_with_what_live_ones_do(world: World) -> None:
    register(world, "left")
    world.clock.forward(23 * 3600)
    register(world, "lost", builders_busy=2, slot_use=1.0)
    world.clock.forward(2 * 3600)
    register(world, "slow")
    world.db.workers.quarantine("slow", "too slow")
    world.db.workers.drain("slow", drained=True)
    register(world, "well", builders_busy=1, slot_use=0.5)
    found = world.db.gauges.workers(30)
    assert [(worker.id, worker.alive, worker.quarantined, worker.drained) for worker in found] == [
        ("lost", False, False, False),
        ("slow", True, True, True),
        ("well", True, False, False),
    ]
    assert [(worker.builders_busy, worker.slot_use) for worker in found] == [(0, None), (0, None), (1, 0.5)]
    assert found[-1].last_seen_at == world.clock()


def test_deliveries_are_pending_then_retried_then_given_up(world: World) -> None:
    made = world.db.webhooks.create("http://receiver", "whsec_", events=[WebhookEvent.JOB_FINISHED], user_name="owner")
    world.db.webhooks.test(made.id)
    world.db.webhooks.test(made.id)
    assert world.db.gauges.outbox() == Outbox(pending=2, retrying=0, given_up=0)
    one, other = world.db.webhooks.claim_due(10, 60)
    world.db.webhooks.delivered(one.id)
    world.db.webhooks.failed(other.id, "status 500")
    assert world.db.gauges.outbox() == Outbox(pending=0, retrying=1, given_up=0)
    while world.db.gauges.outbox().retrying:
        world.clock.forward(3 * 3600)
        for due in world.db.webhooks.claim_due(10, 60):
            world.db.webhooks.failed(due.id, "status 500")
    assert world.db.gauges.outbox() == Outbox(pending=0, retrying=0, given_up=1)
    world.clock.forward(7 * 86400)
    assert world.db.gauges.outbox() == Outbox(pending=0, retrying=0, given_up=0)


def test_use_is_summed_over_users_and_days(world: World) -> None:
    assert world.db.gauges.use() == Use(jobs=0, device_secs=0)
    world.job("a")
    world.clock.forward(2 * 86400)
    world.job("b")
    assert world.db.gauges.use().jobs == 2


def test_the_revision_and_the_connections_are_told(world: World) -> None:
    assert world.db.gauges.revision() == revisions.newest()
    connections = world.db.gauges.connections()
    assert connections.used == 0
    assert 1 <= connections.idle <= connections.most
