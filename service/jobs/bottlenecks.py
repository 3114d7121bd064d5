"""``/jobs/{id}/bottlenecks``: what limits the functions of a job, which decision mattered, where the time is left."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

from fastapi import APIRouter

from db.views import TaskView
from loopwright import schemas
from loopwright.codegen.source_text import shortened
from service.bodies.route import ParsedRoute
from service.context import Context, Ctx
from service.records.wire import library
from service.units import micros
from service.workloads import decisions
from service.workloads.roof import Roof, roof

router = APIRouter(prefix="/jobs", tags=["jobs"], route_class=ParsedRoute)

_Decision = schemas.Neighbour | schemas.EstimatedDecision
_Undecided = Literal["unscheduled", "no decisions", "unmeasured"]

_DECIDED = 3
"""Functions whose decisions are looked at: their traces are read in a child process."""


@router.get("/{job_id}/bottlenecks")
def get_bottlenecks(ctx: Ctx, job_id: str) -> schemas.Bottlenecks:
    """Return what limits each function, how much time is left above that limit, and which decisions mattered.

    The decisions are those of the three functions that take most time.
    """
    view = ctx.database.jobs.get(job_id)
    every = ctx.database.tasks.of_job(job_id)
    tasks = [task for task in every if task.best_secs is not None]
    workloads = ctx.database.workloads.summaries([task.workload_hash for task in tasks])
    peaks = ctx.database.devices.peaks(view.device_class_id)
    longest = sorted(tasks, key=_seconds, reverse=True)[:_DECIDED]
    untimed = len(every) - len(tasks)
    total = None if view.has_variants or not tasks else math.fsum(map(_seconds, tasks))
    found = [
        _bottleneck(
            task,
            roof(workloads[task.workload_hash], peaks, task.best_secs),
            _decision(ctx, task, view.device_class_id) if task in longest else None,
            total if untimed == 0 else None,
        )
        for task in tasks
    ]
    return schemas.Bottlenecks(
        functions=sorted(found, key=lambda each: each.us if each.left_us is None else each.left_us, reverse=True),
        untimed=untimed,
        us=None if total is None else micros(total),
        left_us=None if total is None else _sum(each.left_us for each in found),
        unknown_us=None if total is None else math.fsum(each.us for each in found if each.limit is None),
    )


def _seconds(task: TaskView) -> float:
    return task.weight * (task.best_secs or 0.0)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None


def _bottleneck(
    task: TaskView,
    limit: Roof | None,
    decision: _Decision | _Undecided | None,
    of_model: float | None,
) -> schemas.Bottleneck:
    seconds = _seconds(task)
    least = None if limit is None else task.weight * limit.seconds
    return schemas.Bottleneck(
        workload_hash=task.workload_hash,
        name=task.name,
        source=shortened(task.sources) or None,
        record_id=task.record_id,
        calls=task.weight,
        us=micros(seconds),
        model_share=seconds / of_model if of_model else None,
        limit=None if limit is None else limit.limit,
        roof_us=micros(least),
        left_us=None if least is None else micros(max(0.0, seconds - least)),
        library=library(task.library),
        decision=None if isinstance(decision, str) else decision,
        undecided=decision if isinstance(decision, str) else None,
    )


def _decision(ctx: Context, task: TaskView, device_class: str) -> _Decision | _Undecided | None:
    """Return the decision that mattered most in the best of a task, or why none is known; None without a best."""
    if task.record_id is None:
        return None
    trace_json = ctx.database.records.get(task.record_id).record.trace_json
    if trace_json is None:
        return "unscheduled"
    if not decisions.are_in(trace_json):
        return "no decisions"
    measured = _measured(ctx, task.record_id)
    return measured or _estimated(ctx, task.workload_hash, device_class, task.record_id) or "unmeasured"


def _measured(ctx: Context, record_id: str) -> schemas.Neighbour | None:
    """Return the neighbour of the newest ablation that lost most time."""
    stored = ctx.database.ablations.of_record(record_id)
    if stored is None or stored.result is None:
        return None
    result = schemas.AblationResult.model_validate(stored.result)
    ran = [(each.slowdown.value, number) for number, each in enumerate(result.neighbours) if each.slowdown is not None]
    return result.neighbours[max(ran)[1]] if ran else None


def _estimated(ctx: Context, workload_hash: str, device_class: str, record_id: str) -> schemas.EstimatedDecision | None:
    trials, table = decisions.fastest(ctx, workload_hash, device_class, decisions.MOST)
    row = next((row for trial, row in zip(trials, table.rows, strict=True) if trial.trial_id == record_id), None)
    if row is None:
        return None
    weighed = [
        (column.importance, column.name, decisions.in_words(column.categories, value))
        for column, value in zip(table.columns, row, strict=True)
        if column.importance is not None and column.kind in decisions.SAMPLED and value is not None
    ]
    if not weighed:
        return None
    importance, name, value = max(weighed)
    return schemas.EstimatedDecision(name=name, value=value, importance=importance, trials=len(trials))
