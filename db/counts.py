"""How much of everything there is: for monitoring, and for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Best, Job, Trial, Workload


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by state; a state without rows is missing."""

    jobs: dict[str, int]
    trials: dict[str, int]


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is; ``saved_secs`` is what one run of every tuned model saves, ``search_saved_secs`` what
    answers from the database and joined searches saved."""

    jobs: dict[str, int]
    workloads: int
    bests: int
    trials: int
    trials_since: int
    saved_secs: float
    search_saved_secs: float


def count(session: Session) -> Counts:
    return Counts(jobs=_by_state(session, Job), trials=_by_state(session, Trial))


def totals(session: Session, since: datetime) -> Totals:
    """Everything that there is; ``trials_since`` counts those that ended after `since`."""
    saved = select(func.sum(Job.saved_secs), func.sum(Job.search_saved_secs))
    saved_secs, search_saved_secs = session.execute(saved).one()
    return Totals(
        jobs=_by_state(session, Job),
        workloads=session.scalar(select(func.count()).select_from(Workload)) or 0,
        bests=session.scalar(select(func.count()).select_from(Best)) or 0,
        trials=session.scalar(select(func.count()).select_from(Trial).where(Trial.finished_at.is_not(None))) or 0,
        trials_since=session.scalar(select(func.count()).select_from(Trial).where(Trial.finished_at > since)) or 0,
        saved_secs=saved_secs or 0.0,
        search_saved_secs=search_saved_secs or 0.0,
    )


def _by_state(session: Session, table: type[Job] | type[Trial]) -> dict[str, int]:
    counted = session.execute(select(table.state, func.count()).group_by(table.state))
    return dict(counted.all())
