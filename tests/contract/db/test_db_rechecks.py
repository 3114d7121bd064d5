"""Bests that are raced anew: which are due, and what becomes of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from db.states import EventType, WebhookEvent
from db.views import ClaimedJob, Rechecked
from loopwright.codegen import signatures
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.errors import LeaseLost
from tuner.types import DeviceClass

DAY = 86400.0
SYSTEM = "Linux 6.1"


def due(world: World, machine: DeviceClass | None = None, systems: tuple[str, ...] = (SYSTEM,), limit: int = 20) -> Any:
    return world.db.rechecks.due(machine or world.device_class, systems, "0.27", 30, limit)


def result(verdict: str, conditions: str | None = f"runtime 1, {SYSTEM}") -> dict[str, Any]:
    return {"verdict": verdict, "conditions": conditions}


def recheck_job(world: World, *certificate_ids: str) -> ClaimedJob:
    """A claimed job that is to race these certificates anew."""
    world.job(rechecks=tuple((each, "a user asked") for each in certificate_ids))
    return world.claim()


def checked(world: World, certificate_id: str, verdict: str, holds: bool | None, **conditions: Any) -> None:
    claimed = recheck_job(world, certificate_id)
    world.db.rechecks.store(
        claimed.job.id, claimed.lease_token, certificate_id, result(verdict, **conditions), holds=holds
    )
    assert world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)


def test_bests_are_due_when_they_are_old_the_oldest_first(world: World) -> None:
    _, first = world.measured(0.5, hash="w-1")
    world.clock.forward(DAY)
    _, second = world.measured(0.5, hash="w-2")
    assert due(world) == []
    world.clock.forward(29.5 * DAY)
    assert [each.certificate_id for each in due(world)] == [first]
    world.clock.forward(DAY)
    assert [each.certificate_id for each in due(world)] == [first, second]
    assert [each.certificate_id for each in due(world, limit=1)] == [first]
    assert due(world)[0].reason == "it was raced over 30 days ago"
    checked(world, first, "holds", holds=True)
    assert [each.certificate_id for each in due(world)] == [second]


def test_the_unscheduled_program_is_not_raced_with_itself(world: World) -> None:
    world.measured(2.0, hash="w-1")
    world.clock.forward(100 * DAY)
    assert due(world) == []


def test_other_machines_are_not_asked(world: World) -> None:
    world.measured(0.5)
    world.clock.forward(100 * DAY)
    for changes in ({"model": "cpu-2"}, {"cores": 4}, {"threads": 4}):
        assert due(world, replace(world.device_class, **changes)) == []
    assert len(due(world, replace(world.device_class, target_json='{"kind":"llvm","mcpu":"other"}'))) == 1


def test_another_kernel_driver_or_tvm_makes_bests_due_a_day_later(world: World) -> None:
    _, certificate = world.measured(0.5)
    checked(world, certificate, "holds", holds=True)
    world.clock.forward(2 * DAY)
    assert due(world) == []
    assert due(world, systems=("Linux 6.8", SYSTEM)) == []
    [found] = due(world, systems=("Linux 6.8",))
    assert found.reason == f"it was raced with runtime 1, {SYSTEM}"
    newer = replace(world.device_class, runtime="runtime 2")
    [found] = due(world, newer)
    assert found.device_class == world.device_class
    # Workloads that were stored with another TVM cannot be read by this one.
    assert world.db.rechecks.due(newer, (SYSTEM,), "0.28", 30, 20) == []
    checked(world, certificate, "unclear", holds=None, conditions=None)
    assert due(world, newer) == []
    world.clock.forward(1.5 * DAY)
    assert len(due(world, newer)) == 1


def test_a_best_that_does_not_hold_gives_way(world: World) -> None:
    _, slower = world.measured(0.5)
    world.clock.forward(1)
    _, fastest = world.measured(0.1, budget=32)
    assert world.db.certificates.best("w0", world.device_class.id).certificate.id == fastest
    before = world.clock.time
    checked(world, fastest, "regression", holds=False)
    best = world.db.certificates.best("w0", world.device_class.id)
    assert best is not None
    assert best.certificate.id == slower
    known = world.db.certificates.known("w0", world.device_class.id, best.certificate.space_hash, 1)
    assert known is not None
    assert known.id == slower
    # If none holds, the fastest stays, with a mark.
    world.clock.forward(1)
    checked(world, slower, "failed", holds=False)
    best = world.db.certificates.best("w0", world.device_class.id)
    assert best is not None
    assert (best.certificate.id, best.certificate.regressed_at) == (fastest, before)
    assert world.db.certificates.known("w0", world.device_class.id, best.certificate.space_hash, 1) is None
    [row] = world.db.best_schedules.gainers(5, 5)
    assert row.regressed
    # An unclear race takes nothing back; one that shows that it holds does.
    checked(world, fastest, "unclear", holds=None)
    assert world.db.best_schedules.gainers(5, 5)[0].regressed
    checked(world, fastest, "holds", holds=True)
    assert not world.db.best_schedules.gainers(5, 5)[0].regressed


def test_what_came_of_it_is_stored_under_the_jobs_lease_and_told_as_an_event(world: World) -> None:
    _, certificate = world.measured(0.5)
    claimed = recheck_job(world, certificate)
    assert world.db.rechecks.ongoing()
    [view] = world.db.rechecks.of_job(claimed.job.id)
    assert (view.certificate_id, view.workload_hash, view.best_median, view.baseline_median, view.result) == (
        certificate,
        "w0",
        0.5,
        1.0,
        None,
    )
    with pytest.raises(LeaseLost):
        world.db.rechecks.store(claimed.job.id, "another token", certificate, result("holds"), holds=True)
    world.db.rechecks.store(claimed.job.id, claimed.lease_token, certificate, result("regression"), holds=False)
    assert world.db.rechecks.of_job(claimed.job.id)[0].result == result("regression")
    [event] = [each for each in world.db.events.after(claimed.job.id) if each.type is EventType.RECHECK]
    assert event.change == Rechecked("w0", "name_w0", result("regression"))
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)
    assert not world.db.rechecks.ongoing()


@pytest.mark.parametrize(("verdict", "holds"), [("holds", True), ("regression", False), ("unclear", None)])
def test_what_a_recheck_says_is_signed(world: World, verdict: str, holds: bool | None) -> None:
    trials, certificate = world.measured(0.5)
    claimed = recheck_job(world, certificate)
    assert world.db.rechecks.of_job(claimed.job.id)[0].signed is None
    before = world.db.lookup.keys(["w0"], world.device_class.target_json)
    world.clock.forward(DAY)
    world.db.rechecks.store(
        claimed.job.id, claimed.lease_token, certificate, result(verdict, "runtime 1, Linux 6.8"), holds=holds
    )
    assert world.db.lookup.keys(["w0"], world.device_class.target_json) != before  # what is sent of it changes
    [view] = world.db.rechecks.of_job(claimed.job.id)
    found = world.db.records.get(trials[1].id).certificate
    assert view.signed is not None
    assert found is not None
    assert found.verdict == view.signed
    [key] = world.db.signing_keys.published()
    assert signatures.is_signed(view.signed.document, view.signed.signature, key.public_key)
    assert json.loads(view.signed.document) == {
        "format": 1,
        "kind": "recheck",
        "certificate_id": certificate,
        "workload_hash": "w0",
        "device_class": world.device_class.id,
        "job_id": claimed.job.id,
        "checked_at": world.clock.time.isoformat(),
        "conditions": "runtime 1, Linux 6.8",
        "regressed_at": world.clock.time.isoformat() if holds is False else None,
        "result": result(verdict, "runtime 1, Linux 6.8"),
    }


def test_webhooks_are_told_once_that_a_best_does_not_hold(world: World) -> None:
    webhook = world.db.webhooks.create(
        "http://receiver", "whsec_", events=[WebhookEvent.BEST_REGRESSED], user_name="owner"
    )
    _, certificate = world.measured(0.5)
    for verdict, holds in (("holds", True), ("unclear", None), ("regression", False), ("failed", False)):
        checked(world, certificate, verdict, holds=holds)
    [told] = world.db.webhooks.claim_due(10, 60)
    data = json.loads(told.body)["data"]
    assert (told.webhook_id, json.loads(told.body)["type"]) == (webhook.id, "best.regressed")
    assert (data["verdict"], data["certificate_id"], data["name"]) == ("regression", certificate, "name_w0")
    assert data["certified_best_us"] == pytest.approx(0.5e6)
    checked(world, certificate, "holds", holds=True)
    checked(world, certificate, "failed", holds=False)
    assert len(world.db.webhooks.claim_due(10, 60)) == 1


def test_what_is_private_is_said(world: World) -> None:
    world.measured(0.5, hash="w-1", private=True)
    world.measured(0.5, hash="w-2")
    found = world.db.rechecks.asked(["w-1", "w-2"], world.device_class)
    assert [each.shared for each in found] == [False, True]


def test_a_user_asks_for_bests_of_a_target(world: World) -> None:
    _, certificate = world.measured(0.5, hash="w-1")
    world.measured(2.0, hash="w-2")
    assert [each.certificate_id for each in world.db.rechecks.asked(["w-1", "w-2", "w-3"], world.device_class)] == [
        certificate
    ]
    other = replace(world.device_class, target_json='{"kind":"cuda"}')
    assert world.db.rechecks.asked(["w-1"], other) == []
