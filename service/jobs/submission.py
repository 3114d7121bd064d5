"""From a request to a stored job: everything is checked before anything is written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass

from db.inputs import NewJob, space_hash
from db.views import JobView
from loopwright import schemas
from service.context import Context
from service.fleet.offers import resolve
from service.ledger import budget_per_task
from service.records import wire
from tuner.types import DeviceClass, TaskSpec, Workload


def submit(ctx: Context, request: schemas.SubmitJob, idempotency_key: str | None, tvm_version: str) -> JobView:
    """Store the job as queued, or return the one that came before under the same key. Raises ProblemError."""
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    earlier = ctx.database.jobs.earlier(idempotency_key, digest)
    if earlier is not None:
        return earlier
    parsed = _parse(ctx, request)
    job = NewJob(
        name=request.name or _name(parsed.tasks),
        module_json=parsed.module_json,
        device_class=parsed.device_class,
        max_trials=request.budget.max_trials,
        max_seconds=request.budget.max_seconds,
        seed=request.seed,
        priority=request.priority,
        space_json=parsed.space_json,
        shapes=tuple(request.shapes) if isinstance(request.shapes, list) else None,
        force=request.force,
        notes=(*parsed.translated, *parsed.left_alone),
        idempotency_key=idempotency_key,
        request_digest=digest,
    )
    return ctx.database.jobs.create(job, parsed.tasks, tvm_version)


def resubmit(
    ctx: Context, job_id: str, changes: schemas.Resubmit, idempotency_key: str | None, tvm_version: str
) -> JobView:
    """Submit a job's module anew. Raises NotFound and what `submit` raises."""
    job, inputs = ctx.database.jobs.get(job_id), ctx.database.jobs.inputs(job_id)
    request = schemas.SubmitJob(
        module=schemas.ModulePayload(format="tvm-json", data=inputs.module_json),
        target=json.loads(job.target_json),
        name=job.name,
        seed=job.seed if changes.seed is None else changes.seed,
        priority=job.priority,
        budget=changes.budget or schemas.Budget(max_trials=job.max_trials, max_seconds=job.max_seconds),
        space=None if inputs.space_json is None else json.loads(inputs.space_json),
        shapes=inputs.shapes,
        force=job.force if changes.force is None else changes.force,
    )
    return submit(ctx, request, idempotency_key, tvm_version)


def preview(ctx: Context, request: schemas.SubmitJob) -> schemas.Preview:
    """What `submit` would store. Raises ProblemError as it does."""
    parsed = _parse(ctx, request)
    device_class = parsed.device_class
    return schemas.Preview(
        name=request.name or _name(parsed.tasks),
        target=json.loads(device_class.target_json),
        device_class=device_class.id,
        device_model=device_class.model,
        tasks=[_preview(ctx, request, parsed, task) for task in parsed.tasks],
        left_alone=parsed.left_alone,
        notes=parsed.translated,
    )


def _preview(ctx: Context, request: schemas.SubmitJob, parsed: _Parsed, task: TaskSpec) -> schemas.PreviewTask:
    workload = task.workload
    best = ctx.database.certificates.best(workload.hash, parsed.device_class.id)
    known = ctx.database.certificates.known(
        workload.hash,
        parsed.device_class.id,
        space_hash(parsed.space_json),
        budget_per_task(request.budget.max_trials, len(parsed.tasks)),
    )
    return schemas.PreviewTask(
        name=workload.name,
        workload_hash=workload.hash,
        op=workload.operation.op,
        args=[schemas.Tensor(shape=list(info.shape), dtype=info.dtype) for info in workload.args],
        weight=task.weight,
        flop=workload.operation.flop,
        best=None if best is None else wire.best(best),
        answered=known is not None and not request.force,
    )


@dataclass(frozen=True, slots=True)
class _Parsed:
    """A submission taken apart: ``translated`` and ``left_alone`` are words for the user."""

    device_class: DeviceClass
    module_json: str
    space_json: str | None
    tasks: list[TaskSpec]
    translated: list[str]
    left_alone: list[str]


def _parse(ctx: Context, request: schemas.SubmitJob) -> _Parsed:
    device_class = resolve(ctx, request.target)
    found = ctx.sandbox.call(
        "service.intake:parse",
        fmt=request.module.format,
        data=request.module.data,
        target_json=device_class.target_json,
        shapes=request.shapes,
        space=request.space,
    )
    tasks = [TaskSpec(Workload.from_json(task), task["weight"]) for task in found["tasks"]]
    return _Parsed(device_class, found["module_json"], found["space_json"], tasks, found["translated"], found["notes"])


def _name(tasks: list[TaskSpec]) -> str:
    names = [task.workload.name for task in tasks]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
