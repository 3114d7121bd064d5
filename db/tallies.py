"""Tallies: what trials come to, counted in rows of their own tasks and added later to the rows that all jobs share.

A row that every outcome changes is locked during each commit: the whole fleet would have one outcome a commit. A tally
is changed under the lock of its job, which an outcome has anyway.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import delete, select, tuple_
from sqlalchemy.orm import Session

from db.access.usage import day_of
from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.models import Base, TrialCount, TrialTally, Usage
from db.upsert import add, add_all

_AT_ONCE = 500
"""Tallies of one transaction. The jobs that count in them wait meanwhile. Not tuned."""


class Tally(NamedTuple):
    """What is counted of a task on a day: trials with this outcome."""

    task_id: str
    outcome: str
    user_name: str
    device_class_id: str
    tvm_version: str


@dataclass(slots=True)
class Tallied:
    """What trials come to; ``samples`` of them teach a cost model, and they were so long in measuring slots."""

    trials: int = 0
    samples: int = 0
    device_seconds: float = 0.0


def add_tally(session: Session, tally: Tally, tallied: Tallied, now: datetime) -> None:
    """Count trials that have ended now; the caller has the lock of their job."""
    facts = tally._asdict()
    key = {"task_id": facts.pop("task_id"), "day": day_of(now), "outcome": facts.pop("outcome")}
    add(session, TrialTally, key, asdict(tallied), facts)


class Tallies:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def add_up(self) -> int:
        """Add some tallies to the rows that all jobs share, and delete them; return how many. Several may do so."""
        some = (
            select(TrialTally)
            .order_by(TrialTally.task_id, TrialTally.day, TrialTally.outcome)
            .limit(_AT_ONCE)
            .with_for_update(skip_locked=True)
        )
        with self._sessions.write(Topic.NONE) as session:
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
    rows = [{**dict(zip(key, values, strict=True)), **totals[values], **rest} for values in sorted(totals)]
    if rows:
        add_all(session, table, key, sums, rows)
