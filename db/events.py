"""The events of jobs, in order, for streams that can be resumed.

An event stores plain facts: states, and durations in seconds. A trial's event stores its id only, because a finished
trial never changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from types import SimpleNamespace
from typing import Any

from sqlalchemy import Integer, Select, bindparam, func, insert, select
from sqlalchemy.orm import Session

from db.clean_text import clean_text
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.models import Certificate, Event, Job, Task, Trial
from db.states import EventType
from db.trial_rows import LINE, trial_view
from db.views import (
    Change,
    EventView,
    JobChanged,
    Rechecked,
    SpeedupInterval,
    TaskChanged,
    TrialFinished,
    TrialView,
)
from loopwright.codegen.kinds import JobState, TaskState


def job_event(session: Session, job: Job, now: datetime) -> None:
    """Write a job's new state. As for every event, the caller holds the job's row lock, which keeps ids in order."""
    session.add(Event(**job_event_row(job, now)))


def job_event_row(job: Job | SimpleNamespace, now: datetime) -> dict[str, Any]:
    """Return the same as a row."""
    error = None if job.error is None else clean_text(job.error)
    return {"job_id": job.id, "type": EventType.JOB, "data": {"state": job.state, "error": error}, "created_at": now}


def task_event(
    session: Session,
    task: Task,
    now: datetime,
    certificate: Certificate | None = None,
    interval: SpeedupInterval | None = None,
) -> None:
    """Write a task's new state, with the medians of its certificate and their interval if it has one."""
    facts = {
        "workload_hash": task.workload_hash,
        "state": task.state,
        "baseline_secs": None if certificate is None else certificate.baseline_median,
        "best_secs": None if certificate is None else certificate.best_median,
        "interval": None if interval is None else asdict(interval),
    }
    _write(session, task.job_id, EventType.TASK, facts, now)


def trial_events(session: Session, trials: Sequence[tuple[str, str]], now: datetime) -> None:
    """Write that trials have ended, given as job and trial, in this order."""
    shared = {"type": EventType.TRIAL, "created_at": now}
    session.execute(insert(Event), [{"job_id": job_id, "data": {"id": id}, **shared} for job_id, id in trials])


def recheck_event(
    session: Session, job_id: str, workload_hash: str, name: str, result: dict[str, Any], now: datetime
) -> None:
    """Write that a certified best was raced again, with the result in the form of the wire."""
    _write(session, job_id, EventType.RECHECK, {"workload_hash": workload_hash, "name": name, "result": result}, now)


def _write(session: Session, job_id: str, type: EventType, data: dict[str, Any], now: datetime) -> None:
    session.add(Event(job_id=job_id, type=type, data=data, created_at=now))


@cache_statements
def _latest() -> Select[str, int | None]:
    # Grouped by job, SQLite would read all events of the jobs.
    last = select(func.max(Event.id)).where(Event.job_id == Job.id).scalar_subquery()
    return select(Job.id, last).where(Job.id.in_(bindparam("job_ids", expanding=True)))


class Events:
    """Reads events; each is written in the transaction of the change that it records."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def latest(self, job_ids: Sequence[str]) -> dict[str, int]:
        """Return the id of each job's latest event, 0 where there is none; jobs that there are not are left out."""
        with self._sessions.read() as session:
            found = session.execute(_latest(), {"job_ids": job_ids})
            return {job_id: number or 0 for job_id, number in found}

    def after(self, job_id: str, last_id: int = 0, limit: int = 500) -> list[EventView]:
        """Return the events of a job that follow `last_id`, oldest first, at most `limit`."""
        with self._sessions.read() as session:
            rows = session.scalars(_after(), {"job_id": job_id, "last_id": last_id, "most": limit}).all()
            trials = _trials(session, rows)
        return [EventView(row.id, row.job_id, row.type, row.created_at, _change(row, trials)) for row in rows]


def _trials(session: Session, events: Sequence[Event]) -> dict[str, TrialView]:
    ids = [event.data["id"] for event in events if event.type is EventType.TRIAL]
    if not ids:
        return {}
    views = (trial_view(*row) for row in session.execute(_ended(), {"ids": ids}))
    return {view.id: view for view in views}


@cache_statements
def _after() -> Select[Event]:
    later = select(Event).where(Event.job_id == bindparam("job_id"), Event.id > bindparam("last_id"))
    return later.order_by(Event.id).limit(bindparam("most", type_=Integer))


@cache_statements
def _ended() -> Select[*tuple[Any, ...]]:
    return select(*LINE).where(Trial.id.in_(bindparam("ids", expanding=True)))


def _change(event: Event, trials: Mapping[str, TrialView]) -> Change:
    facts = event.data
    match event.type:
        case EventType.JOB:
            return JobChanged(JobState(facts["state"]), facts["error"])
        case EventType.TASK:
            return TaskChanged(
                workload_hash=facts["workload_hash"],
                state=TaskState(facts["state"]),
                baseline_secs=facts["baseline_secs"],
                best_secs=facts["best_secs"],
                interval=SpeedupInterval.stored(facts.get("interval")),  # earlier releases did not store it
            )
        case EventType.TRIAL:
            return TrialFinished(trials[facts["id"]])
        case EventType.RECHECK:
            return Rechecked(facts["workload_hash"], facts["name"], facts["result"])
