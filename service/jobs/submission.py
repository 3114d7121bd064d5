"""Turn a request into stored jobs, one per target. Everything is checked before anything is stored."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace

from db.inputs import NewJob, space_hash
from db.results.lookup import KnownBest
from db.views import JobView
from loopwright import schemas
from loopwright.codegen.machine.names import machine_name
from loopwright.codegen.source_text import shortened
from service.context import Context
from service.fleet.offers import resolve, resolve_all
from service.gates import reference
from service.identity.visitor import Visitor
from service.jobs.suggestion import TRIALS_PER_FUNCTION, hint, suggested_trials
from service.jobs.wire import budget
from service.problems import ProblemError
from service.records import wire
from tuner.budget import Budget
from tuner.inspection.answers import Submission
from tuner.types import DeviceClass, TaskSpec


def submit(
    ctx: Context, visitor: Visitor, request: schemas.SubmitJob, idempotency_key: str | None, tvm_version: str
) -> list[JobView]:
    """Store a queued job for each target, or none, or return the jobs of an earlier request with the same key.

    Raise ProblemError and QuotaExceeded.
    """
    if request.priority > 0 and "administer" not in visitor.rights:
        detail = f"The priority is {request.priority}. Only admins may give one above 0; give 0 or less."
        raise ProblemError(403, "not-allowed", detail)
    digest = hashlib.sha256(request.model_dump_json().encode()).hexdigest()
    if earlier := ctx.database.jobs.earlier(visitor.user, idempotency_key, digest):
        return earlier
    machines = resolve_all(ctx, [request.target] if request.targets is None else request.targets, request.labels)
    jobs = [_job(ctx, visitor, request, machine, idempotency_key, digest) for machine in machines]
    if request.targets is not None:
        return ctx.database.jobs.create_group(jobs, tvm_version)
    [(job, tasks)] = jobs
    return [ctx.database.jobs.create(job, tasks, tvm_version)]


def _job(
    ctx: Context,
    visitor: Visitor,
    request: schemas.SubmitJob,
    device_class: DeviceClass,
    idempotency_key: str | None,
    digest: str,
) -> tuple[NewJob, Sequence[TaskSpec]]:
    """Return the job for one target, with its tasks. Raise ProblemError."""
    parsed = _parse(ctx, request, device_class)
    workloads = [task.workload for task in parsed.tasks]
    gate = None if request.gate is None else reference.resolve(ctx, visitor, request.gate, device_class, workloads)
    suggested = _suggested(ctx, request, device_class, parsed)
    limits = _limits(ctx, request, device_class, parsed)
    job = NewJob(
        name=request.name or _name(parsed.tasks),
        module_json=parsed.module_json,
        device_class=device_class,
        budget=limits,
        seed=request.seed,
        priority=request.priority,
        space_json=parsed.space_json,
        shapes=tuple(request.shapes) if isinstance(request.shapes, list) else None,
        force=request.force,
        suggested_trials=suggested,
        notes=(
            *hint(limits.max_trials, len(parsed.tasks), suggested),
            *parsed.translated,
            *parsed.left_alone,
        ),
        user_name=visitor.user,
        private=request.visibility == "private",
        labels=request.labels,
        tags=tuple(request.tags),
        description=request.description,
        gate=None if gate is None else gate.model_dump(mode="json"),
        idempotency_key=idempotency_key,
        request_digest=digest,
    )
    return job, parsed.tasks


def resubmit(
    ctx: Context,
    visitor: Visitor,
    job_id: str,
    changes: schemas.Resubmit,
    idempotency_key: str | None,
    tvm_version: str,
) -> JobView:
    """Submit a job's module again. Raise NotFound, ProblemError for a job without one, and what `submit` raises."""
    job, inputs = ctx.database.jobs.get(job_id), ctx.database.jobs.inputs(job_id)
    if not inputs.module_json:
        raise ProblemError(
            409,
            "no-module",
            "This job races known schedules: it has no module. Start a recheck with POST /rechecks.",
        )
    request = schemas.SubmitJob(
        module=schemas.ModulePayload(format="tvm-json", data=inputs.module_json),
        target=json.loads(job.target_json),
        name=job.name,
        seed=job.seed if changes.seed is None else changes.seed,
        # The priority of an admin's job is not for whoever submits it again.
        priority=job.priority if "administer" in visitor.rights else min(0, job.priority),
        visibility="private" if job.private else "team",
        budget=changes.budget or budget(job.budget),
        space=None if inputs.space_json is None else json.loads(inputs.space_json),
        shapes=inputs.shapes,
        force=job.force if changes.force is None else changes.force,
        labels=job.labels,
        tags=list(job.tags),
        description=job.description,
    )
    [view] = submit(ctx, visitor, request, idempotency_key, tvm_version)
    return view


def preview(ctx: Context, request: schemas.SubmitJob) -> schemas.Preview:
    """Return what `submit` would store for one target. Raise ProblemError as `submit` does."""
    if request.targets is not None:
        raise ProblemError(422, "invalid-request", "A preview is for one target. Give target instead of targets.")
    device_class = resolve(ctx, request.target, request.labels)
    parsed = _parse(ctx, request, device_class)
    hashes = [task.workload.hash for task in parsed.tasks]
    bests = ctx.database.lookup.bests(hashes, device_class.target_json, device_class_id=device_class.id)
    answered = _answered(ctx, request, device_class, parsed)
    return schemas.Preview(
        name=request.name or _name(parsed.tasks),
        target=json.loads(device_class.target_json),
        device_class=device_class.id,
        device_model=machine_name(device_class.model, device_class.target_json),
        tasks=[
            _preview(task, bests.get(task.workload.hash), known)
            for task, known in zip(parsed.tasks, answered, strict=True)
        ],
        suggested_trials=_suggested(ctx, request, device_class, parsed),
        left_alone=list(parsed.left_alone),
        notes=list(parsed.translated),
    )


def _preview(task: TaskSpec, known: KnownBest | None, answered: bool) -> schemas.PreviewTask:
    workload = task.workload
    return schemas.PreviewTask(
        name=workload.name,
        workload_hash=workload.hash,
        op=workload.operation.op,
        source=shortened(task.sources) or None,
        args=[schemas.Tensor(shape=list(info.shape), dtype=info.dtype) for info in workload.args],
        weight=task.weight,
        math=workload.math,
        flop=workload.operation.flop,
        best=None if known is None else wire.best(known.best),
        answered=answered,
    )


def _suggested(ctx: Context, request: schemas.SubmitJob, device_class: DeviceClass, parsed: Submission) -> int:
    """Return the trials that the model deserves; 0 if all its functions are known well enough."""
    return suggested_trials(_answered(ctx, request, device_class, parsed, at_least=TRIALS_PER_FUNCTION))


def _limits(ctx: Context, request: schemas.SubmitJob, device_class: DeviceClass, parsed: Submission) -> Budget:
    """Return the budget of a job, with the seconds that its functions ask for."""
    limits = Budget(**dict(request.budget))
    if request.seconds_per_function is None:
        return limits
    seconds = request.seconds_per_function * _answered(ctx, request, device_class, parsed).count(False)
    return replace(limits, max_seconds=max(limits.max_seconds or 0.0, seconds) or None)


def _answered(
    ctx: Context, request: schemas.SubmitJob, device_class: DeviceClass, parsed: Submission, *, at_least: int = 1
) -> list[bool]:
    """Return for each task whether an earlier search answers it, one that was allowed ``at_least`` that many trials."""
    if request.force or not parsed.tasks:
        return [False] * len(parsed.tasks)
    share = max(at_least, Budget(**dict(request.budget)).trials_of_a_task(len(parsed.tasks)))
    space, plateau = space_hash(parsed.space_json), request.budget.until == "plateau"

    def is_known(task: TaskSpec) -> bool:
        found = ctx.database.certificates.known(task.workload.hash, device_class.id, space, share, or_plateau=plateau)
        return found is not None

    return [is_known(task) for task in parsed.tasks]


def _parse(ctx: Context, request: schemas.SubmitJob, device_class: DeviceClass) -> Submission:
    return ctx.sandbox.parse(
        format=request.module.format,
        data=request.module.data,
        target_json=device_class.target_json,
        shapes=request.shapes,
        space=request.space,
        exact_math=request.exact_math,
        math=request.math,
        unproven=ctx.settings.unproven,
    )


def _name(tasks: Sequence[TaskSpec]) -> str:
    # Functions called main would all give the same name, which says nothing.
    names = [
        f"function {task.workload.hash[:8]}" if task.workload.name == "main" else task.workload.name for task in tasks
    ]
    if not names:
        return "nothing to tune"
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
