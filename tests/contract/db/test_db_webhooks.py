"""Webhooks: what is queued for them with a change, who sends it, how often, and when it is given up."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest

from db import InvalidPage, NotFound
from db.access.webhooks import MAX_ATTEMPTS, DeliveryView, DueDelivery, notify
from db.states import FinalState, WebhookEvent
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World

EVERY_EVENT = list(WebhookEvent)
HOLD = 60.0


def webhook(world: World, *events: WebhookEvent, url: str = "https://example.org/hook") -> str:
    """The id of a new one, which wants all events unless some are given."""
    made = world.db.webhooks.create(url, "whsec_c2VjcmV0", events=events or EVERY_EVENT, user_name="owner")
    return made.id


def claim(world: World, limit: int = 50) -> list[DueDelivery]:
    return world.db.webhooks.claim_due(limit, HOLD)


def deliveries(world: World, webhook_id: str) -> list[DeliveryView]:
    return list(world.db.webhooks.deliveries(webhook_id, 500).items)


def finish(world: World, state: FinalState = JobState.SUCCEEDED, error: str | None = None, **fields: Any) -> str:
    """The id of a job that has ended."""
    job = world.job(**fields)
    assert world.db.jobs.finish(job.id, world.claim().lease_token, state, error)
    return job.id


def test_webhooks_are_listed_with_who_made_them(world: World) -> None:
    first = webhook(world, WebhookEvent.JOB_FINISHED, WebhookEvent.JOB_FINISHED)
    world.clock.forward(1)
    second = webhook(world)
    views = world.db.webhooks.all()
    assert [view.id for view in views] == [second, first]
    assert views[1].events == (WebhookEvent.JOB_FINISHED,)
    assert (views[1].url, views[1].user_name) == ("https://example.org/hook", "owner")
    assert "whsec" not in repr(views)


def test_the_end_of_a_job_is_queued_for_the_webhooks_that_want_it(world: World) -> None:
    wanting = webhook(world, WebhookEvent.JOB_FINISHED)
    other = webhook(world, WebhookEvent.BEST_REGRESSED)
    job_id = finish(world, JobState.FAILED, "a \x00 and \udc80", name="nightly")
    assert deliveries(world, other) == []
    (queued,) = deliveries(world, wanting)
    assert (queued.event, queued.attempts, queued.next_at) == ("job.finished", 0, world.clock())
    (due,) = claim(world)
    assert (due.id, due.webhook_id, due.url) == (queued.id, wanting, "https://example.org/hook")
    assert json.loads(due.body) == {
        "type": "job.finished",
        "timestamp": "2030-01-01T00:00:00+00:00",
        "data": {
            "job_id": job_id,
            "name": "nightly",
            "state": "failed",
            "error": "a \x00 and \ufffd",
            "owner": "owner",
        },
    }


def test_a_job_that_is_cancelled_in_the_queue_has_finished_too(world: World) -> None:
    webhook(world)
    job = world.job()
    for _ in range(2):
        world.db.jobs.request_cancel(job.id)
    (due,) = claim(world)
    assert json.loads(due.body)["data"]["state"] == "cancelled"


def test_nothing_is_sent_of_a_change_that_was_rolled_back(world: World) -> None:
    made = webhook(world)

    def change(error: Exception | None) -> None:
        with world.db._sessions.write() as session:
            notify(session, WebhookEvent.BEST_REGRESSED, {"workload": "w0"}, world.clock())
            session.flush()
            if error is not None:
                raise error

    with pytest.raises(RuntimeError, match="undone"):
        change(RuntimeError("undone"))
    assert deliveries(world, made) == []
    change(None)
    assert [view.event for view in deliveries(world, made)] == ["best.regressed"]


def test_a_claimed_delivery_is_held_and_then_due_again(world: World) -> None:
    made = webhook(world)
    finish(world)
    (first,) = claim(world)
    assert claim(world) == []
    world.clock.forward(HOLD)
    assert claim(world) == [first]
    world.db.webhooks.delivered(first.id)
    world.clock.forward(HOLD)
    assert claim(world) == []
    (view,) = deliveries(world, made)
    assert (view.attempts, view.next_at) == (2, None)
    assert view.delivered_at == world.clock() - timedelta(seconds=HOLD)


def test_the_longest_due_are_claimed_first(world: World) -> None:
    made = webhook(world)
    for _ in range(5):
        world.db.webhooks.test(made)
        world.clock.forward(1)
    newest_first = [view.id for view in deliveries(world, made)]
    assert [due.id for due in [*claim(world, 2), *claim(world, 2), *claim(world, 2)]] == newest_first[::-1]


def test_two_claimers_never_get_the_same(world: World) -> None:
    made = webhook(world)
    for _ in range(40):
        world.db.webhooks.test(made)
    with ThreadPoolExecutor(8) as pool:
        batches = list(pool.map(lambda _: claim(world, 5), range(16)))
    claimed = [due.id for batch in batches for due in batch]
    assert len(claimed) == len(set(claimed))
    # Those that another claimer had locked were skipped.
    rest = [due.id for due in claim(world)]
    assert sorted([*claimed, *rest]) == sorted(view.id for view in deliveries(world, made))


def test_failures_are_tried_again_ever_later_and_then_given_up(world: World) -> None:
    made = webhook(world)
    world.db.webhooks.test(made)
    waits: list[float] = []
    while due := claim(world):
        world.db.webhooks.failed(due[0].id, f"status {500 + len(waits)}")
        (view,) = deliveries(world, made)
        if view.next_at is not None:
            waits.append((view.next_at - world.clock()).total_seconds())
            world.clock.forward(waits[-1] - 1)
            assert claim(world) == []
            world.clock.forward(1)
    assert waits == [10, 40, 160, 640, 2560, 10240, *[6 * 3600] * 5]
    assert (view.attempts, view.delivered_at, view.last_error) == (MAX_ATTEMPTS, None, "status 511")
    world.clock.forward(30 * 86400)
    assert claim(world) == []


def test_a_late_failure_does_not_undo_what_arrived(world: World) -> None:
    made = webhook(world)
    world.db.webhooks.test(made)
    (late,) = claim(world)
    world.clock.forward(HOLD)
    (again,) = claim(world)
    world.db.webhooks.delivered(again.id)
    world.db.webhooks.failed(late.id, "no answer")
    (view,) = deliveries(world, made)
    assert (view.next_at, view.last_error) == (None, None)
    assert view.delivered_at is not None


def test_a_webhook_is_deleted_with_its_deliveries(world: World) -> None:
    gone, kept = webhook(world), webhook(world)
    finish(world)
    claimed = claim(world)
    world.db.webhooks.delete(gone)
    assert [view.id for view in world.db.webhooks.all()] == [kept]
    for due in claimed:
        world.db.webhooks.failed(due.id, "status 500")
        world.db.webhooks.delivered(due.id)
    world.clock.forward(86400)
    assert claim(world) == []
    for use in (world.db.webhooks.delete, world.db.webhooks.test, world.db.webhooks.deliveries):
        with pytest.raises(NotFound, match=gone):
            use(gone)


def test_jobs_end_while_webhooks_are_deleted(world: World) -> None:
    ids = [world.job(f"w{number}").id for number in range(20)]
    hooks = [webhook(world) for _ in range(20)]
    with ThreadPoolExecutor(4) as pool:
        ended = pool.map(world.db.jobs.request_cancel, ids)
        deleted = pool.map(world.db.webhooks.delete, hooks)
        assert (len(list(ended)), len(list(deleted))) == (20, 20)
    assert {world.db.jobs.get(job_id).state for job_id in ids} == {JobState.CANCELLED}
    assert claim(world) == []


def test_deliveries_are_read_in_pages_the_newest_first(world: World) -> None:
    made, other = webhook(world), webhook(world)
    ids = []
    for _ in range(3):
        ids.append(world.db.webhooks.test(made).id)
        world.db.webhooks.test(other)
        world.clock.forward(1)
    first = world.db.webhooks.deliveries(made, 2)
    rest = world.db.webhooks.deliveries(made, 2, first.next_page_token)
    assert [view.id for view in (*first.items, *rest.items)] == ids[::-1]
    assert rest.next_page_token is None
    with pytest.raises(InvalidPage):
        world.db.webhooks.deliveries(made, 2, "no token")


def test_old_deliveries_are_forgotten(world: World) -> None:
    made = webhook(world)
    for _ in range(4):
        world.db.webhooks.test(made)
        world.clock.forward(86400)
    assert world.db.webhooks.forget(2.5) == 2
    assert len(deliveries(world, made)) == 2
    assert [view.id for view in world.db.webhooks.all()] == [made]
