"""Ablations: races of a measured trial with its neighbours, and their results."""

from __future__ import annotations

from typing import Any

from sqlalchemy import select

from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.leases import own_job
from db.models import Ablation, Job
from db.views import AblationView
from tuner.errors import LeaseLost


class Ablations:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of_job(self, job_id: str) -> AblationView | None:
        """Return what a job ablates; None for other jobs."""
        return self._newest(Ablation.job_id == job_id)

    def of_record(self, trial_id: str) -> AblationView | None:
        """Return the newest ablation of a trial; None if there was none."""
        return self._newest(Ablation.trial_id == trial_id)

    def _newest(self, condition: Any) -> AblationView | None:
        wanted = select(Ablation, Job.state, Job.error).join(Job, Job.id == Ablation.job_id).where(condition)
        with self._sessions.read() as session:
            row = session.execute(wanted.order_by(Job.created_at.desc(), Job.id.desc()).limit(1)).one_or_none()
        return None if row is None else AblationView(row[0].job_id, row[0].trial_id, row[1], row[2], row[0].result)

    @retry_conflicts
    def store(self, job_id: str, lease_token: str, result: dict[str, Any]) -> None:
        """Store the result so far, in the form of the wire. Raise LeaseLost if another run has the job."""
        with self._sessions.write() as session:
            if own_job(session, job_id, lease_token) is None:
                raise LeaseLost(f"job {job_id} is no longer under this lease")
            session.get_one(Ablation, job_id).result = result
