"""The reference of a job, resolved and checked at submission, so that the race has everything that it needs."""

from __future__ import annotations

from collections.abc import Sequence

from db.errors import NotFound
from db.views import TaskView
from loopwright import schemas
from loopwright.codegen.kinds import JobState
from loopwright.codegen.source_text import shortened
from service.context import Context
from service.identity.visitor import Visitor
from service.problems import ProblemError
from tuner.types import DeviceClass, Workload


def resolve(
    ctx: Context, visitor: Visitor, gate: schemas.Gate, device_class: DeviceClass, workloads: Sequence[Workload]
) -> schemas.GateState:
    """Return a gate with its reference, for a model with these workloads.

    Raise ProblemError if the visitor has no such reference on this device class, or if it is one of another model.
    """
    if isinstance(gate.against, str):
        against, reference = _of_job(ctx, gate.against, visitor.user)
    else:
        against, reference = "functions", gate.against
    for function in reference:
        _check(ctx, function, device_class)
    known = {workload.hash for workload in workloads} | {workload.name for workload in workloads}
    if not any(function.workload_hash in known or function.name in known for function in reference):
        source = "The reference" if against == "functions" else f"The reference, job {against},"
        raise ProblemError(
            422,
            "no-reference",
            f"{source} has no function in common with this model, not even by name: it is one of another model. Give "
            "a reference of this model, or record a new one.",
        )
    return schemas.GateState(against=against, reference=reference, max_slowdown=gate.max_slowdown, result=None)


def _of_job(ctx: Context, name: str, user: str) -> tuple[str, list[schemas.ReferenceFunction]]:
    try:
        job = ctx.database.jobs.get(name)
    except NotFound:
        found = ctx.database.jobs.newest_named(name, JobState.SUCCEEDED, user)
        if found is None:
            raise ProblemError(
                422,
                "no-reference",
                f"{name!r} is neither the id of a job, nor the name of a job of {user} that succeeded. Give one.",
            ) from None
        job = found
    if job.state is not JobState.SUCCEEDED:
        detail = f"The reference, job {job.id}, is {job.state}. Give a job that has succeeded."
        raise ProblemError(422, "no-reference", detail)
    tasks = ctx.database.tasks.of_job(job.id)
    if not tasks:
        detail = f"The reference, job {job.id}, has no function to compare with. Give a job with tasks."
        raise ProblemError(422, "no-reference", detail)
    return job.id, functions_of(tasks)


def functions_of(tasks: Sequence[TaskView]) -> list[schemas.ReferenceFunction]:
    """Return the functions of a job, each with the record of its best."""
    return [
        schemas.ReferenceFunction(
            name=task.name,
            workload_hash=task.workload_hash,
            weight=task.weight,
            record_id=task.record_id or "",
            source=shortened(task.sources) or None,
        )
        for task in tasks
    ]


def _check(ctx: Context, function: schemas.ReferenceFunction, device_class: DeviceClass) -> None:
    try:
        record = ctx.database.records.get(function.record_id).record
    except NotFound:
        raise ProblemError(
            422,
            "no-reference",
            f"There is no record {function.record_id!r}, which the reference gives for {function.name}. Record the "
            "reference again.",
        ) from None
    if record.workload_hash != function.workload_hash:
        raise ProblemError(
            422,
            "no-reference",
            f"The record {record.id}, which the reference gives for {function.name}, belongs to another workload. "
            "Record the reference again.",
        )
    if record.device_class_id != device_class.id:
        raise ProblemError(
            422,
            "no-reference",
            f"{function.name} of the reference was measured on the device class {record.device_class_id}, and this "
            f"job is for {device_class.id}, so they cannot race. Submit the job for the target of the reference.",
        )
