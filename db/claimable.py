"""Which jobs a controller may claim, as statements without an order."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from sqlalchemy import Select, and_, exists, false, func, or_, select
from sqlalchemy.orm import aliased

from db.devices import same_machine
from db.models import Certificate, Gate, Job, Recheck, Task
from db.models import DeviceClass as DeviceClassRow
from db.states import FINISHED, JobState
from tuner.types import DeviceClass


def expired_jobs(now: datetime) -> Select[Job]:
    """Return the jobs whose owners have not renewed their leases."""
    return select(Job).where(Job.state == JobState.RUNNING, Job.lease_expires_at <= now)


def queued_jobs(machines: Collection[DeviceClass] | None) -> Select[Job]:
    """Return the queued jobs for these machines, or for any."""
    queued = select(Job).where(Job.state == JobState.QUEUED)
    if machines is None:
        return queued
    classes = select(DeviceClassRow.id).where(or_(false(), *map(same_machine, machines)))
    return queued.where(Job.device_class_id.in_(classes))


def answered_jobs() -> Select[Job]:
    """Return the queued jobs of whose open tasks each has a certificate that is enough (see `Certificates.known`)."""
    every = aliased(Task)
    tasks = select(func.count(every.id)).where(every.job_id == Job.id).correlate(Job).scalar_subquery()
    enough = (
        Certificate.workload_hash == Task.workload_hash,
        Certificate.device_class_id == Job.device_class_id,
        Certificate.space_hash == Job.space_hash,
        Certificate.regressed_at.is_(None),
        # The budget of each task is that of the job over their number, rounded up.
        or_(Certificate.budget_trials * tasks >= Job.max_trials, and_(Job.until_plateau, Certificate.at_plateau)),
    )
    known = exists().where(*enough).correlate(Task, Job)
    unanswered = exists().where(Task.job_id == Job.id, Task.state.not_in(FINISHED), ~known).correlate(Job)
    races = [exists().where(table.job_id == Job.id, table.result.is_(None)).correlate(Job) for table in (Gate, Recheck)]
    queued = select(Job).where(Job.state == JobState.QUEUED, Job.force.is_(False))
    return queued.where(~unanswered, *(~race for race in races))
