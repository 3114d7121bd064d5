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
    return Counts(jobs=_by_state(session, Job), trials=_by_state(session, Trial))


def _by_state(session: Session, table: type[Job] | type[Trial]) -> dict[str, int]:
    counted = session.execute(select(table.state, func.count()).group_by(table.state))
    return dict(counted.tuples().all())
