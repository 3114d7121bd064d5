"""What happened to a job, in order, for streams that can be resumed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.columns import clean_text
from db.engine import Sessions
from db.models import Certificate, Event, Job, Task, Trial
from db.views import EventType, EventView


def job_event(session: Session, sessions: Sessions, job: Job) -> None:
    """Write a job's new state. As for every event, the caller holds the job's row lock, which keeps ids in order."""
    _write(session, sessions, job.id, "job", {"state": job.state, "error": job.error})


def task_event(session: Session, sessions: Sessions, task: Task, certificate: Certificate | None = None) -> None:
    """Write a task's new state, with the figures of its certificate."""
    data: dict[str, Any] = {
        "workload_hash": task.workload_hash,
        "state": task.state,
        "baseline_us": None,
        "best_us": None,
        "speedup": None,
        "certified": certificate is not None,
    }
    if certificate is not None:
        data["baseline_us"] = certificate.baseline_median * 1e6
        data["best_us"] = certificate.best_median * 1e6
        data["speedup"] = certificate.baseline_median / certificate.best_median
    _write(session, sessions, task.job_id, "task", data)


def trial_event(session: Session, sessions: Sessions, job_id: str, trial: Trial) -> None:
    """Write how a trial ended."""
    data = {
        "id": trial.id,
        "workload_hash": trial.workload_hash,
        "number": trial.number,
        "state": trial.state,
        "origin": trial.origin,
        "predicted": trial.predicted,
        "median_us": None if trial.median is None else trial.median * 1e6,
        "failure_kind": trial.failure_kind,
        "failure_stage": trial.failure_stage,
        "failure_message": trial.failure_message,
        "worker": trial.worker,
        "created_at": trial.created_at.isoformat(),
        "finished_at": None if trial.finished_at is None else trial.finished_at.isoformat(),
        "spans": [
            {
                "stage": lane,
                "worker": worker,
                "started_at": datetime.fromtimestamp(start, UTC).isoformat(),
                "finished_at": datetime.fromtimestamp(end, UTC).isoformat(),
            }
            for lane, worker, start, end in trial.spans or ()
        ],
    }
    _write(session, sessions, job_id, "trial", data)


def _write(session: Session, sessions: Sessions, job_id: str, type: EventType, data: dict[str, Any]) -> None:
    data = {name: clean_text(value) if isinstance(value, str) else value for name, value in data.items()}
    session.add(Event(job_id=job_id, type=type, data=data, created_at=sessions.now()))


class Events:
    """Reads events; they are written with the change that they tell of."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def after(self, job_id: str, last_id: int = 0, limit: int = 500) -> list[EventView]:
        """The events of a job that follow `last_id`, oldest first, at most `limit`."""
        wanted = select(Event).where(Event.job_id == job_id, Event.id > last_id).order_by(Event.id).limit(limit)
        with self._sessions.read() as session:
            return [
                EventView(id=row.id, job_id=row.job_id, type=row.type, created_at=row.created_at, data=row.data)  # type: ignore[arg-type]
                for row in session.scalars(wanted)
            ]
