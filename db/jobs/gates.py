"""Gates: the reference of a job, with which it is compared when its tasks are finished, and the result."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.leases import own_job
from db.models import Gate
from db.views import GateView
from tuner.errors import LeaseLost


class Gates:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of_job(self, job_id: str) -> GateView | None:
        with self._sessions.read() as session:
            row = session.scalar(select(Gate).where(Gate.job_id == job_id))
            return None if row is None else GateView(row.request, row.result)

    @retry_conflicts
    def store(self, job_id: str, lease_token: str, result: dict[str, Any]) -> None:
        """Store the result of a job's gate. Raise LeaseLost if another run has the job."""
        with self._sessions.write() as session:
            if own_job(session, job_id, lease_token) is None:
                raise LeaseLost(f"job {job_id} is no longer under this lease")
            session.get_one(Gate, job_id).result = result
