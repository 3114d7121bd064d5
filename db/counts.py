"""How much of everything there is: for monitoring, and for the overview."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Best, Certificate, Job, Task, Trial, Workload
from db.views import Totals


@dataclass(frozen=True, slots=True)
class Counts:
    """Rows by state; a state without rows is missing."""

    jobs: dict[str, int]
    trials: dict[str, int]


def count(session: Session) -> Counts:
    return Counts(jobs=_by_state(session, Job), trials=_by_state(session, Trial))


def totals(session: Session, since: datetime) -> Totals:
    """Everything that there is; ``trials_since`` counts those that ended after `since`."""
    gain = Task.weight * (Certificate.baseline_median - Certificate.best_median)
    saved = select(func.sum(gain)).join(Task, Task.certificate_id == Certificate.id).join(Job, Task.job_id == Job.id)
    spared = (
        select(func.sum(Certificate.search_secs))
        .join(Task, Task.certificate_id == Certificate.id)
        .where(Task.answered_from.in_(("database", "joined")))
    )
    return Totals(
        jobs=_by_state(session, Job),
        workloads=session.scalar(select(func.count()).select_from(Workload)) or 0,
        bests=session.scalar(select(func.count()).select_from(Best)) or 0,
        trials=session.scalar(select(func.count()).select_from(Trial).where(Trial.finished_at.is_not(None))) or 0,
        trials_since=session.scalar(select(func.count()).select_from(Trial).where(Trial.finished_at > since)) or 0,
        saved_secs=session.scalar(saved.where(Job.state == "succeeded")) or 0.0,
        search_saved_secs=session.scalar(spared) or 0.0,
    )


def _by_state(session: Session, table: type[Job] | type[Trial]) -> dict[str, int]:
    counted = session.execute(select(table.state, func.count()).group_by(table.state))
    return dict(counted.tuples().all())
