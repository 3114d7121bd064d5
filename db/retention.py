"""Retention: what is old and no result, no search and no base model needs may be deleted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from sqlalchemy import ColumnElement, delete, exists, or_, select, union, update
from sqlalchemy.orm import Session

from db.cost_models import newest_samples
from db.engine.connections import Sessions
from db.job_counts import forget_job
from db.models import Ablation, Certificate, Comparison, Event, Gate, Job, Recheck, Task, Trial, TrialCount, TrialTally
from db.states import EventType
from db.upkeep.archive import Archive
from loopwright.codegen.kinds import FINISHED, FailureKind

FASTEST = 32
"""Trials that are kept of each workload and device class: searches begin with the fastest ones."""
_CHUNK = 500
"""Rows in one statement. Not tuned."""
_MOST = 5_000
"""Trials that are deleted in one transaction. Not tuned."""
_AGAIN_DAYS = 30
"""Between two looks through an old job: what was needed then may not be needed now."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ages:
    """For how many days after the end of a job something of it is kept; 0: for ever.

    ``events``, but for those of the job itself; ``trials`` that nothing needs; and ``jobs`` of which nothing is left.
    """

    events: float
    trials: float
    jobs: float

    @property
    def least(self) -> float | None:
        return min((each for each in (self.events, self.trials, self.jobs) if each), default=None)


@dataclass(frozen=True, slots=True)
class Swept:
    """How many events, trials and jobs were deleted."""

    events: int = 0
    trials: int = 0
    jobs: int = 0

    def __add__(self, other: Swept) -> Swept:
        return Swept(self.events + other.events, self.trials + other.trials, self.jobs + other.jobs)


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

    def due(self, ages: Ages, limit: int = 100) -> list[str]:
        """Return some jobs of these ages that were not looked through for a month, those never looked through first."""
        if ages.least is None:
            return []
        now = self._sessions.now()
        old = Job.finished_at.is_not(None), Job.finished_at < now - timedelta(days=ages.least)
        never = select(Job.id).where(*old, Job.swept_at.is_(None)).order_by(Job.finished_at, Job.id)
        long_ago = select(Job.id).where(*old, Job.swept_at < now - timedelta(days=_AGAIN_DAYS)).order_by(Job.swept_at)
        with self._sessions.read() as session:
            found = session.scalars(never.limit(limit)).all()
            return [*found, *session.scalars(long_ago.limit(limit - len(found)))]

    def sweep(self, job_id: str, ages: Ages, samples: set[str]) -> Swept:
        """Delete what is old of a finished job; see `prune` for its trials.

        A job is deleted as a whole if it has no trials, gate, rechecks, comparison and ablation: no result stands on
        it. Searches have a baseline, which stays.
        """
        with self._sessions.read() as session:
            job = session.get(Job, job_id)
        if job is None or job.finished_at is None:
            return Swept()
        age = (self._sessions.now() - job.finished_at).total_seconds() / 86400
        trials = self.prune(job_id, samples) if 0 < ages.trials < age else 0
        with self._sessions.write() as session:
            session.execute(update(Job).where(Job.id == job_id).values(swept_at=self._sessions.now()))
            if 0 < ages.jobs < age and not session.scalar(select(_has_something(job_id))):
                return Swept(trials=trials, jobs=_delete_job(session, job_id))
            old = Event.job_id == job_id, Event.type != EventType.JOB
            found = session.scalars(select(Event.id).where(*old)).all() if 0 < ages.events < age else []
            for some in _batched(found, _CHUNK):
                session.execute(delete(Event).where(Event.id.in_(some)))
            return Swept(len(found), trials)

    def samples(self) -> set[str]:
        """Return the trials that the base models would be trained on now."""
        with self._sessions.read() as session:
            counted, tallied = (select(each.device_class_id, each.tvm_version) for each in (TrialCount, TrialTally))
            return {
                id
                for device_class_id, tvm_version in session.execute(union(counted, tallied)).all()
                for id, _ in newest_samples(session, device_class_id, tvm_version)
            }

    def prune(self, job_id: str, samples: set[str], *, dry_run: bool = False, archive: Archive | None = None) -> int:
        """Delete the trials of a finished job that nothing needs, with their events; return how many.

        Of each task, the baseline stays, what certificates and ablations are about, what certificates name as rejected,
        the `FASTEST` of the workload on the device class, what must not be tried again, and those in ``samples``. The
        job gets a note. ``dry_run`` changes nothing. What is deleted is in the ``archive`` before, if there is one.
        """
        # Most jobs have nothing more to delete. To find that out, nobody who writes should have to wait.
        with self._sessions.read() as session:
            found = len(_doomed(session, session.get_one(Job, job_id), samples))
        if dry_run or not found:
            return found
        deleted = 0
        while True:
            with self._sessions.write() as session:
                job = session.get_one(Job, job_id)
                doomed = _doomed(session, job, samples)
                if archive is not None and doomed:
                    archive.add(session, job, doomed[:_MOST])
                _delete(session, job_id, set(doomed[:_MOST]))
                deleted += len(doomed[:_MOST])
                if len(doomed) <= _MOST:
                    if deleted:
                        job.notes = [*job.notes, _note(deleted, self._sessions.now())]
                    return deleted


def _has_something(job_id: str) -> ColumnElement[bool]:
    """Return the condition that results stand on a job."""
    trials = exists().where(Trial.task_id == Task.id, Task.job_id == job_id)
    return or_(trials, *(exists().where(table.job_id == job_id) for table in (Gate, Recheck, Comparison, Ablation)))


def _delete_job(session: Session, job_id: str) -> int:
    job = session.get_one(Job, job_id)
    forget_job(session, job)
    session.execute(delete(Event).where(Event.job_id == job_id))
    tasks = select(Task.id).where(Task.job_id == job_id)
    session.execute(delete(TrialTally).where(TrialTally.task_id.in_(tasks)))
    session.execute(delete(Task).where(Task.job_id == job_id))
    session.execute(delete(Job).where(Job.id == job_id))
    return 1


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
    kept.update(session.scalars(select(Ablation.trial_id).join(Trial, Trial.id == Ablation.trial_id).where(*here)))
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
