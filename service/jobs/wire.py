"""Jobs, tasks and trials as the wire shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from db.views import JobView, TaskView, TrialView
from loopwright import schemas

MICRO = 1e6


def micros(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * MICRO


def job(view: JobView, tasks: Sequence[TaskView]) -> schemas.Job:
    return schemas.Job(
        id=view.id,
        name=view.name,
        state=view.state,
        target=json.loads(view.target_json),
        budget=schemas.Budget(max_trials=view.max_trials, max_seconds=view.max_seconds),
        seed=view.seed,
        priority=view.priority,
        created_at=view.created_at,
        started_at=view.started_at,
        finished_at=view.finished_at,
        error=view.error,
        notes=list(view.notes),
        progress=schemas.Progress(
            trials=sum(item.trials for item in tasks),
            failed=sum(item.failed for item in tasks),
            total=view.max_trials,
        ),
        tasks=[task(item) for item in tasks],
    )


def task(view: TaskView) -> schemas.Task:
    return schemas.Task(
        workload_hash=view.workload_hash,
        name=view.name,
        weight=view.weight,
        state=view.state,
        trials=view.trials,
        baseline_us=micros(view.baseline_secs),
        best_us=micros(view.best_secs),
        speedup=view.speedup,
        certified=view.certified,
        answered_from=view.answered_from,
        record_id=view.record_id,
        failures={str(kind): count for kind, count in view.failures.items()},
        error=view.error,
    )


def trial(view: TrialView) -> schemas.Trial:
    return schemas.Trial(
        id=view.id,
        workload_hash=view.workload_hash,
        number=view.number,
        state=view.state,
        origin=view.origin,
        predicted=view.predicted,
        median_us=micros(view.median),
        failure_kind=view.failure_kind,
        failure_stage=view.failure_stage,
        failure_message=view.failure_message,
        worker=view.worker,
        created_at=view.created_at,
        finished_at=view.finished_at,
    )
