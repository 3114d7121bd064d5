"""A long queue: claims, looks for answered jobs, submissions and totals cost the same however many jobs wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from db.access.versions import Part
from db.access.views import Quota
from db.engine.changes import Topic
from db.engine.columns import new_id
from db.inputs import LabelledMachine
from db.models import Base, Job, JobCount, Task
from db.states import Scope
from loopwright.codegen.kinds import JobState
from tests.contract.db.conftest import World
from tuner.types import DeviceClass

FEW, MANY = 50, 1_500


def queue_some(world: World) -> None:
    """Queue jobs of two users, of two priorities, on two device classes, one of them away."""
    world.db.users.create("ada", Scope.SUBMIT, Quota(active_jobs=None, daily_trials=10**9))
    for user in ("owner", "ada"):
        for priority in (0, 3):
            for device_class in (world.device_class, replace(world.device_class, model="away")):
                world.job("a", "b", user_name=user, priority=priority, device_class=device_class)


def fill(world: World, jobs: int) -> None:
    """Copy the jobs that wait until there are so many."""
    with world.db._engine.begin() as connection:
        there = connection.scalars(sa.select(Job.id).where(Job.state == JobState.QUEUED)).all()
        copies = [(new_id(), there[number % len(there)]) for number in range(jobs - len(there))]
        tasks: dict[str, list[str]] = {}
        for task_id, job_id in connection.execute(sa.select(Task.id, Task.job_id)):
            tasks.setdefault(job_id, []).append(task_id)
        connection.execute(_copy(Job, "id"), [{"of": of, "id": copy} for copy, of in copies])
        more = [{"of": task, "id": new_id(), "job_id": copy} for copy, of in copies for task in tasks[of]]
        connection.execute(_copy(Task, "id", "job_id"), more)
    world.db.job_counts.correct()


def _copy(table: type[Base], *new: str) -> sa.TextClause:
    """Copy the row with the id ``of``; columns of these names are new."""
    others = [column.name for column in table.__table__.columns if column.name not in new]
    values = ", ".join([*(f":{name}" for name in new), *others])
    name = table.__tablename__
    return sa.text(f"INSERT INTO {name} ({', '.join([*new, *others])}) SELECT {values} FROM {name} WHERE id = :of")


@contextmanager
def counted_steps(world: World) -> Iterator[Callable[[], int]]:
    """Count the instructions of SQLite's virtual machine, in tens."""
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    def count(connection: Any, *_: object) -> None:
        connection.set_progress_handler(step, 10)

    def stop(connection: Any, *_: object) -> None:
        connection.set_progress_handler(None, 0)

    event.listen(world.db._engine, "checkout", count)
    event.listen(world.db._engine, "checkin", stop)
    try:
        yield lambda: steps
    finally:
        event.remove(world.db._engine, "checkout", count)
        event.remove(world.db._engine, "checkin", stop)


def here(world: World) -> list[LabelledMachine]:
    return [LabelledMachine(world.device_class)]


CALLS: dict[str, Callable[[World], object]] = {
    "claim": lambda world: world.db.jobs.claim("controller", 30, machines=here(world)),
    "claim for machines that no job asks for": lambda world: world.db.jobs.claim(
        "controller", 30, machines=[LabelledMachine(DeviceClass("{}", "other", (), 1, 1, "r"))]
    ),
    "look for answered jobs": lambda world: world.db.jobs.claim("controller", 30, answered=True),
    "look for jobs that wait": lambda world: world.db.jobs.waiting(1e9, here(world)),
    "submit": lambda world: world.job("a", "b", user_name="ada"),
    "overview": lambda world: world.db.totals(),
    "counts": lambda world: world.db.counts(),
    "gauges": lambda world: world.db.gauges.queue(),
    "use": lambda world: world.db.uses.of("ada"),
}


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_no_call_costs_more_because_more_jobs_wait(world: World) -> None:
    queue_some(world)
    steps: dict[str, list[int]] = {name: [] for name in CALLS}
    for jobs in (FEW, MANY):
        fill(world, jobs)
        for name, call in CALLS.items():
            with counted_steps(world) as counted:
                call(world)
                steps[name].append(counted())
    assert not {name: counts for name, counts in steps.items() if counts[1] > 1.5 * counts[0] + 20}


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_finds_the_next_job_by_indexes(world: World) -> None:
    queue_some(world)
    fill(world, MANY)
    with world.db._engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("ANALYZE")
    plans: dict[str, str] = {}

    def explain(_: Any, cursor: Any, statement: str, parameters: Any, *__: Any) -> None:
        if statement.lstrip().startswith(("SELECT", "WITH", "UPDATE")):
            explaining = cursor.connection.cursor()
            explaining.execute(f"EXPLAIN {statement}", parameters)
            plans[statement] = "\n".join(row[0] for row in explaining.fetchall())

    event.listen(world.db._engine, "before_cursor_execute", explain)
    try:
        for call in CALLS.values():
            call(world)
    finally:
        event.remove(world.db._engine, "before_cursor_execute", explain)
    assert any("ix_jobs_queue" in plan for plan in plans.values())
    scanned = {statement: plan for statement, plan in plans.items() if "Seq Scan on jobs" in plan}
    assert not scanned, scanned
    sorted_whole = [plan for plan in plans.values() if "Scan using ix_jobs_queue" in plan and "Sort" in plan]
    assert not sorted_whole


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
def test_a_server_gets_few_statements_for_a_claim_and_a_submission(world: World) -> None:
    """To send one takes the server and the process longer than what most of them do."""
    queue_some(world)
    sent: list[str] = []

    def note(_: Any, __: Any, statement: str, *___: Any) -> None:
        sent.append(statement)

    event.listen(world.db._engine, "before_cursor_execute", note)
    try:
        counts = []
        for call in (CALLS["claim"], CALLS["submit"], lambda each: each.job("a", "b", user_name="ada", force=True)):
            sent.clear()
            call(world)
            counts.append(len(sent))
    finally:
        event.remove(world.db._engine, "before_cursor_execute", note)
    assert counts == [4, 6, 5]


def test_a_lane_that_others_hold_is_passed_over(world: World) -> None:
    """The best lane may be empty by the time that its first job is locked; a lower priority is next then."""
    high, low = world.job(priority=5), world.job(priority=1)
    assert [world.claim().job.id, world.claim().job.id] == [high.id, low.id]
    again = world.job(priority=5)
    world.db.jobs.request_cancel(again.id)
    assert world.db.jobs.claim("controller", 30) is None


def test_answers_that_come_one_by_one_are_noted(world: World) -> None:
    waits = world.job("a", "b")
    other = world.job("a", "c")

    def answered() -> str | None:
        claimed = world.db.jobs.claim("controller", 30, answered=True)
        return None if claimed is None else claimed.job.id

    for workload in ("a", "b"):
        assert answered() is None
        world.measured(0.5, hash=workload, priority=9)
        world.db.jobs.note_answers(world.task(waits.id, "ab".index(workload)).key)
    assert answered() == waits.id
    assert answered() is None
    assert world.db.jobs.get(other.id).state is JobState.QUEUED


def test_a_job_whose_answers_are_known_when_it_comes_is_noted(world: World) -> None:
    world.measured(0.5, hash="a")
    known, forced = world.job("a"), world.job("a", force=True)
    unknown = world.job("a", "d")
    claimed = world.db.jobs.claim("controller", 30, answered=True)
    assert claimed.job.id == known.id
    assert world.db.jobs.claim("controller", 30, answered=True) is None
    assert {world.db.jobs.get(job.id).state for job in (forced, unknown)} == {JobState.QUEUED}


def test_an_answer_that_has_gone_is_noted(world: World) -> None:
    world.measured(0.5, hash="a")
    job = world.job("a")
    with world.db._engine.begin() as connection:
        connection.execute(sa.text("UPDATE certificates SET regressed_at = created_at"))
    assert world.db.jobs.claim("controller", 30, answered=True) is None
    with world.db._engine.begin() as connection:
        assert connection.scalar(sa.select(Job.is_answered).where(Job.id == job.id)) is False
        connection.execute(sa.text("UPDATE certificates SET regressed_at = NULL"))
    world.db.jobs.note_answers(world.task(job.id).key)
    assert world.db.jobs.claim("controller", 30, answered=True).job.id == job.id


def test_jobs_are_counted_in_every_state(world: World) -> None:
    world.db.users.create("ada", Scope.SUBMIT, Quota())
    world.measured(0.5)
    for private in (False, True):
        world.job("b", user_name="ada", private=private)
    claimed = world.claim()
    world.db.jobs.release(claimed.job.id, claimed.lease_token)
    world.claim(seconds=1)
    world.clock.forward(2)
    world.claim()
    assert world.db.jobs.claim("controller", 30).job.attempts == 1
    world.db.jobs.request_cancel(world.job("c").id)
    assert world.db.job_counts.correct() == 0
    assert world.db.counts().jobs == {"succeeded": 1, "running": 2, "cancelled": 1}


def test_counts_that_an_earlier_release_left_wrong_are_corrected(world: World) -> None:
    world.measured(0.5)
    world.job("b", max_trials=7)
    with world.db._engine.begin() as connection:
        connection.execute(sa.update(JobCount).where(JobCount.state == JobState.SUCCEEDED).values(jobs=41))
        connection.execute(sa.delete(JobCount).where(JobCount.state == JobState.QUEUED))
    before = world.db.version(Part((Topic.OTHER,)))
    assert world.db.job_counts.correct() == 2
    assert world.db.version(Part((Topic.OTHER,))).token != before.token, "kept answers show the counts"
    assert world.db.counts().jobs == {"succeeded": 1, "queued": 1}
    assert world.db.uses.of("owner").pending_trials == 7
    assert world.db.totals().trials == 1, "what jobs came to stays"
    assert world.db.job_counts.correct() == 0
