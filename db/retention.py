"""Retention: trials of old jobs that no result, no search and no base model needs may be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import delete, exists, or_, select, union
from sqlalchemy.orm import Session

from db.cost_models import newest_samples
from db.engine.connections import Sessions
from db.models import Certificate, Event, Job, Task, Trial, TrialCount, TrialTally
from db.states import EventType
from loopwright.codegen.kinds import FINISHED, FailureKind

FASTEST = 32
"""Trials that are kept of each workload and device class: searches begin with the fastest ones."""
_CHUNK = 500
"""Rows in one statement. Not tuned."""

T = TypeVar("T")


class Retention:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def old_jobs(self, days: float) -> list[str]:
        """Return the jobs that ended more than ``days`` ago and have trials, the oldest first."""
        before = self._sessions.now() - timedelta(days=days)
        with_trials = exists().where(Task.job_id == Job.id, Trial.task_id == Task.id)
        wanted = select(Job.id).where(Job.state.in_(FINISHED), Job.finished_at < before, with_trials)
        with self._sessions.read() as session:
            return list(session.scalars(wanted.order_by(Job.finished_at, Job.id)))

    def samples(self) -> set[str]:
        """Return the trials that the base models would be trained on now."""
        with self._sessions.read() as session:
            counted, tallied = (select(each.device_class_id, each.tvm_version) for each in (TrialCount, TrialTally))
            return {
                id
                for device_class_id, tvm_version in session.execute(union(counted, tallied)).all()
                for id, _ in newest_samples(session, device_class_id, tvm_version)
            }

    def prune(self, job_id: str, samples: set[str], *, dry_run: bool = False) -> int:
        """Delete the trials of a finished job that nothing needs, with their events; return how many.

        Of each task, the baseline stays, what certificates are about or name as rejected, the `FASTEST` of the workload
        on the device class, what must not be tried again, and those in ``samples``. The job gets a note. ``dry_run``
        changes nothing.
        """
        # Most jobs have nothing more to delete. To find that out, nobody who writes should have to wait.
        with self._sessions.read() as session:
            found = len(_doomed(session, session.get_one(Job, job_id), samples))
        if dry_run or not found:
            return found
        with self._sessions.write() as session:
            job = session.get_one(Job, job_id)
            doomed = _doomed(session, job, samples)
            if doomed:
                _delete(session, job_id, set(doomed))
                job.notes = [*job.notes, _note(len(doomed), self._sessions.now())]
            return len(doomed)


def _doomed(session: Session, job: Job, samples: set[str]) -> list[str]:
    if job.state not in FINISHED:
        return []
    return [id for task in _tasks(session, job.id) for id in _needless(session, task, job, samples)]


def _tasks(session: Session, job_id: str) -> Sequence[Task]:
    return session.scalars(select(Task).where(Task.job_id == job_id).order_by(Task.position)).all()


def _needless(session: Session, task: Task, job: Job, samples: set[str]) -> list[str]:
    here = Trial.workload_hash == task.workload_hash, Trial.device_class_id == job.device_class_id
    fastest = select(Trial.id).where(*here, Trial.median.is_not(None)).order_by(Trial.median).limit(FASTEST)
    certificates = select(Certificate.trial_id, Certificate.rejected).where(
        Certificate.workload_hash == task.workload_hash, Certificate.device_class_id == job.device_class_id
    )
    kept = set(session.scalars(fastest))
    for trial_id, rejected in session.execute(certificates):
        kept.add(trial_id)
        kept.update(failure["trial_id"] for failure in rejected.values())
    again = or_(Trial.failure_kind.is_(None), Trial.failure_kind != FailureKind.KILLED)
    own = select(Trial.id).where(Trial.task_id == task.id, Trial.number > 0, again).order_by(Trial.number)
    return [id for id in session.scalars(own) if id not in kept and id not in samples]


def _delete(session: Session, job_id: str, trials: set[str]) -> None:
    events = select(Event.id, Event.data).where(Event.job_id == job_id, Event.type == EventType.TRIAL)
    numbers = [id for id, data in session.execute(events) if data["id"] in trials]
    for some in _batched(numbers, _CHUNK):
        session.execute(delete(Event).where(Event.id.in_(some)))
    for some in _batched(sorted(trials), _CHUNK):
        session.execute(delete(Trial).where(Trial.id.in_(some)))


def _batched(values: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(values), size):
        yield values[start : start + size]


def _note(count: int, now: datetime) -> str:
    trials = "trial was" if count == 1 else "trials were"
    return f"{count:,} {trials} pruned from the database on {now.date().isoformat()}"
