"""Which jobs are claimed for another reason than that it is their turn, as statements without an order."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select
from sqlalchemy.orm import aliased

from db.conditions import RUNNING
from db.models import Ablation, Certificate, Gate, Job, Recheck, Task
from loopwright.codegen.kinds import FINISHED_TASK


def expired_jobs(now: datetime) -> Select[Job]:
    """Return the jobs whose owners have not renewed their leases."""
    return select(Job).where(RUNNING, Job.lease_expires_at <= now)


def database_answers() -> ColumnElement[bool]:
    """Return the condition that each open task of a job has a certificate that is enough (see `Certificates.known`)."""
    every = aliased(Task)
    tasks = select(func.count(every.id)).where(every.job_id == Job.id).correlate(Job).scalar_subquery()
    until = Job.budget["until"].as_string()
    enough = (
        Certificate.workload_hash == Task.workload_hash,
        Certificate.device_class_id == Job.device_class_id,
        Certificate.space_hash == Job.space_hash,
        Certificate.regressed_at.is_(None),
        # The budget of each task is that of the job over their number, rounded up.
        or_(
            Certificate.budget_trials * tasks >= Job.budget["max_trials"].as_integer(),
            and_(until == "plateau", Certificate.at_plateau),
        ),
    )
    known = exists().where(*enough).correlate(Task, Job)
    unanswered = exists().where(Task.job_id == Job.id, Task.state.not_in(FINISHED_TASK), ~known).correlate(Job)
    races = [
        exists().where(table.job_id == Job.id, table.result.is_(None)).correlate(Job)
        for table in (Gate, Recheck, Ablation)
    ]
    return and_(Job.force.is_(False), ~unanswered, *(~race for race in races))
