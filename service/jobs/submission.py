"""From a request to a stored job: everything is checked before anything is written."""

from __future__ import annotations

import hashlib

from db.views import JobView, NewJob
from loopwright import schemas
from service.context import Context
from service.fleet.offers import resolve
from tuner.types import TaskSpec, TensorInfo, Workload


def submit(ctx: Context, request: schemas.SubmitJob, idempotency_key: str | None, tvm_version: str) -> JobView:
    """Store the job as queued, or return the one that came before under the same key. Raises ProblemError."""
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    earlier = ctx.database.jobs.earlier(idempotency_key, digest)
    if earlier is not None:
        return earlier
    device_class = resolve(ctx, request.target)
    parsed = ctx.sandbox.call(
        "service.intake:parse",
        fmt=request.module.format,
        data=request.module.data,
        target_json=device_class.target_json,
        shapes=request.shapes,
        space=request.space,
    )
    tasks = [
        TaskSpec(
            Workload(
                hash=task["hash"],
                family=task["family"],
                name=task["name"],
                module_json=task["module_json"],
                script=task["script"],
                args=tuple(TensorInfo(tuple(shape), dtype) for shape, dtype in task["args"]),
            ),
            task["weight"],
        )
        for task in parsed["tasks"]
    ]
    job = NewJob(
        name=request.name or _name(tasks),
        module_json=parsed["module_json"],
        device_class=device_class,
        max_trials=request.budget.max_trials,
        max_seconds=request.budget.max_seconds,
        seed=request.seed,
        priority=request.priority,
        space_json=parsed["space_json"],
        force=request.force,
        notes=tuple(parsed["notes"]),
        idempotency_key=idempotency_key,
        request_digest=digest,
    )
    return ctx.database.jobs.create(job, tasks, tvm_version)


def _name(tasks: list[TaskSpec]) -> str:
    names = [task.workload.name for task in tasks]
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
