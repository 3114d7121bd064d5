"""The rows of jobs: inserted from submissions, and read as values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session

from db.engine.columns import digest, new_id
from db.engine.statements import cache_statements
from db.events import job_event_row
from db.inputs import NewJob, space_hash
from db.job_counts import count_job
from db.models import Ablation, Base, Event, Gate, Job, Recheck, Task
from db.upsert import insert_last
from db.views import JobView, ModelTime, Phase, SpeedupInterval
from loopwright.codegen.kinds import JobState, TaskState
from tuner.budget import Budget
from tuner.codec import decode, encode
from tuner.types import TaskSpec


def stored_tags(tags: Iterable[str]) -> str:
    """Return tags as a column, sorted: each between line feeds, which none of them contains."""
    known = sorted(set(tags))
    return "".join(f"\n{tag}" for tag in known) + "\n" if known else ""


LINE = (
    *(Job.id, Job.name, Job.state, Job.target_json, Job.device_class_id, Job.space_hash, Job.budget),
    *(Job.suggested_trials, Job.seed, Job.priority, Job.force, Job.notes, Job.cancel_requested, Job.activity),
    *(Job.error, Job.created_at, Job.started_at, Job.finished_at, Job.attempts, Job.elapsed_s, Job.user_name),
    *(Job.private, Job.model_secs, Job.model_baseline_secs, Job.model_speedup, Job.group_id, Job.labels_json),
    *(Job.tags, Job.description, Job.phases, Job.shapes),
)
"""The columns of `job_view`, which are read without making objects of the rows."""


@cache_statements
def job_line() -> Select[*tuple[Any, ...]]:
    """Select the columns `LINE` of the job with the id ``job_id``."""
    return select(*LINE).where(Job.id == bindparam("job_id"))


def line_view(*line: Any) -> JobView:
    """Return a job from the columns `LINE`."""
    return job_view(SimpleNamespace(**dict(zip(_NAMES, line, strict=True))))


_NAMES = [column.key for column in LINE]
_Rows = dict[type[Base], list[dict[str, Any]]]


def job_view(row: Job | SimpleNamespace) -> JobView:
    return JobView(
        id=row.id,
        name=row.name,
        state=row.state,
        target_json=row.target_json,
        device_class_id=row.device_class_id,
        space_hash=row.space_hash,
        budget=decode(Budget, row.budget),
        suggested_trials=row.suggested_trials,
        seed=row.seed,
        priority=row.priority,
        force=row.force,
        notes=tuple(row.notes),
        cancel_requested=row.cancel_requested,
        activity=row.activity,
        error=row.error,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        elapsed_s=row.elapsed_s,
        user_name=row.user_name,
        private=row.private,
        model_time=_model_time(row),
        group_id=row.group_id,
        labels=json.loads(row.labels_json),
        tags=tuple(filter(None, row.tags.split("\n"))),
        description=row.description,
        phases=tuple(Phase(words, datetime.fromtimestamp(since, UTC)) for words, since in row.phases),
        has_variants=len(row.shapes or ()) > 1,
    )


def insert_jobs(
    session: Session, jobs: Sequence[tuple[NewJob, Sequence[TaskSpec]]], now: datetime, group_id: str | None
) -> list[JobView]:
    """Insert queued jobs with their tasks, whose device classes and workloads are stored already.

    They are one job, or a group, whose first job has the idempotency key of all. A server has them at the end of the
    transaction.
    """
    rows: _Rows = {table: [] for table in (Job, Task, Gate, Recheck, Ablation, Event)}
    added = [_add_rows(rows, new, tasks, now, group_id, position) for position, (new, tasks) in enumerate(jobs)]
    insert_last(session, list(rows.items()))
    for job in added:
        count_job(session, job, None)
    return [job_view(job) for job in added]


def _add_rows(
    rows: _Rows, new: NewJob, tasks: Sequence[TaskSpec], now: datetime, group_id: str | None, group_position: int
) -> SimpleNamespace:
    """Add the rows of a queued job by table, and return the job."""
    space = space_hash(new.space_json)
    row: dict[str, Any] = {
        "id": new_id(),
        "name": new.name,
        "state": JobState.QUEUED,
        "module_json": new.module_json,
        "space_json": new.space_json,
        "space_hash": space,
        "shapes": None if new.shapes is None else list(new.shapes),
        "device_class_id": new.device_class.id,
        "target_json": new.device_class.target_json,
        "budget": encode(new.budget),
        "suggested_trials": new.suggested_trials,
        "seed": new.seed,
        "priority": new.priority,
        "force": new.force,
        "notes": list(new.notes),
        "user_name": new.user_name,
        "private": new.private,
        "labels_json": json.dumps(new.labels, sort_keys=True),
        "tags": stored_tags(new.tags),
        "description": new.description,
        "phases": [],
        "idempotency_key": new.idempotency_key if group_position == 0 else None,
        "request_digest": new.request_digest if group_position == 0 else None,
        "group_id": group_id,
        "group_position": None if group_id is None else group_position,
        "cancel_requested": False,
        "created_at": now,
        "queued_at": now,
        "attempts": 0,
        "elapsed_s": 0.0,
    }
    job = SimpleNamespace(**(dict.fromkeys(_NAMES) | row))
    rows[Job].append(row)
    rows[Task] += [
        {
            "id": new_id(),
            "job_id": job.id,
            "position": position,
            "workload_hash": spec.workload.hash,
            "name": spec.workload.name,
            "weight": spec.weight,
            "sources": list(spec.sources),
            "key": digest(spec.workload.hash, job.device_class_id, space),
            "state": TaskState.QUEUED,
        }
        for position, spec in enumerate(tasks)
    ]
    if new.gate is not None:
        rows[Gate].append({"job_id": job.id, "request": new.gate})
    rows[Recheck] += [
        {"job_id": job.id, "certificate_id": certificate_id, "reason": reason}
        for certificate_id, reason in new.rechecks
    ]
    if new.ablated_trial is not None:
        rows[Ablation].append({"job_id": job.id, "trial_id": new.ablated_trial})
    rows[Event].append(job_event_row(job, now))
    return job


def _model_time(row: Job | SimpleNamespace) -> ModelTime | None:
    if row.model_secs is None:
        return None
    return ModelTime(row.model_secs, row.model_baseline_secs, SpeedupInterval.stored(row.model_speedup))
