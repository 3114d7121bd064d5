"""Comparisons of jobs' models with other engines: the latest of each job."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from sqlalchemy import select

from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.models import Comparison
from db.upsert import insert
from db.views import ComparisonView


class Comparisons:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def put(self, job_id: str, user_name: str, result: dict[str, Any]) -> ComparisonView:
        """Store a job's comparison, and replace an earlier one."""
        with self._sessions.write() as session:
            stored = ComparisonView(user_name, result, self._sessions.now())
            row = asdict(stored)
            statement = insert(session, Comparison).values(job_id=job_id, **row)
            session.execute(statement.on_conflict_do_update(index_elements=["job_id"], set_=row))
        return stored

    def of_job(self, job_id: str) -> ComparisonView | None:
        with self._sessions.read() as session:
            row = session.scalar(select(Comparison).where(Comparison.job_id == job_id))
            return None if row is None else ComparisonView(row.user_name, row.result, row.created_at)
