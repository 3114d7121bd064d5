"""What users use, and what is refused when that is too much."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from db import IdempotencyConflict
from db.access.views import DayView, Quota
from db.errors import QuotaExceeded
from db.states import Scope
from loopwright.codegen.kinds import FailureKind, JobState, Lane, Stage
from tests.contract.db.conftest import World
from tuner.types import Failure, Measured, Span

DAY = 86400.0


def user(world: World, **limits: Any) -> str:
    world.db.users.create("ada", Scope.SUBMIT, Quota(**limits))
    return "ada"


def test_trials_and_jobs_are_counted_on_their_day(world: World) -> None:
    ada = user(world)
    claimed, task = world.started(user_name=ada, module_json="{...}")
    trials = world.propose(claimed, task, "[0]", "[1]", "[2]")
    spans = (Span(Lane.BUILD, "b", 0.0, 5.0), Span(Lane.MEASURE, "w", 5.0, 5.5))
    world.db.trials.finish(trials[0].id, claimed.lease_token, Measured((0.1,), "w", spans))
    use = world.db.uses.of(ada)
    assert use.today == DayView("2030-01-01", 1, 1, 0.5, 5)
    assert (use.active_jobs, use.pending_trials) == (1, 63)
    world.clock.forward(DAY)
    world.db.jobs.renew(claimed.job.id, claimed.lease_token, 1e6)
    failure = Failure(Stage.RUN, FailureKind.CRASH, "died", "w", spans)
    world.db.trials.finish(trials[1].id, claimed.lease_token, failure)
    # A finished trial is counted once.
    world.db.trials.finish(trials[1].id, claimed.lease_token, failure)
    use = world.db.uses.of(ada)
    assert use.today == DayView("2030-01-02", 0, 1, 0.5, 0)
    assert [day.day for day in use.days] == ["2030-01-02", "2030-01-01"]
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    use = world.db.uses.of(ada)
    assert (use.active_jobs, use.pending_trials) == (0, 0)
    assert world.db.uses.of("owner").days == ()


def test_too_many_active_jobs_are_refused(world: World) -> None:
    ada = user(world, active_jobs=2)
    first = world.job(user_name=ada)
    world.job(user_name=ada)
    with pytest.raises(QuotaExceeded, match="2 jobs that are queued or running") as error:
        world.job("unseen", user_name=ada)
    assert error.value.retry_after_s is None
    # Nothing of it is stored, and others are not concerned.
    assert "unseen" not in {view.hash for view in world.db.workloads.page().items}
    world.job(user_name="owner")
    world.db.jobs.request_cancel(first.id)
    world.job(user_name=ada)


def test_trials_are_promised_before_they_are_made(world: World) -> None:
    ada = user(world, daily_trials=100)
    claimed, task = world.started(user_name=ada, max_trials=60)
    with pytest.raises(QuotaExceeded, match="60 are in use, and this request needs 41 more") as error:
        world.job(user_name=ada, max_trials=41)
    assert error.value.retry_after_s == DAY + 1
    (trial,) = world.propose(claimed, task, "[0]")
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.1,), "w"))
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    # What an ended job did not use is free again.
    world.job(user_name=ada, max_trials=99)
    with pytest.raises(QuotaExceeded):
        world.job(user_name=ada, max_trials=1)


def test_a_new_day_has_limits_of_its_own(world: World) -> None:
    ada = user(world, daily_bytes=10, daily_device_seconds=1.0)
    world.job(user_name=ada, module_json="123456")
    with pytest.raises(QuotaExceeded, match="bytes of modules"):
        world.job(user_name=ada, module_json="12345")
    claimed = world.claim()
    task = world.task(claimed.job.id)
    assert world.db.tasks.try_start(task.id, claimed.lease_token)
    (trial,) = world.propose(claimed, task, "[0]")
    long = (Span(Lane.MEASURE, "w", 0.0, 1.5),)
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.1,), "w", long))
    with pytest.raises(QuotaExceeded, match="device seconds"):
        world.job(user_name=ada, module_json="1")
    world.clock.forward(DAY)
    world.job(user_name=ada, module_json="1234567890")


def test_imports_count_to_the_bytes_of_a_day(world: World) -> None:
    ada = user(world, daily_bytes=10)
    world.db.uses.admit_import(ada, 6)
    for request in (lambda: world.db.uses.admit_import(ada, 5), lambda: world.job(user_name=ada, module_json="12345")):
        with pytest.raises(QuotaExceeded, match="bytes of modules and imports"):
            request()
    assert world.db.uses.of(ada).today.bytes == 6
    world.clock.forward(DAY)
    world.db.uses.admit_import(ada, 10)


def test_of_many_submissions_at_once_no_more_are_taken_than_fit(world: World) -> None:
    ada = user(world, active_jobs=3)

    def submit(number: int) -> bool:
        try:
            world.job(f"w{number}", user_name=ada)
        except QuotaExceeded:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(submit, range(12))) == 3


def test_a_repeated_request_is_not_counted_again(world: World) -> None:
    ada = user(world, active_jobs=1)
    first = world.job(user_name=ada, idempotency_key="k", request_digest="d")
    assert world.job(user_name=ada, idempotency_key="k", request_digest="d") == first
    assert world.db.uses.of(ada).today.jobs == 1


def test_a_key_is_its_users_own(world: World) -> None:
    ada = user(world)
    mine = world.job(idempotency_key="k", request_digest="d")
    other = world.job(user_name=ada, idempotency_key="k", request_digest="another")
    assert mine.id != other.id
    with pytest.raises(IdempotencyConflict):
        world.job(user_name=ada, idempotency_key="k", request_digest="d")
