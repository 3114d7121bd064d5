"""Tallies: what trials come to, counted in rows of their own tasks and added later to the rows that all jobs share.

A row that every outcome changes is locked during each commit: the whole fleet would have one outcome a commit. A tally
is changed under the lock of its job, which an outcome has anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session

from db.access.usage import day_of
from db.engine.connections import Sessions
from db.models import Base, Job, Trial, TrialCount, TrialTally, Usage
from db.upsert import add

_AT_ONCE = 500
"""Tallies of one transaction. The jobs that count in them wait meanwhile. Not tuned."""


def tally(
    session: Session, job: Job, trial: Trial, outcome: str, *, learns: bool, seconds: float, now: datetime
) -> None:
    """Count a trial of a job that has ended, after ``seconds`` in measuring slots; the caller has the job's lock."""
    add(
        session,
        TrialTally,
        {"task_id": trial.task_id, "day": day_of(now), "outcome": outcome},
        {"trials": 1, "samples": int(learns), "device_seconds": seconds},
        {
            "user_name": job.user_name,
            "device_class_id": trial.device_class_id,
            "tvm_version": trial.tvm_version,
        },
    )


class Tallies:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def add_up(self) -> int:
        """Add some tallies to the rows that all jobs share, and delete them; return how many. Several may do so."""
        some = (
            select(TrialTally)
            .order_by(TrialTally.task_id, TrialTally.day, TrialTally.outcome)
            .limit(_AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        with self._sessions.write() as session:
            tallies = session.scalars(some).all()
            _add_up(
                session, tallies, Usage, ("user_name", "day"), ("trials", "device_seconds"), {"jobs": 0, "bytes": 0}
            )
            kind = ("device_class_id", "tvm_version", "outcome")
            _add_up(session, tallies, TrialCount, kind, ("trials", "samples"), {})
            identity = tuple_(TrialTally.task_id, TrialTally.day, TrialTally.outcome)
            counted = [(row.task_id, row.day, row.outcome) for row in tallies]
            session.execute(delete(TrialTally).where(identity.in_(counted)))
            return len(tallies)


def _add_up(
    session: Session,
    tallies: Sequence[TrialTally],
    table: type[Base],
    key: Sequence[str],
    sums: Sequence[str],
    rest: Mapping[str, Any],
) -> None:
    """Add tallies to the rows of a table with such a key. A new row has ``rest``, too."""
    totals: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in tallies:
        totals[tuple(getattr(row, column) for column in key)].update({column: getattr(row, column) for column in sums})
    # Sorted, so that two transactions take the locks in the same order.
    for values in sorted(totals):
        add(session, table, dict(zip(key, values, strict=True)), totals[values], rest)
