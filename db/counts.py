"""How much of everything there is: for monitoring."""

from __future__ import annotations

from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Job, Trial


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by state; a state without rows is missing."""

    jobs: dict[str, int]
    trials: dict[str, int]


def count(session: Session) -> Counts:
    jobs = session.execute(select(Job.state, func.count()).group_by(Job.state)).all()
    trials = session.execute(select(Trial.state, func.count()).group_by(Trial.state)).all()
    return Counts(jobs={state: n for state, n in jobs}, trials={state: n for state, n in trials})
