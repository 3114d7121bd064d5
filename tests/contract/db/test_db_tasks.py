from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from db import InvalidTransition, NotFound
from db.states import EventType
from db.views import SpeedupInterval, TaskChanged
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, Grade, JobState, Origin, Stage, TaskState
from tests.contract.db.conftest import World
from tuner.errors import LeaseLost
from tuner.types import Failure, LibraryTime, MeasureCandidate, Measured


def test_one_job_tunes_what_two_want(world: World) -> None:
    first, _ = world.started("a")
    world.job("a")
    second = world.claim()
    task = world.task(second.job.id)
    assert not world.db.tasks.try_start(task.id, second.lease_token)
    world.db.tasks.join(task.id, second.lease_token)
    assert world.task(second.job.id).state == "joined"
    assert not world.db.tasks.try_start(task.id, second.lease_token)

    assert world.db.jobs.finish(first.job.id, first.lease_token, JobState.FAILED, "gone")
    assert world.db.tasks.try_start(task.id, second.lease_token)
    assert world.task(second.job.id).state == "running"


def test_many_start_at_once_and_one_does(world: World) -> None:
    claims = []
    for _ in range(12):
        world.job("a")
        claims.append(world.claim())
    with ThreadPoolExecutor(12) as pool:
        started = list(
            pool.map(lambda job: world.db.tasks.try_start(world.task(job.job.id).id, job.lease_token), claims)
        )
    assert sum(started) == 1
    assert [world.task(job.job.id).state == "running" for job in claims] == started


@pytest.mark.parametrize("difference", ["workload", "device class", "space"])
def test_different_work_goes_on_side_by_side(world: World, difference: str) -> None:
    world.started("a")
    match difference:
        case "workload":
            world.started("b")
        case "device class":
            world.started("a", device_class=replace(world.device_class, threads=4))
        case "space":
            world.started("a", space_json="[[1]]")


def test_starting_again_under_the_same_lease_is_harmless(world: World) -> None:
    claimed, task = world.started()
    started_at = world.task(claimed.job.id).started_at
    world.clock.forward(1)
    assert world.db.tasks.try_start(task.id, claimed.lease_token)
    assert world.task(claimed.job.id).started_at == started_at
    assert [event.type for event in world.db.events.after(claimed.job.id)].count(EventType.TASK) == 1


def test_a_new_claim_resumes_the_running_task_and_shuts_out_the_old_one(world: World) -> None:
    old, task = world.started()
    world.clock.forward(31)
    new = world.claim()
    assert world.db.tasks.try_start(task.id, new.lease_token)
    for late in (
        lambda: world.db.tasks.try_start(task.id, old.lease_token),
        lambda: world.db.tasks.join(task.id, old.lease_token),
        lambda: world.db.tasks.fail(task.id, old.lease_token, "late"),
        lambda: world.db.tasks.answer(task.id, old.lease_token, "certificate", AnsweredFrom.SEARCH),
        lambda: world.propose(old, task, "[1]"),
        lambda: world.db.trials.adopt(task.id, old.lease_token),
    ):
        with pytest.raises(LeaseLost):
            late()
    assert world.task(new.job.id).state == "running"


def test_a_dead_job_does_not_block_others(world: World) -> None:
    dead, dead_task = world.started("a")
    living = world.job("a", priority=1)
    claimed = world.claim(seconds=300)
    assert claimed.job.id == living.id
    world.clock.forward(31)
    assert world.db.tasks.try_start(world.task(living.id).id, claimed.lease_token)
    assert world.task(dead.job.id).state == "queued"

    # The dead one was only slow: it still has its job, but not the right to tune this task.
    assert world.db.jobs.renew(dead.job.id, dead.lease_token, 30)
    with pytest.raises(LeaseLost):
        world.propose(dead, dead_task, "[1]")
    assert not world.db.tasks.try_start(dead_task.id, dead.lease_token)


def test_equal_workloads_within_a_job_wait_for_each_other(world: World) -> None:
    claimed, _ = world.started("a", "a")
    twin = world.task(claimed.job.id, 1)
    assert not world.db.tasks.try_start(twin.id, claimed.lease_token)


def test_a_finished_task_stays_as_it_is(world: World) -> None:
    claimed, task = world.started()
    world.db.tasks.fail(task.id, claimed.lease_token, "does not compile")
    with pytest.raises(InvalidTransition):
        world.db.tasks.try_start(task.id, claimed.lease_token)
    with pytest.raises(InvalidTransition):
        world.db.tasks.fail(task.id, claimed.lease_token, "again")
    assert world.task(claimed.job.id).error == "does not compile"


def test_unknown_tasks_are_not_found(world: World) -> None:
    with pytest.raises(NotFound):
        world.db.tasks.try_start("nothing", "token")
    assert world.db.tasks.of_job("nothing") == []


def test_an_answer_carries_the_figures_of_its_certificate(world: World) -> None:
    trials, certificate_id = world.measured(0.5, 0.25)
    world.job("w0")
    claimed = world.claim()
    task = world.task(claimed.job.id)
    with pytest.raises(NotFound):
        world.db.tasks.answer(task.id, claimed.lease_token, "nothing", AnsweredFrom.DATABASE)
    assert world.task(claimed.job.id).state == "queued"
    world.db.tasks.answer(task.id, claimed.lease_token, certificate_id, AnsweredFrom.DATABASE)

    task = world.task(claimed.job.id)
    assert (task.state, task.answered_from, task.record_id) == ("succeeded", "database", trials[2].id)
    assert (task.baseline_secs, task.best_secs, task.speedup, task.certified) == (1.0, 0.25, 4.0, True)
    assert task.library == LibraryTime("NumPy", (0.5, 0.25, 0.75))
    assert (task.trials, task.failed) == (0, 0)
    event = world.db.events.after(claimed.job.id)[-1]
    interval = SpeedupInterval(4.0, 4.0, 4.0, Grade.CLEAN)
    assert event.change == TaskChanged("w0", TaskState.SUCCEEDED, 1.0, 0.25, interval)


def test_progress_comes_from_the_ledger_until_there_is_a_certificate(world: World) -> None:
    claimed, task = world.started()
    token = claimed.lease_token
    candidates = [
        MeasureCandidate(None, Origin.BASELINE),
        *(MeasureCandidate(f"[{n}]", Origin.RANDOM) for n in range(5)),
    ]
    trials = world.db.trials.propose(task.id, token, candidates)
    outcomes: list[Measured | Failure] = [
        Measured((2.0, 4.0, 3.0), "w"),
        Measured((1.5,), "w"),
        Failure(Stage.BUILD, FailureKind.COMPILE, "no", "w"),
        Failure(Stage.BUILD, FailureKind.COMPILE, "no", "w"),
        Failure(Stage.RUN, FailureKind.TIMEOUT, "slow", "w"),
    ]
    for trial, outcome in zip(trials, outcomes, strict=False):
        assert world.db.trials.finish(trial.id, token, outcome)
    task = world.task(claimed.job.id)
    assert (task.trials, task.failed, task.failures) == (4, 3, {"COMPILE": 2, "TIMEOUT": 1})
    assert (task.baseline_secs, task.best_secs, task.speedup, task.certified) == (3.0, 1.5, 2.0, False)
    other = world.job("b", "c")
    both = world.db.tasks.of_jobs([claimed.job.id, other.id])
    assert both[claimed.job.id] == [task]
    assert [task.trials for task in both[other.id]] == [0, 0]
