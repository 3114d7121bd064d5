"""The list of best schedules, the overview's totals, and the history of a workload."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from db import NotFound
from db.inputs import WorkerReport
from db.results.best_schedules import BestScheduleQuery
from db.views import Peaks
from loopwright.codegen.kinds import AnsweredFrom, FailureKind, JobState, Origin, SandboxLevel, Stage
from tests.contract.db.conftest import World
from tuner.types import CacheRate, Failure, MeasureCandidate, Measured, Operation, Outcome


def names(world: World, **query: Any) -> list[str]:
    rows, total = world.db.best_schedules.page(BestScheduleQuery(**query))
    assert total == len(rows)
    return [row.workload_hash for row in rows]


def with_operation(world: World, hash: str, op: str, flop: float | None, dtype: str = "float32") -> None:
    world.db.workloads.put([replace(world.workload(hash), operation=Operation(op, dtype, flop))], "0.27")


@pytest.fixture
def three(world: World) -> World:
    """Workloads a (x2), b (x10) and c (baseline wins) on one device class."""
    with_operation(world, "a", "matmul", 4.0)
    with_operation(world, "b", "conv2d", 3.0)
    with_operation(world, "c", "softmax", None)
    world.measured(0.5, hash="a")
    world.measured(0.1, hash="b", name="other job")
    world.measured(hash="c")
    return world


def test_a_row_says_all_of_a_best(three: World) -> None:
    (row,), total = three.db.best_schedules.page(BestScheduleQuery(text="name_b"))
    assert total == 1
    assert (row.name, row.op, row.baseline_median, row.best_median, row.speedup) == ("name_b", "conv2d", 1.0, 0.1, 10)
    assert (row.device_class_id, row.device_model) == (three.device_class.id, "cpu-1")
    assert (row.job_name, row.is_baseline, row.spread, row.peak_share) == ("other job", False, 0.0, None)
    record = three.db.records.get(row.trial_id)
    assert record.record.job_id == row.job_id
    assert record.certificate.id == row.certificate_id
    assert row.created_at == record.certificate.created_at
    (baseline,), _ = three.db.best_schedules.page(BestScheduleQuery(op="softmax"))
    assert baseline.is_baseline


@pytest.mark.parametrize(
    ("sort", "ascending"),
    [("name", "abc"), ("op", "bac"), ("baseline", "abc"), ("best", "bac"), ("speedup", "cab"), ("created", "abc")],
)
def test_every_column_sorts_both_ways(three: World, sort: str, ascending: str) -> None:
    assert names(three, sort=sort, descending=False) == list(ascending)
    assert names(three, sort=sort, descending=True) == list(reversed(ascending))


def test_what_has_no_share_of_the_peak_comes_last(three: World) -> None:
    three.db.devices.put_peaks(three.device_class, Peaks("float32", 100.0, 10.0, three.clock()))
    assert names(three, sort="peak", descending=True) == ["b", "a", "c"]
    assert names(three, sort="peak", descending=False) == ["a", "b", "c"]
    rows, _ = three.db.best_schedules.page(BestScheduleQuery(sort="name", descending=False))
    assert [row.peak_share for row in rows] == [pytest.approx(0.08), pytest.approx(0.3), None]


def test_pages_by_offset(three: World) -> None:
    query = BestScheduleQuery(sort="name", descending=False)
    pages = [three.db.best_schedules.page(query, offset, 2) for offset in (0, 2, 4)]
    assert [([row.workload_hash for row in rows], total) for rows, total in pages] == [
        (["a", "b"], 3),
        (["c"], 3),
        ([], 3),
    ]
    assert [row.workload_hash for row in three.db.best_schedules.all(query)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "found"),
    [("NAME_", "abc"), ("atm", "a"), ("b", "b"), ("B", "b"), ("%", ""), ("_", "abc"), ("name_c", "c"), ("\\", "")],
)
def test_search_takes_parts_of_names_and_beginnings_of_hashes(three: World, text: str, found: str) -> None:
    assert names(three, text=text, sort="name", descending=False) == list(found)


def test_filters_narrow(three: World) -> None:
    cuda = replace(three.device_class, target_json='{"kind":"cuda"}', model="gpu")
    three.measured(0.2, hash="a", device_class=cuda)
    assert names(three, target_kind="cuda") == ["a"]
    assert sorted(names(three, target_kind="llvm")) == ["a", "b", "c"]
    assert names(three, device_class_id=cuda.id) == ["a"]
    assert names(three, op="conv2d", device_class_id=cuda.id) == []
    filters = three.db.best_schedules.filters()
    assert filters.ops == (("matmul", 2), ("conv2d", 1), ("softmax", 1))
    assert [(id, bests) for id, _, _, bests in filters.device_classes] == [(three.device_class.id, 3), (cuda.id, 1)]


def test_the_fastest_certificate_stays_best(world: World) -> None:
    world.measured(0.2, hash="a")
    first, _ = world.db.best_schedules.page(BestScheduleQuery())
    world.measured(0.4, hash="a", budget=128)
    assert world.db.best_schedules.page(BestScheduleQuery())[0] == first
    world.measured(0.1, hash="a", budget=256)
    (row,), _ = world.db.best_schedules.page(BestScheduleQuery())
    assert row.best_median == 0.1


def test_a_renewed_workload_is_followed(world: World) -> None:
    world.measured(0.5, hash="a")
    world.db.devices.put_peaks(world.device_class, Peaks("float32", 8.0, 1.0, world.clock()))
    (row,), _ = world.db.best_schedules.page(BestScheduleQuery())
    assert (row.op, row.peak_share) == ("", None)
    with_operation(world, "a", "matmul", 2.0)
    (row,), _ = world.db.best_schedules.page(BestScheduleQuery())
    assert (row.op, row.peak_share) == ("matmul", pytest.approx(0.5))


def test_peaks_hold_for_the_type_they_were_measured_in(world: World) -> None:
    with_operation(world, "a", "matmul", 2.0, dtype="int32")
    world.measured(0.5, hash="a")
    world.db.devices.put_peaks(world.device_class, Peaks("float32", 8.0, 1.0, world.clock()))
    (row,), _ = world.db.best_schedules.page(BestScheduleQuery())
    assert row.peak_share is None


def test_peaks_are_of_the_machine_whatever_the_target(world: World) -> None:
    own = replace(world.device_class, target_json='{"kind":"llvm","opt-level":3}')
    later = replace(world.device_class, target_json='{"kind":"llvm","opt-level":1}')
    elsewhere = replace(world.device_class, model="cpu-2")
    for device_class in (world.device_class, own, elsewhere):
        world.db.devices.put(device_class)
    caches = (CacheRate("L1", 2**15, 400.0), CacheRate("L2", 2**20, 80.0))
    peaks = Peaks("float32", 100.0, 10.0, world.clock(), caches)
    world.db.devices.put_peaks(world.device_class, peaks)
    world.db.devices.put(later)
    assert [world.db.devices.peaks(each.id) for each in (world.device_class, own, later, elsewhere)] == [
        peaks,
        peaks,
        peaks,
        None,
    ]
    world.db.devices.put_peaks(own, replace(peaks, flops=50.0, bytes_per_s=20.0))
    assert world.db.devices.peaks(own.id) == replace(peaks, bytes_per_s=20.0)
    faster = (CacheRate("L1", 2**15, 300.0), CacheRate("L2", 2**20, 90.0))
    world.db.devices.put_peaks(own, replace(peaks, caches=faster))
    found = world.db.devices.peaks(later.id)
    assert found is not None
    assert found.caches == (caches[0], faster[1])
    with pytest.raises(NotFound):
        world.db.devices.peaks("nothing")


def test_device_classes_with_their_bests_and_workers(three: World) -> None:
    machine: dict[str, Any] = {"host": "h", "device": "cpu", "device_class": three.device_class, "builders": 1}
    three.db.workers.register(WorkerReport("w", **machine, sandbox=SandboxLevel.NONE))
    (view,) = three.db.devices.overview(30)
    assert (view.device_class, view.bests, view.workers, view.peaks) == (three.device_class, 3, 1, None)
    three.clock.forward(60)
    assert [view.workers for view in three.db.devices.overview(30)] == [0]


def test_totals(world: World) -> None:
    assert world.db.totals().saved_secs == 0.0
    claimed, task = world.started("a")
    (trial,) = world.propose(claimed, task, "[0]")
    assert world.db.trials_within(60) == 0
    world.clock.forward(10)
    world.db.trials.finish(trial.id, claimed.lease_token, Measured((0.25,), "w"))
    stored = world.db.certificates.store(task.id, claimed.lease_token, world.certificate(trial, 0.25), 64)
    world.db.tasks.answer(task.id, claimed.lease_token, stored.id, AnsweredFrom.SEARCH)
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)
    # The second job is answered by the first one's search, which took ten seconds.
    second = world.job("a")
    again = world.claim()
    world.db.tasks.answer(world.task(second.id).id, again.lease_token, stored.id, AnsweredFrom.DATABASE)
    world.db.jobs.finish(second.id, again.lease_token, JobState.SUCCEEDED)
    assert world.db.totals().search_saved_secs == pytest.approx(10.0)
    world.job("b")
    totals = world.db.totals()
    assert totals.jobs == {"succeeded": 2, "queued": 1}
    assert (totals.workloads, totals.bests, totals.trials, world.db.trials_within(60)) == (2, 1, 1, 1)
    # Two models, each with two calls that save 0.75 s.
    assert totals.saved_secs == pytest.approx(2 * 2 * 0.75)
    world.clock.forward(120)
    assert world.db.trials_within(60) == 0


def test_trials_are_counted_as_they_end(world: World) -> None:
    claimed, task = world.started("a", "b")
    crash = Failure(Stage.RUN, FailureKind.CRASH, "it crashed", "w")
    candidates = [
        MeasureCandidate(None, Origin.BASELINE),
        *(MeasureCandidate(f"[{n}]", Origin.RANDOM) for n in range(4)),
    ]
    proposed = world.db.trials.propose(task.id, claimed.lease_token, candidates)
    assert (world.db.counts().trials, world.db.counts().proposed) == ({}, 5)
    outcomes: tuple[Outcome, ...] = (Measured((4.0,), "w"), crash, Measured((2.0,), "w"), Measured((3.0,), "w"))
    for trial, outcome in zip(proposed, outcomes, strict=False):
        assert world.db.trials.finish(trial.id, claimed.lease_token, outcome)
    assert (world.db.counts().trials, world.db.counts().proposed) == ({"measured": 3, "CRASH": 1}, 1)
    view = world.task(claimed.job.id)
    assert (view.trials, view.failed, view.failures) == (3, 1, {FailureKind.CRASH: 1})
    assert (view.baseline_secs, view.best_secs) == (4.0, 2.0)
    assert world.db.totals().trials == 3
    world.db.jobs.finish(claimed.job.id, claimed.lease_token, JobState.CANCELLED)
    assert world.db.totals().trials == 3
    assert world.db.counts().proposed == 0


def test_jobs_by_state_and_their_leases(world: World) -> None:
    world.measured(0.5, hash="a")
    claimed, _ = world.started("b")
    world.job("c")
    assert [job.id for job in world.db.jobs.page(states=[JobState.RUNNING]).items] == [claimed.job.id]
    assert len(world.db.jobs.page(states=[JobState.QUEUED, JobState.SUCCEEDED]).items) == 2
    (lease,) = world.db.jobs.leases()
    assert (lease.job_id, lease.owner, lease.attempts) == (claimed.job.id, "controller", 1)
    assert (lease.expires_at - world.clock()).total_seconds() == 30


def test_history_of_a_workload(world: World) -> None:
    world.measured(0.5, hash="a", name="first")
    other = replace(world.device_class, model="cpu-2")
    world.measured(0.25, hash="a", device_class=other)
    world.measured(hash="a", budget=128, name="third")
    page = world.db.insight.history("a")
    assert [(entry.job_name, entry.is_best, entry.is_baseline) for entry in page.items] == [
        ("first", True, False),
        ("job", True, False),
        ("third", False, True),
    ]
    assert [entry.device_model for entry in page.items] == ["cpu-1", "cpu-2", "cpu-1"]
    assert len(world.db.insight.history("a", other.id).items) == 1
    assert world.db.insight.history("nothing").items == ()


def test_fastest_traces_and_predictions(world: World) -> None:
    trials, _ = world.measured(0.5, 0.25, 0.75, hash="a")
    assert world.db.insight.device_class("a") == world.device_class.id
    assert world.db.insight.device_class("nothing") is None
    fastest = world.db.insight.fastest("a", world.device_class.id, 2)
    assert [(each.trial_id, each.median, each.certified) for each in fastest] == [
        (trials[2].id, 0.25, True),
        (trials[1].id, 0.5, False),
    ]
    claimed, task = world.started("a", force=True)
    rounds = []
    for number in range(2):
        proposed = world.propose(claimed, task, f"[1{number}]", f"[2{number}]")
        for trial in proposed:
            world.db.trials.finish(trial.id, claimed.lease_token, Measured((1.0,), "w"))
        rounds.append(proposed)
        world.clock.forward(1)
    found = world.db.insight.predictions("a", world.device_class.id, 100)
    assert [each.trial_id for each in found] == [trial.id for proposed in rounds for trial in proposed]
    assert len({each.created_at for each in found}) == 2
    newest = world.db.insight.predictions("a", world.device_class.id, 2)
    assert [each.trial_id for each in newest] == [trial.id for trial in rounds[1]]
