"""Which jobs a controller may claim, as statements without an order."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime

from sqlalchemy import ColumnElement, Select, and_, exists, false, func, or_, select
from sqlalchemy.orm import Session, aliased

from db.devices import same_machine
from db.inputs import LabelledMachine
from db.models import NO_LABELS, Certificate, Gate, Job, Recheck, Task
from db.models import DeviceClass as DeviceClassRow
from loopwright.codegen.kinds import FINISHED_TASK, JobState


def expired_jobs(now: datetime) -> Select[Job]:
    """Return the jobs whose owners have not renewed their leases."""
    return select(Job).where(Job.state == JobState.RUNNING, Job.lease_expires_at <= now)


def asked_labels(session: Session) -> list[str]:
    """Return the labels that queued jobs ask for, as they are stored, each once."""
    return list(session.scalars(select(Job.labels_json).where(_ASK_FOR_LABELS).distinct()))


_ASK_FOR_LABELS = and_(Job.state == JobState.QUEUED, Job.labels_json != NO_LABELS)


def queued_jobs(machines: Collection[LabelledMachine] | None, label_sets: Collection[str]) -> Select[Job]:
    """Return the queued jobs for these machines, or for any.

    ``asked`` are the labels that such jobs ask for; see `asked_labels`.
    """
    queued = select(Job).where(Job.state == JobState.QUEUED)
    if machines is None:
        return queued
    fitting = [and_(Job.labels_json == NO_LABELS, _is_for(machines))]
    for labels_json in label_sets:
        wanted = json.loads(labels_json).items()
        having = [machine for machine in machines if wanted <= machine.labels]
        fitting.append(and_(Job.labels_json == labels_json, _is_for(having)))
    return queued.where(or_(*fitting))


def _is_for(machines: Collection[LabelledMachine]) -> ColumnElement[bool]:
    classes = {machine.device_class for machine in machines}
    return Job.device_class_id.in_(select(DeviceClassRow.id).where(or_(false(), *map(same_machine, classes))))


def answered_jobs() -> Select[Job]:
    """Return the queued jobs of whose open tasks each has a certificate that is enough (see `Certificates.known`)."""
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
    races = [exists().where(table.job_id == Job.id, table.result.is_(None)).correlate(Job) for table in (Gate, Recheck)]
    queued = select(Job).where(Job.state == JobState.QUEUED, Job.force.is_(False))
    return queued.where(~unanswered, *(~race for race in races))
