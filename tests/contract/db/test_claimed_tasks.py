"""What a controller and a loop do with the tasks of a claimed job, on both databases."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from db.inputs import LAST, space_hash
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, Origin, Stage, TaskState
from service.controller.claimed_tasks import ClaimedTasks
from service.controller.ledger import DatabaseLedger
from service.jobs import wire
from tests.contract.db.conftest import BASELINE, World
from tuner.types import Failure, MeasureCandidate, Measured, StopReason


def test_a_task_is_answered_by_a_search_that_was_allowed_as_much(world: World) -> None:
    _, small = world.measured(0.5, hash="a", budget=32)
    world.job("a", "b", max_trials=64)
    tasks = ClaimedTasks.read(world.db, world.claim())
    known, unknown = tasks.open
    assert tasks.answer(known, AnsweredFrom.DATABASE)
    assert not tasks.answer(unknown, AnsweredFrom.DATABASE)
    answered, left = ClaimedTasks.read(world.db, tasks.claimed).tasks
    assert (answered.state, answered.certificate_id) == (TaskState.SUCCEEDED, small)
    assert ClaimedTasks.read(world.db, tasks.claimed).open == [left]


@pytest.mark.parametrize(("functions", "trials"), [("a", 64), ("ab", 65)])
def test_a_search_that_was_allowed_less_answers_nothing(world: World, functions: str, trials: int) -> None:
    world.measured(0.5, hash="a", budget=32)
    world.job(*functions, max_trials=trials)
    tasks = ClaimedTasks.read(world.db, world.claim())
    assert not tasks.answer(tasks.open[0], AnsweredFrom.DATABASE)


def test_a_job_until_its_plateau_is_answered_by_a_search_that_reached_its_own(world: World) -> None:
    claimed, task = world.started("a", until="plateau")
    (trial,) = world.db.trials.propose(task.id, claimed.lease_token, [BASELINE])
    assert world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.5,), "worker"))
    ledger = DatabaseLedger(world.db, claimed, [task], 64)
    ledger.certify(0, world.certificate(trial, 0.5), StopReason.PLATEAU)
    ClaimedTasks.read(world.db, claimed).finish()
    for until in ("plateau", None):
        world.job("a", until=until)
        tasks = ClaimedTasks.read(world.db, world.claim())
        assert tasks.answer(tasks.open[0], AnsweredFrom.DATABASE) is (until == "plateau")


def test_a_forced_job_takes_only_the_answer_of_a_search_that_it_joined(world: World) -> None:
    world.measured(0.5)
    world.job(force=True)
    tasks = ClaimedTasks.read(world.db, world.claim())
    (task,) = tasks.open
    assert not tasks.answer(task, AnsweredFrom.DATABASE)
    assert tasks.answer(task, AnsweredFrom.JOINED)


def test_a_job_that_the_database_answers_is_claimed_without_a_place_for_a_loop(world: World) -> None:
    world.measured(0.5, hash="a", budget=32)
    world.measured(0.5, hash="b", budget=48)
    # 65 trials for two tasks are 33 each.
    too_many = world.job("a", "b", max_trials=65)
    unknown = world.job("a", "c", max_trials=8)
    forced = world.job("a", max_trials=8, force=True)
    gated = world.job("a", max_trials=8, gate={"against": "functions"})
    answered = world.job("a", "b", max_trials=64)
    claimed = world.db.jobs.claim("controller", 30, answered=True)
    assert claimed is not None
    assert claimed.job.id == answered.id
    tasks = ClaimedTasks.read(world.db, claimed)
    assert all(tasks.answer(task, AnsweredFrom.DATABASE) for task in tasks.open)
    assert world.db.jobs.claim("controller", 30, answered=True) is None
    assert {world.claim().job.id for _ in range(4)} == {too_many.id, unknown.id, forced.id, gated.id}


def test_a_job_whose_lease_expired_is_claimed_so_as_one_that_is_queued(world: World) -> None:
    world.measured(0.5, hash="a")
    job = world.job("a")
    old = world.db.jobs.claim("controller", 30, answered=True)
    assert old is not None
    world.clock.forward(31)
    claimed = world.db.jobs.claim("controller", 30, answered=True)
    assert claimed is not None
    assert claimed.job.id == job.id
    assert not world.db.jobs.release(job.id, old.lease_token)


@settings(max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budgets=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    max_trials=st.integers(1, 90),
    until=st.sampled_from(["plateau", None]),
)
def test_it_is_claimed_so_exactly_if_each_of_its_tasks_is_answered(
    world: World, budgets: list[int], max_trials: int, until: str | None
) -> None:
    # The database outlives the examples.
    jobs = len(world.db.jobs.page(page_size=500).items)
    hashes = [f"x{jobs}x{number}" for number in range(len(budgets))]
    for hash, budget in zip(hashes, budgets, strict=True):
        world.measured(0.5, hash=hash, budget=budget)
    job = world.job(*hashes, max_trials=max_trials, until=until)
    claimed = world.db.jobs.claim("controller", 30, answered=True)
    tasks = ClaimedTasks.read(world.db, claimed or world.claim())
    answers = [tasks.answer(task, AnsweredFrom.DATABASE) for task in tasks.open]
    assert tasks.claimed.job.id == job.id
    assert all(answers) is (claimed is not None)
    world.db.jobs.finish(job.id, tasks.claimed.lease_token, JobState.CANCELLED)


def test_a_job_fails_with_the_reasons_of_its_tasks(world: World) -> None:
    world.measured(0.5, hash="b", budget=64)
    world.job("a", "b")
    claimed = world.claim()
    tasks = ClaimedTasks.read(world.db, claimed)
    world.db.tasks.fail(tasks.tasks[0].id, claimed.lease_token, "does not compile")
    assert tasks.answer(tasks.tasks[1], AnsweredFrom.DATABASE)
    ClaimedTasks.read(world.db, claimed).finish()
    job = world.db.jobs.get(claimed.job.id)
    assert job.state is JobState.FAILED
    assert job.error == "1 of 2 tasks have no result. name_a: does not compile"


def test_a_job_whose_tasks_all_have_an_answer_succeeds(world: World) -> None:
    world.measured(0.5)
    world.job()
    tasks = ClaimedTasks.read(world.db, world.claim())
    assert tasks.answer(tasks.open[0], AnsweredFrom.DATABASE)
    # What was read before the answer is enough: an answered task did not fail.
    tasks.finish()
    job = world.db.jobs.get(tasks.claimed.job.id)
    assert (job.state, job.error) == (JobState.SUCCEEDED, None)


@pytest.mark.parametrize(("failing", "state"), [("b", JobState.PARTLY), ("a", JobState.SUCCEEDED)])
def test_a_job_succeeds_partly_if_all_candidates_of_its_weightiest_task_failed(
    world: World, failing: str, state: JobState
) -> None:
    """The task ``b`` takes ten times as long as ``a``."""
    claimed, first = world.started("a", "b")
    tasks = [first, world.task(claimed.job.id, 1)]
    assert world.db.tasks.try_start(tasks[1].id, claimed.lease_token)
    ledger = DatabaseLedger(world.db, claimed, tasks, 64)
    for position, (name, secs) in enumerate((("a", 0.1), ("b", 1.0))):
        task = tasks[position]
        candidates = [BASELINE, MeasureCandidate("[1]", Origin.RANDOM)]
        baseline, candidate = world.db.trials.propose(task.id, claimed.lease_token, candidates)
        world.db.trials.finish(baseline.id, claimed.lease_token, Measured((secs,), "worker"))
        outcome = Failure(Stage.BUILD, FailureKind.COMPILE, "no") if name == failing else Measured((secs,), "worker")
        world.db.trials.finish(candidate.id, claimed.lease_token, outcome)
        certificate = replace(world.certificate(baseline, secs), baseline_run_secs=(secs, secs, secs))
        ledger.certify(position, certificate, StopReason.BUDGET)
    ClaimedTasks.read(world.db, claimed).finish()
    job = world.db.jobs.get(claimed.job.id)
    assert job.state is state
    assert (job.error or "").endswith("all of its 1 candidates failed (1 COMPILE)") is (state is JobState.PARTLY)


def test_functions_that_the_time_of_a_job_left_out_are_certified_by_jobs_of_the_service(world: World) -> None:
    claimed, first = world.started("a", "b", space_json="[[]]")
    tasks = [first, world.task(claimed.job.id, 1)]
    assert world.db.tasks.try_start(tasks[1].id, claimed.lease_token)
    ledger = DatabaseLedger(world.db, claimed, tasks, 64)
    baseline, candidate = ledger.propose(0, [BASELINE, MeasureCandidate("[1]", Origin.RANDOM)])
    for trial in (baseline, candidate):
        ledger.finish((trial, Measured((0.1,), "worker")))
    ledger.certify(0, world.certificate(candidate, 0.1), StopReason.TIME)
    ledger.postpone(1)
    ClaimedTasks.read(world.db, claimed).finish()
    job, space = world.db.jobs.get(claimed.job.id), space_hash("[[]]")
    assert job.state is JobState.PARTLY
    assert (job.error or "").startswith("1 of 2 tasks have no certificate (name_b): ")
    [later] = [each for each in world.db.jobs.page(page_size=500).items if each.id != job.id]
    assert (later.state, later.priority, later.user_name) == (JobState.QUEUED, LAST, job.user_name)
    assert (later.space_hash, [task.workload_hash for task in world.db.tasks.of_job(later.id)]) == (space, ["b"])
    world.measured(0.25, hash="b")
    assert world.db.jobs.get(job.id) == job, "a certificate of another space is no answer"

    world.clock.forward(3600)
    claimed, task = world.claim(), world.task(later.id)
    assert claimed.job.id == later.id
    assert world.db.tasks.try_start(task.id, claimed.lease_token)
    ledger = DatabaseLedger(world.db, claimed, [task], 8)
    baseline, candidate = ledger.propose(0, [BASELINE, MeasureCandidate("[2]", Origin.SEED)])
    for trial, secs in ((baseline, 1.0), (candidate, 0.2)):
        ledger.finish((trial, Measured((secs,), "worker")))
    before = world.db.totals().saved_secs
    ledger.certify(0, world.certificate(candidate, 0.2), StopReason.BUDGET)
    after, [known, answered] = world.db.jobs.get(job.id), world.db.tasks.of_job(job.id)
    assert (after.state, after.notes) == (
        JobState.PARTLY,
        ("name_b has the certificate of another job since 2030-01-01, 01:00 UTC",),
    )
    assert "other jobs have certified" in (after.error or "")
    assert (answered.state, answered.answered_from, answered.error) == (
        TaskState.SUCCEEDED,
        AnsweredFrom.DATABASE,
        None,
    )
    assert (answered.baseline_secs, answered.best_secs, answered.finished_at) == (1.0, 0.2, world.clock())
    model = wire.job(after, [known, answered]).model
    assert model is not None
    assert model.speedup == pytest.approx((2 * 1.0 + 2 * 1.0) / (2 * 0.1 + 2 * 0.2))
    # Each is called twice. The totals count what is certified later, once.
    assert world.db.totals().saved_secs - before == pytest.approx(2 * (1.0 - 0.2))


def test_a_function_that_a_job_leaves_has_the_certificate_that_is_known(world: World) -> None:
    """Of a search with less trials than this job has for it, which is no answer as long as there is time."""
    _, certificate_id = world.measured(0.125, hash="b", budget=2)
    claimed, first = world.started("a", "b", "c")
    tasks = [first, *(world.task(claimed.job.id, position) for position in (1, 2))]
    assert not ClaimedTasks.read(world.db, claimed).answer(tasks[1], AnsweredFrom.DATABASE)
    assert all(world.db.tasks.try_start(task.id, claimed.lease_token) for task in tasks)
    ledger = DatabaseLedger(world.db, claimed, tasks, 64)
    for position in range(3):
        ledger.postpone(position)
    ClaimedTasks.read(world.db, claimed).finish()
    job = world.db.jobs.get(claimed.job.id)
    assert (job.error or "").startswith("2 of 3 tasks have no certificate (name_a, name_c): ")
    states = [task.state for task in world.db.tasks.of_job(job.id)]
    assert states == [TaskState.FAILED, TaskState.SUCCEEDED, TaskState.FAILED]
    assert world.task(job.id, 1).certificate_id == certificate_id
    assert len(job.notes) == 1
