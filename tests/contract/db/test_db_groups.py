"""Jobs of one submission for several targets: stored together, and each a job of its own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, cast

import pytest
from sqlalchemy.exc import IntegrityError

from db import IdempotencyConflict, InvalidPage
from db.access.views import DayView, Quota
from db.access.visibility import Viewer
from db.errors import QuotaExceeded
from db.inputs import NewJob
from db.states import Scope
from db.views import JobView
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.budget import Budget
from tuner.types import TaskSpec

TARGETS = ('{"kind":"llvm"}', '{"arch":"sm_90","kind":"cuda"}', '{"kind":"llvm","mcpu":"x86-64-v3"}')


def group(world: World, *targets: str, weight: int = 2, max_trials: int = 64, **fields: Any) -> list[JobView]:
    """The jobs of one submission for ``targets``, all of `TARGETS` by default."""
    jobs = []
    for target in targets or TARGETS:
        device_class = replace(world.device_class, target_json=target)
        required: dict[str, Any] = {"name": "job", "module_json": "{}", "device_class": device_class}
        new = NewJob(**required | {"budget": Budget(max_trials)} | fields)
        jobs.append((new, [TaskSpec(world.workload(), weight)]))
    return world.db.jobs.create_group(jobs, "0.27")


def test_a_group_has_a_job_for_each_target_in_their_order(world: World) -> None:
    alone, first, second = world.job(), group(world), group(world)
    assert alone.group_id is None
    assert [job.target_json for job in first] == list(TARGETS)
    assert [job.target_json for job in second] == list(TARGETS)
    [group_id] = {job.group_id for job in first}
    assert group_id not in (None, second[0].group_id)
    assert len({world.task(job.id).workload_hash for job in first}) == 1
    assert len({job.device_class_id for job in first}) == 3
    assert world.db.jobs.page(group_id=group_id).items == tuple(first)
    assert len(world.db.jobs.page().items) == 7


def test_a_group_is_read_page_by_page(world: World) -> None:
    jobs = group(world)
    page = world.db.jobs.page(2, group_id=jobs[0].group_id)
    rest = world.db.jobs.page(2, page.next_page_token, group_id=jobs[0].group_id)
    assert (*page.items, *rest.items) == tuple(jobs)
    assert rest.next_page_token is None
    with pytest.raises(InvalidPage):
        world.db.jobs.page(2, page.next_page_token)
    assert world.db.jobs.page(group_id="none").items == ()


def test_the_same_key_and_request_give_the_same_group(world: World) -> None:
    key: dict[str, Any] = {"idempotency_key": "key", "request_digest": "one"}
    first = group(world, **key)
    assert group(world, **key) == first
    assert world.db.jobs.earlier("owner", "key", "one") == first
    for again in (group, World.job):
        with pytest.raises(IdempotencyConflict):
            again(world, idempotency_key="key", request_digest="two")
    assert len(world.db.jobs.page().items) == 3


def test_equal_requests_at_once_give_one_group(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        groups = list(pool.map(lambda _: group(world, idempotency_key="key", request_digest="one"), range(16)))
    assert all(each == groups[0] for each in groups)
    assert len(world.db.jobs.page().items) == 3


def test_groups_of_the_same_workloads_are_stored_at_once(world: World) -> None:
    with ThreadPoolExecutor(8) as pool:
        orders = [TARGETS, TARGETS[::-1]] * 8
        groups = list(pool.map(lambda targets: group(world, *targets), orders))
    assert [tuple(job.target_json for job in each) for each in groups] == orders


def test_nothing_of_a_group_is_stored_if_one_job_cannot_be(world: World) -> None:
    good = NewJob("job", "{}", world.device_class, Budget(64)), [TaskSpec(world.workload("a"), 1)]
    bad = replace(good[0], device_class=replace(world.device_class, cores=1)), [TaskSpec(world.workload("b"), 1)]
    bad[1].append(TaskSpec(world.workload("c"), cast(int, None)))
    with pytest.raises(IntegrityError):
        world.db.jobs.create_group([good, bad], "0.27")
    assert world.db.jobs.page().items == ()
    assert world.db.workloads.page().items == ()
    assert world.db.uses.of("owner").days == ()


def test_each_job_of_a_group_counts_towards_the_limits(world: World) -> None:
    world.db.users.create("ada", Scope.SUBMIT, Quota(active_jobs=4, daily_trials=250, daily_bytes=8))
    with pytest.raises(QuotaExceeded, match=r"250 trials a day .* this request needs 300 more"):
        group(world, user_name="ada", max_trials=100)
    with pytest.raises(QuotaExceeded, match=r"8 bytes .* this request needs 9 more"):
        group(world, user_name="ada", module_json="[0]")
    assert world.db.jobs.page().items == ()
    group(world, user_name="ada", max_trials=10)
    assert world.db.uses.of("ada").today == DayView("2030-01-01", 3, 0, 0.0, 6)
    with pytest.raises(QuotaExceeded, match=r"4 jobs .* 3 are in use, and this request needs 3 more"):
        group(world, user_name="ada", max_trials=10, module_json="")
    world.job(user_name="ada", max_trials=10)


def test_jobs_of_a_group_run_and_end_on_their_own(world: World) -> None:
    jobs = group(world)
    claimed = [world.claim(), world.claim(), world.claim()]
    assert {each.job.id for each in claimed} == {job.id for job in jobs}
    tasks = [world.task(each.job.id) for each in claimed]
    # The same workload for three targets is three searches.
    assert all(world.db.tasks.try_start(task.id, each.lease_token) for task, each in zip(tasks, claimed, strict=True))
    assert world.db.jobs.finish(claimed[0].job.id, claimed[0].lease_token, JobState.FAILED, "no memory")
    world.db.jobs.request_cancel(claimed[1].job.id)
    states = {job.id: (job.state, job.cancel_requested) for job in world.db.jobs.page(group_id=jobs[0].group_id).items}
    assert [states[each.job.id] for each in claimed] == [("failed", False), ("running", True), ("running", False)]


def test_a_private_group_is_not_there_for_others(world: World) -> None:
    for name in ("ada", "bob"):
        world.db.users.create(name, Scope.SUBMIT, Quota())
    jobs = group(world, user_name="ada", private=True)
    assert world.db.seen_by(Viewer("ada")).jobs.page(group_id=jobs[0].group_id).items == tuple(jobs)
    assert world.db.seen_by(Viewer("bob")).jobs.page(group_id=jobs[0].group_id).items == ()
