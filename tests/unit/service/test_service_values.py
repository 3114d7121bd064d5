"""Small parts of the service: rank correlation, the cache, time left, shares, Trace Event JSON."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from db.states import EventType
from db.views import (
    Change,
    EventView,
    JobChanged,
    JobView,
    ModelTime,
    Phase,
    SpeedupInterval,
    TaskChanged,
    TaskView,
    TrialFinished,
    TrialView,
)
from loopwright import schemas
from loopwright.codegen.kinds import AnsweredFrom, Grade, JobState, Lane, Origin, TaskState, ThrottleReason, TrialState
from service.api.cache import Cache
from service.jobs import wire
from service.jobs.chrome_trace import chrome_trace
from service.records.wire import device_state
from service.workloads.ranks import spearman
from tuner.budget import Budget
from tuner.types import DeviceState, LibraryTime, Span

NOW = datetime(2030, 1, 1, tzinfo=UTC)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_rank_correlation_is_spearmans(pairs: list[tuple[int, int]]) -> None:
    one, other = [float(a) for a, _ in pairs], [float(b) for _, b in pairs]
    found = spearman(one, other)
    if len(set(one)) == 1 or len(set(other)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(spearmanr(one, other).statistic)


def test_two_pairs_have_no_rank_correlation() -> None:
    assert spearman([1.0, 2.0], [1.0, 2.0]) is None


def test_the_wire_has_every_reason_for_low_clocks() -> None:
    found = device_state(DeviceState(throttled=tuple(ThrottleReason)))
    assert found is not None
    assert found.throttled == [reason.value for reason in ThrottleReason]
    assert device_state(None) is None


def test_the_cache_makes_once_and_drops_the_oldest() -> None:
    made: list[str] = []
    cache: Cache[str] = Cache(10, len)

    def get(key: str) -> str:
        return cache.get(key, lambda: made.append(key) or key * 4)  # type: ignore[func-returns-value]

    assert [get("a"), get("b"), get("a"), get("c"), get("a"), get("b")] == [
        "aaaa",
        "bbbb",
        "aaaa",
        "cccc",
        "aaaa",
        "bbbb",
    ]
    assert made == ["a", "b", "c", "b"]


def test_the_cache_keeps_no_error_and_no_giant() -> None:
    cache: Cache[str] = Cache(10, len)
    with pytest.raises(ZeroDivisionError):
        cache.get("a", lambda: str(1 // 0))
    assert cache.get("a", lambda: "x" * 11) == "x" * 11
    assert cache.get("a", lambda: "y") == "y"


def test_the_cache_is_shared_by_threads() -> None:
    cache: Cache[str] = Cache(100, len)
    threads = [threading.Thread(target=lambda n=n: cache.get(n % 3, lambda: "x" * 40)) for n in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert cache.get(0, lambda: "new") in ("x" * 40, "new")


JOB = JobView(
    id="j",
    name="job",
    state=JobState.RUNNING,
    target_json='{"kind": "llvm"}',
    device_class_id="d",
    space_hash="default",
    budget=Budget(64),
    suggested_trials=0,
    seed=0,
    priority=0,
    force=False,
    notes=(),
    cancel_requested=False,
    activity="closing race, 3 of 15",
    error=None,
    created_at=NOW,
    started_at=NOW,
    finished_at=None,
    attempts=1,
    elapsed_s=0.0,
    user_name="owner",
    private=False,
    model_time=None,
    group_id=None,
    labels={},
    tags=("nightly",),
    description="",
    phases=(),
    has_variants=False,
)
TASK = TaskView(
    id="t",
    job_id="j",
    position=0,
    workload_hash="w",
    name="mm",
    weight=1,
    sources=("layers.0.fc", "layers.1.fc"),
    state=TaskState.RUNNING,
    key="k",
    answered_from=None,
    certificate_id=None,
    record_id=None,
    error=None,
    started_at=NOW,
    finished_at=None,
    trials=16,
    failed=0,
    failures={},
    baseline_secs=1.0,
    best_secs=0.5,
    searched_secs=0.25,
    device_secs=2.25,
    library=LibraryTime("NumPy", (0.75, 0.25, 0.5)),
    interval=None,
)
LATER = NOW + timedelta(seconds=10)


def test_a_task_says_where_the_model_calls_it_in_short_and_in_full() -> None:
    shown = wire.task(TASK, None, None)
    assert (shown.source, shown.sources) == ("layers.{0,1}.fc", ["layers.0.fc", "layers.1.fc"])
    nowhere = wire.task(replace(TASK, sources=()), None, None)
    assert (nowhere.source, nowhere.sources) == (None, [])


def test_a_job_says_what_it_does_and_how_long_it_measured() -> None:
    shown = wire.job(JOB, [TASK, replace(TASK, device_secs=0.5)])
    assert (shown.activity, shown.device_s) == ("closing race, 3 of 15", 2.75)


def test_phases_end_when_the_next_begins_and_the_last_with_the_job() -> None:
    began = NOW + timedelta(seconds=3)
    done = replace(JOB, state=JobState.SUCCEEDED, phases=(Phase("searching", began),), finished_at=LATER)
    assert [tuple(phase.model_dump().values()) for phase in wire.phases(done)] == [
        ("in the queue", NOW, began),
        ("searching", began, LATER),
    ]
    assert wire.phases(replace(done, finished_at=None))[-1].finished_at is None
    # Of a job that an earlier release ran, nobody knows how long it was in the queue.
    assert wire.phases(replace(done, phases=())) == []
    [waits] = wire.phases(replace(JOB, state=JobState.QUEUED, started_at=None))
    assert (waits.activity, waits.finished_at) == ("in the queue", None)


def test_each_latency_of_a_model_is_its_own_sum() -> None:
    model = wire.job(replace(JOB, model_time=ModelTime(2.5)), [TASK, replace(TASK, weight=3)]).model
    assert model is not None
    assert (model.searched_us, model.best_us, model.measured_us) == (1e6, 2e6, 2.5e6)
    assert model.latency_us == model.measured_us
    assert (model.untuned_us, model.speedup) == (model.baseline_us, model.baseline_us / 2.5e6)
    answered = wire.job(JOB, [TASK, replace(TASK, searched_secs=None)]).model
    assert answered is not None
    assert answered.searched_us is None


def test_the_speedup_of_a_model_of_one_function_has_that_functions_interval() -> None:
    raced = replace(TASK, interval=SpeedupInterval(2.0, 1.5, 2.5, Grade.NOISY))
    alone, two = wire.job(JOB, [raced]), wire.job(JOB, [raced, raced])
    assert alone.model is not None
    assert two.model is not None
    assert (alone.model.interval, two.model.interval) == (alone.tasks[0].interval, None)


def test_the_speedup_of_a_model_is_measured_over_measured_where_both_are() -> None:
    time = ModelTime(2.5, 10.0, SpeedupInterval(4.0, 3.5, 4.5, Grade.NOISY))
    model = wire.job(replace(JOB, model_time=time), [TASK, replace(TASK, weight=3)]).model
    assert model is not None
    assert (model.untuned_us, model.baseline_measured_us, model.speedup) == (1e7, 1e7, 4.0)
    assert model.interval == schemas.Range(value=4.0, low=3.5, high=4.5)


def test_a_job_for_several_shapes_does_not_sum_its_variants() -> None:
    assert wire.job(JOB, [TASK, TASK]).model is not None
    several = wire.job(replace(JOB, has_variants=True), [TASK, TASK])
    assert several.model is None
    assert [task.model_share for task in several.tasks] == [None, None]


def test_time_left_goes_by_the_pace_until_now() -> None:
    assert wire.time_left(JOB, [TASK], LATER) == pytest.approx(30.0)


def test_time_left_is_at_most_what_is_allowed() -> None:
    assert wire.time_left(replace(JOB, budget=Budget(64, max_seconds=12.0)), [TASK], LATER) == pytest.approx(2.0)
    assert wire.time_left(replace(JOB, budget=Budget(64, max_seconds=5.0)), [TASK], LATER) == 0.0


def test_time_left_counts_no_trials_of_answered_tasks() -> None:
    answered = replace(TASK, trials=0, answered_from=AnsweredFrom.DATABASE, state=TaskState.SUCCEEDED)
    assert wire.time_left(JOB, [TASK, answered], LATER) == pytest.approx(10.0)


@pytest.mark.parametrize(
    ("job", "task"),
    [
        (replace(JOB, state=JobState.QUEUED, started_at=None), TASK),
        (replace(JOB, state=JobState.SUCCEEDED), TASK),
        (JOB, replace(TASK, trials=0)),
        (JOB, replace(TASK, trials=64)),
    ],
)
def test_time_left_is_unknown(job: JobView, task: TaskView) -> None:
    assert wire.time_left(job, [task], LATER) is None


def test_shares_of_the_models_time_and_of_the_trials() -> None:
    other = replace(TASK, weight=3, best_secs=0.5, trials=48)
    first, second = wire.job(JOB, [TASK, other]).tasks
    assert (first.model_share, first.budget_share) == (0.25, 0.25)
    assert (second.model_share, second.budget_share) == (0.75, 0.75)


def test_a_librarys_time_is_the_median_of_its_samples() -> None:
    (told,) = wire.job(JOB, [TASK]).tasks
    assert told.library is not None
    assert (told.library.name, told.library.us) == ("NumPy", 0.5e6)


def test_shares_wait_for_every_task() -> None:
    first, second = wire.job(JOB, [TASK, replace(TASK, best_secs=None, trials=0)]).tasks
    assert (first.model_share, second.model_share) == (None, None)
    assert (first.budget_share, second.budget_share) == (1.0, 0.0)
    (alone,) = wire.job(JOB, [replace(TASK, trials=0)]).tasks
    assert alone.budget_share is None


def trial(number: int, *spans: Span) -> TrialView:
    return TrialView(
        id=f"trial-{number}",
        workload_hash="w",
        number=number,
        state=TrialState.MEASURED,
        origin=Origin.RANDOM,
        predicted=None,
        predicted_by=None,
        median=1e-3,
        failure_kind=None,
        failure_stage=None,
        failure_message=None,
        worker="host/cpu",
        created_at=NOW,
        finished_at=NOW,
        spans=spans,
    )


def event(change: Change, type: EventType) -> EventView:
    return EventView(7, "j", type, NOW, change)


def test_a_jobs_event_on_the_wire() -> None:
    sent = wire.event(event(JobChanged(JobState.FAILED, "why"), EventType.JOB))
    assert sent.model_dump() == {"state": "failed", "error": "why", "at": NOW}


def test_a_tasks_event_has_figures_once_it_is_certified() -> None:
    sent = wire.event(event(TaskChanged("w", TaskState.RUNNING, None, None), EventType.TASK)).model_dump()
    assert (sent["certified"], sent["baseline_us"], sent["best_us"], sent["speedup"]) == (False, None, None, None)
    sent = wire.event(event(TaskChanged("w", TaskState.SUCCEEDED, 1.0, 0.25), EventType.TASK)).model_dump()
    assert (sent["certified"], sent["baseline_us"], sent["best_us"], sent["speedup"]) == (True, 1e6, 0.25e6, 4.0)


def test_a_trials_event_is_its_line_and_when_it_happened() -> None:
    finished = trial(1, Span(Lane.BUILD, "b0", 1.0, 2.5))
    sent = wire.event(event(TrialFinished(finished), EventType.TRIAL)).model_dump()
    assert sent == {**wire.trial(finished).model_dump(), "at": NOW}
    assert (sent["median_us"], sent["spans"][0]["stage"]) == (1e3, "build")


def test_a_timeline_as_trace_events() -> None:
    begun = replace(JOB, started_at=datetime.fromtimestamp(100, UTC))
    searched = Span(Lane.PROPOSE, "search", 100.0, 101.0)
    trials = [
        trial(1, searched, Span(Lane.BUILD, "b0", 101.0, 102.0), Span(Lane.MEASURE, "host/cpu", 102.0, 102.5)),
        trial(2, searched, Span(Lane.BUILD, "b1", 101.0, 103.0), Span(Lane.MEASURE, "host/cpu", 103.0, 103.5)),
    ]
    found = json.loads("".join(chrome_trace(begun, trials)))
    slices = [event for event in found["traceEvents"] if event["ph"] == "X"]
    # Both were proposed in one slice.
    assert len(slices) == 5
    (propose,) = [event for event in slices if event["cat"] == "propose"]
    assert (propose["ts"], propose["dur"]) == (0.0, 1e6)
    assert [told["id"] for told in propose["args"]["trials"]] == ["trial-1", "trial-2"]
    measured = [event for event in slices if event["cat"] == "measure"]
    assert [(event["name"], event["ts"], event["dur"]) for event in measured] == [
        ("trial 1", 2e6, 0.5e6),
        ("trial 2", 3e6, 0.5e6),
    ]
    assert measured[0]["tid"] == measured[1]["tid"]
    threads = {event["args"]["name"] for event in found["traceEvents"] if event["name"] == "thread_name"}
    assert threads == {"search", "b0", "b1", "host/cpu"}
    assert found["otherData"] == {"job": JOB.id, "name": JOB.name}
    assert json.loads("".join(chrome_trace(begun, [trial(1)])))["traceEvents"] == [
        event for event in found["traceEvents"] if event["name"] == "process_name"
    ]
