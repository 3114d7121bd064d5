"""Tasks that their job left without a certificate, because its time was over, and the certificates of other jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.bests import FASTEST_FIRST
from db.job_counts import count_saving
from db.models import Certificate, Job, Task
from loopwright.codegen.kinds import AnsweredFrom, JobState, TaskState
from loopwright.codegen.source_text import shortened

NO_TIME = (
    "the time of the job was over before its closing race; the service certifies it when no user's job waits, or give "
    "the next job more max_seconds"
)
"""The error of such a task."""
_NONE_LEFT = (
    "the time of the job was over before all of its closing races; other jobs have certified the functions that were "
    "left, as the notes say"
)

_MOST_NAMES = 5
"""In a job's error. Not tuned."""


class Named(Protocol):
    """A task, as a row or as a value."""

    @property
    def name(self) -> str: ...

    @property
    def sources(self) -> Sequence[str]: ...


def why_partly(left: Sequence[Named], tasks: int) -> str:
    """Return the error of a job with this number of tasks, of which these are left."""
    named = ", ".join(map(_called, left[:_MOST_NAMES]))
    more = f" and {len(left) - _MOST_NAMES} more" if len(left) > _MOST_NAMES else ""
    return f"{len(left)} of {tasks} tasks have no certificate ({named}{more}): {NO_TIME}"


def _called(task: Named) -> str:
    """Return where the model calls a function, or else the name of the function."""
    return shortened(task.sources) or task.name


def certify_by_known(session: Session, job: Job, now: datetime) -> None:
    """Answer the tasks that a job leaves with the certificates of the same search space that are known, if any is."""
    for task in _tasks(session, job):
        if task.error == NO_TIME:
            known = select(Certificate).where(
                Certificate.workload_hash == task.workload_hash,
                Certificate.device_class_id == job.device_class_id,
                Certificate.space_hash == job.space_hash,
                Certificate.regressed_at.is_(None),
            )
            certificate = session.scalars(known.order_by(*FASTEST_FIRST).limit(1)).one_or_none()
            if certificate is not None:
                _certify(session, job, task, certificate, now)


def certify_left(session: Session, key: str, certificate: Certificate, now: datetime) -> None:
    """Answer with a new certificate the tasks of this key that ended jobs left."""
    left = select(Task, Job).join(Job, Task.job_id == Job.id)
    left = left.where(Task.key == key, Task.error == NO_TIME, Job.state == JobState.PARTLY)
    # In the order in which everyone locks them.
    for task, job in session.execute(left.order_by(Job.id).with_for_update()).all():
        _certify(session, job, task, certificate, now)


def _certify(session: Session, job: Job, task: Task, certificate: Certificate, now: datetime) -> None:
    """Answer a task; a note of its job says when. The job stays ``partly``, which is how it ended.

    No event is written: the streams of jobs that have ended are over.
    """
    task.certificate_id = certificate.id
    task.answered_from = AnsweredFrom.DATABASE
    task.state, task.error, task.finished_at = TaskState.SUCCEEDED, None, now
    session.flush()
    tasks = _tasks(session, job)
    left = [each for each in tasks if each.error == NO_TIME]
    job.error = why_partly(left, len(tasks)) if left else _NONE_LEFT
    job.notes = [*job.notes, f"{_called(task)} has the certificate of another job since {now:%Y-%m-%d, %H:%M} UTC"]
    count_saving(session, job, task.weight * (certificate.baseline_median - certificate.best_median))


def _tasks(session: Session, job: Job) -> Sequence[Task]:
    return session.scalars(select(Task).where(Task.job_id == job.id).order_by(Task.position)).all()
