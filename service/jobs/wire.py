"""Maps jobs, tasks, trials and events of the database to the wire."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from db.views import (
    ComparisonView,
    EventView,
    JobChanged,
    JobView,
    Rechecked,
    SpeedupInterval,
    TaskChanged,
    TaskView,
    TrialFinished,
    TrialView,
)
from loopwright import schemas
from loopwright.codegen.kinds import AnsweredFrom, JobState, TaskState
from loopwright.codegen.source_text import shortened
from service.records.wire import interval, library
from service.units import micros
from tuner.budget import Budget

IN_QUEUE = "in the queue"
"""The first phase of each job."""


def job(view: JobView, tasks: Sequence[TaskView], activity: str | None = None) -> schemas.Job:
    """Return a job with its tasks. ``activity`` is more than the job itself knows of what it waits for, if anything."""
    return schemas.Job(
        id=view.id,
        name=view.name,
        state=view.state,
        target=json.loads(view.target_json),
        device_class=view.device_class_id,
        budget=budget(view.budget),
        seed=view.seed,
        priority=view.priority,
        owner=view.user_name,
        visibility="private" if view.private else "team",
        group=view.group_id,
        labels=view.labels,
        created_at=view.created_at,
        started_at=view.started_at,
        finished_at=view.finished_at,
        error=view.error,
        activity=activity or view.activity,
        phases=phases(view),
        tags=list(view.tags),
        description=view.description,
        device_s=sum(item.device_secs for item in tasks),
        notes=list(view.notes),
        suggested_trials=view.suggested_trials,
        progress=schemas.Progress(
            trials=sum(item.trials for item in tasks),
            failed=sum(item.failed for item in tasks),
            total=max(view.budget.max_trials, sum(item.trials for item in tasks)),
            time_left_s=time_left(view, tasks, datetime.now(UTC)),
        ),
        model=model(view, tasks),
        tasks=[
            task(item, None if view.has_variants else of_model, of_budget)
            for item, (of_model, of_budget) in zip(tasks, _shares(tasks), strict=True)
        ],
    )


def phases(view: JobView) -> list[schemas.Phase]:
    """Return what a job did, each phase until the next begins; one that began before phases were kept has none."""
    if not view.phases and view.state != JobState.QUEUED:
        return []
    begun = [(IN_QUEUE, view.created_at), *((phase.activity, phase.started_at) for phase in view.phases)]
    ends = [*(started_at for _, started_at in begun[1:]), view.finished_at]
    return [
        schemas.Phase(activity=activity, started_at=started_at, finished_at=finished_at)
        for (activity, started_at), finished_at in zip(begun, ends, strict=True)
    ]


def budget(limits: Budget) -> schemas.Budget:
    return schemas.Budget(**asdict(limits))


def time_left(view: JobView, tasks: Sequence[TaskView], now: datetime) -> float | None:
    """Estimate the remaining seconds of a search from its pace until now, at most what the budget allows.

    None if the job is not running, has no trial yet, or has none left: closing races are not estimated.
    """
    done = sum(item.trials for item in tasks)
    mine = [
        item
        for item in tasks
        if item.answered_from in (None, AnsweredFrom.SEARCH) and item.state is not TaskState.JOINED
    ]
    limits = view.budget
    allowed = limits.max_trials if len(mine) == len(tasks) else len(mine) * limits.trials_of_a_task(len(tasks))
    if view.state is not JobState.RUNNING or view.started_at is None or done == 0 or done >= allowed:
        return None
    elapsed = max(0.0, (now - view.started_at).total_seconds())
    left = elapsed / done * (allowed - done)
    return left if limits.max_seconds is None else max(0.0, min(left, limits.max_seconds - elapsed))


def _shares(tasks: Sequence[TaskView]) -> list[tuple[float | None, float | None]]:
    """Return each task's share of the model's time and of the trials made."""
    times = [None if item.best_secs is None else item.weight * item.best_secs for item in tasks]
    known = [time for time in times if time is not None]
    whole = sum(known) if len(known) == len(times) else 0.0
    trials = sum(item.trials for item in tasks)
    return [
        (time / whole if time is not None and whole else None, item.trials / trials if trials else None)
        for time, item in zip(times, tasks, strict=True)
    ]


def task(view: TaskView, model_share: float | None, budget_share: float | None) -> schemas.Task:
    return schemas.Task(
        workload_hash=view.workload_hash,
        name=view.name,
        source=shortened(view.sources) or None,
        sources=list(view.sources),
        weight=view.weight,
        state=view.state,
        trials=view.trials,
        baseline_us=micros(view.baseline_secs),
        best_us=micros(view.best_secs),
        speedup=view.speedup,
        interval=interval(view.interval),
        certified=view.certified,
        answered_from=view.answered_from,
        record_id=view.record_id,
        failures=view.failures,
        error=view.error,
        finished_at=view.finished_at,
        model_share=model_share,
        budget_share=budget_share,
        library=library(view.library),
    )


def model(view: JobView, tasks: Sequence[TaskView]) -> schemas.ModelLatency | None:
    baselines = [None if item.baseline_secs is None else item.weight * item.baseline_secs for item in tasks]
    bests = [None if item.best_secs is None else item.weight * item.best_secs for item in tasks]
    before = sum(each for each in baselines if each is not None)
    after = sum(each for each in bests if each is not None)
    if not tasks or None in baselines or None in bests or not after or view.has_variants:
        return None
    searched = [None if item.searched_secs is None else item.weight * item.searched_secs for item in tasks]
    time = view.model_time
    latency = after if time is None else time.secs
    untuned = before if time is None or time.baseline_secs is None else time.baseline_secs
    certified = tasks[0].interval if len(tasks) == 1 else None
    speedup = certified if time is None else time.speedup
    return schemas.ModelLatency(
        baseline_us=before * 1e6,
        best_us=after * 1e6,
        searched_us=None if None in searched else 1e6 * math.fsum(each for each in searched if each is not None),
        measured_us=None if time is None else micros(time.secs),
        baseline_measured_us=None if time is None else micros(time.baseline_secs),
        latency_us=latency * 1e6,
        speedup=untuned / latency if speedup is None else speedup.value,
        interval=interval(speedup),
    )


def comparison(view: ComparisonView) -> schemas.StoredComparison:
    return schemas.StoredComparison(**view.result, user=view.user_name, created_at=view.created_at)


def trial(view: TrialView) -> schemas.Trial:
    return schemas.Trial(
        id=view.id,
        workload_hash=view.workload_hash,
        number=view.number,
        state=view.state,
        origin=view.origin,
        predicted=view.predicted,
        predicted_by=view.predicted_by,
        median_us=micros(view.median),
        failure_kind=view.failure_kind,
        failure_stage=view.failure_stage,
        failure_message=view.failure_message,
        worker=view.worker,
        created_at=view.created_at,
        finished_at=view.finished_at,
        spans=[
            schemas.Span(
                stage=span.lane,
                worker=span.worker,
                started_at=datetime.fromtimestamp(span.start, UTC),
                finished_at=datetime.fromtimestamp(span.end, UTC),
            )
            for span in view.spans
        ],
    )


def _speedup(baseline: float | None, best: float | None, certified: SpeedupInterval | None) -> float | None:
    if certified is None:  # as in events of earlier releases
        return None if baseline is None or best is None else baseline / best
    return certified.value


def event(view: EventView) -> schemas.Event:
    match view.change:
        case JobChanged(state, error):
            return schemas.JobChanged(state=state, error=error, at=view.created_at)
        case TaskChanged(workload_hash, task_state, baseline, best, range_):
            return schemas.TaskChanged(
                workload_hash=workload_hash,
                state=task_state,
                baseline_us=micros(baseline),
                best_us=micros(best),
                speedup=_speedup(baseline, best, range_),
                interval=interval(range_),
                certified=best is not None,
                at=view.created_at,
            )
        case Rechecked(workload_hash, name, result):
            return schemas.RecheckFinished(
                workload_hash=workload_hash,
                name=name,
                result=schemas.RecheckResult.model_validate(result),
                at=view.created_at,
            )
        case TrialFinished(finished):
            return schemas.TrialFinished.model_validate({**dict(trial(finished)), "at": view.created_at})
