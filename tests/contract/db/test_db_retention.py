"""What is pruned, and what has to stay."""

from __future__ import annotations

import json
import threading
from datetime import datetime
from pathlib import Path

import pytest
import zstandard

from db import Database, cost_models, retention
from db.retention import Ages, Swept
from db.upkeep.archive import Archive
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, Origin, Stage
from service.controller.housekeeping import Housekeeping
from service.settings import Settings
from tests.contract.db.conftest import World
from tuner.types import Failure, MeasureCandidate, Measured

DAYS = 30


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "FASTEST", 2)


def prune(db: Database, *, dry_run: bool = False) -> int:
    samples = db.retention.samples()
    return sum(db.retention.prune(job_id, samples, dry_run=dry_run) for job_id in db.retention.old_jobs(DAYS))


def left(world: World, job_id: str) -> list[int]:
    return [line.number for line in world.db.trials.page(job_id).items]


def later(world: World) -> None:
    world.clock.forward((DAYS + 1) * 86_400)


def test_baseline_certificate_and_the_fastest_stay(world: World, small: None) -> None:
    # The third is certified, and the next fastest is the fourth.
    world.measured(0.5, 0.4, 0.1, 0.2, 0.3)
    (job,) = world.db.jobs.page().items
    before = world.db.tasks.of_job(job.id)
    later(world)
    assert prune(world.db, dry_run=True) == 3
    assert left(world, job.id) == [0, 1, 2, 3, 4, 5]
    assert prune(world.db) == 3
    assert left(world, job.id) == [0, 3, 4]
    # What the job says of itself is what was, and it says what went.
    assert world.db.tasks.of_job(job.id) == before
    assert world.db.jobs.get(job.id).notes == (f"3 trials were pruned from the database on {world.clock().date()}",)
    assert world.db.totals().trials == 5
    events = [event for event in world.db.events.after(job.id) if event.type == "trial"]
    assert [event.change.trial.number for event in events] == [0, 3, 4]
    assert prune(world.db) == 0
    assert world.db.certificates.best("w0", world.device_class.id) is not None
    assert len(world.db.trials.known("w0", world.device_class.id)) == 2


def test_what_is_pruned_is_in_the_archive(world: World, small: None, tmp_path: Path) -> None:
    world.measured(0.5, 0.4, 0.1, 0.2, 0.3)
    (job,) = world.db.jobs.page().items
    before = {line.id: line for line in world.db.trials.page(job.id).items}
    later(world)
    samples, archive = world.db.retention.samples(), Archive(tmp_path / "archive")
    assert world.db.retention.prune(job.id, samples, archive=archive, dry_run=True) == 3
    assert not (tmp_path / "archive").exists()
    assert world.db.retention.prune(job.id, samples, archive=archive) == 3
    assert world.db.retention.prune(job.id, samples, archive=archive) == 0
    (file,) = (tmp_path / "archive").iterdir()
    assert file.name == "month=2030-01"
    (file,) = file.iterdir()
    rows = [json.loads(line) for line in zstandard.decompress(file.read_bytes()).splitlines()]
    assert [(row["number"], row["median"], row["trace_json"]) for row in rows] == [
        (1, 0.5, "[0]"),
        (2, 0.4, "[1]"),
        (5, 0.3, "[4]"),
    ]
    left = {line.id for line in world.db.trials.page(job.id).items}
    assert {row["id"] for row in rows} == before.keys() - left
    for row in rows:
        assert row["job_id"] == job.id
        assert datetime.fromisoformat(row["finished_at"]) == before[row["id"]].finished_at


def test_a_rejected_contender_stays(world: World, small: None) -> None:
    claimed, task = world.started()
    token = claimed.lease_token
    slow, best, *others = world.propose(claimed, task, *(f"[{number}]" for number in range(5)))
    for trial, latency in zip((slow, best, *others), (9.0, 1.0, 2.0, 3.0, 4.0), strict=True):
        world.db.trials.finish(trial.id, token, Measured((latency,), "w"))
    certificate = world.certificate(best, 1.0)
    certificate.rejected[slow.candidate.hash] = Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "wrong", "w")
    stored = world.db.certificates.store(task.id, token, certificate, 64)
    world.db.jobs.finish(claimed.job.id, token, JobState.FAILED, "for the test")
    later(world)
    assert prune(world.db) == 2
    assert left(world, claimed.job.id) == [1, 2, 3]
    assert stored.rejected_trials[slow.candidate.hash] == slow.id


def test_what_must_not_be_tried_again_stays(world: World, small: None) -> None:
    claimed, task = world.started()
    token = claimed.lease_token
    killed, crashed = world.propose(claimed, task, "[1]", "[2]")
    world.db.trials.finish(killed.id, token, Failure(Stage.RUN, FailureKind.KILLED, "killed", "w"))
    world.db.trials.finish(crashed.id, token, Failure(Stage.RUN, FailureKind.CRASH, "crashed", "w"))
    world.db.jobs.finish(claimed.job.id, token, JobState.FAILED, "for the test")
    later(world)
    assert prune(world.db) == 1
    assert world.db.trials.barred("w0", world.device_class.id) == ["[1]"]


def test_young_jobs_and_those_at_work_stay(world: World, small: None) -> None:
    world.measured(0.5, 0.4, 0.3, 0.2, hash="old")
    later(world)
    world.measured(0.5, 0.4, 0.3, 0.2, hash="young")
    claimed, task = world.started("running")
    for trial in world.propose(claimed, task, "[1]", "[2]", "[3]", "[4]"):
        world.db.trials.finish(trial.id, claimed.lease_token, Measured((1.0,), "w"))
    assert prune(world.db) == 2
    lines = {job.id: len(left(world, job.id)) for job in world.db.jobs.page().items}
    assert sorted(lines.values()) == [3, 4, 5]
    assert world.db.retention.prune(claimed.job.id, set()) == 0


def test_what_a_base_model_learns_from_stays(world: World, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost_models, "MOST", 3)
    claimed, task = world.started()
    for number in range(6):
        candidate = MeasureCandidate(f"[{number}]", Origin.RANDOM, None, None, b"%d" % number)
        (trial,) = world.db.trials.propose(task.id, claimed.lease_token, [candidate])
        world.db.trials.finish(trial.id, claimed.lease_token, Measured((1.0 + number,), "w"))
        world.clock.forward(1)
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    later(world)
    before = world.db.cost_models.samples(world.device_class.id, "0.27")
    assert prune(world.db) == 1
    # The two fastest and the three newest.
    assert left(world, claimed.job.id) == [1, 2, 4, 5, 6]
    assert world.db.cost_models.samples(world.device_class.id, "0.27") == before
    assert world.db.cost_models.available(world.device_class.id, "0.27") == 6


AGES = Ages(events=10, trials=DAYS, jobs=100)


def sweep(db: Database, ages: Ages = AGES) -> Swept:
    samples = db.retention.samples()
    return sum((db.retention.sweep(job_id, ages, samples) for job_id in db.retention.due(ages)), start=Swept())


def test_of_an_old_job_events_go_first_then_trials_and_the_search_stays(world: World, small: None) -> None:
    world.measured(0.5, 0.4, 0.1, 0.2, 0.3)
    (job,) = world.db.jobs.page().items
    assert sweep(world.db) == Swept()
    world.clock.forward(11 * 86_400)
    assert sweep(world.db) == Swept(events=8)
    assert {event.type for event in world.db.events.after(job.id)} == {"job"}
    world.clock.forward(90 * 86_400)
    assert sweep(world.db) == Swept(trials=3)
    assert left(world, job.id) == [0, 3, 4]
    assert world.db.job_counts.correct() == 0


def test_a_job_on_which_no_result_stands_goes_as_a_whole(world: World) -> None:
    _, certificate = world.measured(0.5)
    for _ in range(2):
        answered = world.job()
        claimed = world.claim()
        world.db.tasks.answer(world.task(answered.id).id, claimed.lease_token, certificate, AnsweredFrom.DATABASE)
        world.db.jobs.finish(answered.id, claimed.lease_token, JobState.SUCCEEDED)
    compared = answered
    world.db.comparisons.put(compared.id, "owner", {"engines": []})
    before = world.db.totals()
    world.clock.forward(101 * 86_400)
    queued = world.job("another")
    assert sweep(world.db).jobs == 1
    kept = {job.id for job in world.db.jobs.page().items}
    assert kept > {compared.id, queued.id}
    assert len(kept) == 3
    after = world.db.totals()
    assert after.jobs == {"succeeded": 2, "queued": 1}
    assert (after.trials, after.saved_secs, after.search_saved_secs) == (
        before.trials,
        before.saved_secs,
        before.search_saved_secs,
    )
    assert world.db.job_counts.correct() == 0


def test_a_sweep_is_continued_and_comes_again_after_a_month(world: World) -> None:
    for number in range(3):
        world.measured(0.5, hash=f"w{number}")
    world.clock.forward(11 * 86_400)
    seen = []
    for _ in range(3):
        [job_id] = world.db.retention.due(AGES, 1)
        seen.append(job_id)
        world.db.retention.sweep(job_id, AGES, set())
    assert len(set(seen)) == 3
    assert world.db.retention.due(AGES) == []
    world.clock.forward(31 * 86_400)
    assert world.db.retention.due(AGES) == seen


def test_what_has_no_age_stays(world: World) -> None:
    world.measured(0.5)
    world.clock.forward(10_000 * 86_400)
    assert world.db.retention.due(Ages(0, 0, 0)) == []
    assert sweep(world.db, Ages(events=0, trials=0, jobs=1)) == Swept()
    (job,) = world.db.jobs.page().items
    assert len(world.db.events.after(job.id)) > 3


def test_many_trials_go_in_transactions_of_some(world: World, small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "_MOST", 2)
    world.measured(0.5, 0.4, 0.1, 0.2, 0.3, 0.6, 0.7)
    (job,) = world.db.jobs.page().items
    later(world)
    assert prune(world.db) == 5
    assert left(world, job.id) == [0, 3, 4]
    assert world.db.jobs.get(job.id).notes == (f"5 trials were pruned from the database on {world.clock().date()}",)


def test_a_round_of_housekeeping_leaves_nothing_that_is_too_old(world: World, tmp_path: Path) -> None:
    world.measured(0.5)
    (job,) = world.db.jobs.page().items
    world.clock.forward(366 * 86_400)
    Housekeeping(world.db, Settings(data_dir=tmp_path)).round(threading.Event())
    assert {event.type for event in world.db.events.after(job.id)} == {"job"}
    assert world.db.tallies.add_up() == 0
    assert world.db.retention.due(Ages(90, 365, 730)) == []
    assert world.db.uses.of("owner").days[0].trials == 2
