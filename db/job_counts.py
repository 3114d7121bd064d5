"""Job counts: how many jobs there are, and what they came to, by user, visibility and state.

The rows are changed last in a transaction, in the order of their keys, because all jobs of a user share them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from types import SimpleNamespace
from typing import Any, NamedTuple

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.conditions import UNFINISHED
from db.engine.changes import at_end
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.models import Job, JobCount
from db.upsert import add_last
from loopwright.codegen.kinds import FINISHED, JobState

_CHANGES = "changes of job counts"


class _Key(NamedTuple):
    user_name: str
    private: bool
    state: JobState


@dataclass(slots=True)
class _Change:
    """What is added to a row."""

    jobs: int = 0
    promised_trials: int = 0
    trials: int = 0
    saved_secs: float = 0.0
    search_saved_secs: float = 0.0


_SUMS = tuple(each.name for each in fields(_Change))


def count_job(session: Session, job: Job | SimpleNamespace, before: JobState | None) -> None:
    """Count a job that comes into its state from the state ``before``; None: it is new."""
    promised = job.budget["max_trials"]
    if before is not None:
        change = _change(session, job, before)
        change.jobs -= 1
        change.promised_trials -= 0 if before in FINISHED else promised
    change = _change(session, job, job.state)
    change.jobs += 1
    if job.state in FINISHED:
        change.trials += job.trials
        change.saved_secs += job.saved_secs
        change.search_saved_secs += job.search_saved_secs
    else:
        change.promised_trials += promised


def count_saving(session: Session, job: Job, secs: float) -> None:
    """Add to what one run of a finished job's model saves."""
    job.saved_secs += secs
    _change(session, job, job.state).saved_secs += secs


def forget_job(session: Session, job: Job) -> None:
    """Count a finished job that is deleted one less. What it came to stays counted."""
    _change(session, job, job.state).jobs -= 1


def _change(session: Session, job: Job | SimpleNamespace, state: JobState) -> _Change:
    changes: dict[_Key, _Change] | None = session.info.get(_CHANGES)
    if changes is None:
        changes = session.info[_CHANGES] = defaultdict(_Change)
        at_end(session, _write_changes)
    return changes[_Key(job.user_name, job.private, state)]


def _write_changes(session: Session) -> None:
    _add(session, session.info[_CHANGES])


def _add(session: Session, changes: Mapping[_Key, _Change]) -> None:
    rows = [key._asdict() | asdict(changes[key]) for key in sorted(changes)]
    add_last(session, JobCount, _Key._fields, _SUMS, rows)


class JobCounts:
    """Counts jobs anew: processes of an earlier release, which may run beside this one, do not count them."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def correct(self) -> int:
        """Set the numbers of jobs to what a snapshot of all jobs says; return how many rows were wrong."""
        with self._sessions.read() as session:
            wrong = dict(_differences(session))
        if wrong:
            with self._sessions.write() as session:
                _add(session, wrong)
        return len(wrong)


def _differences(session: Session) -> Iterator[tuple[_Key, _Change]]:
    """Yield what the rows lack in jobs and promised trials."""
    key = Job.user_name, Job.private, Job.state
    numbers = session.execute(select(*key, func.count()).group_by(*key))
    jobs = Counter({_Key(name, private, state): number for name, private, state, number in numbers})
    counted = {_Key(row.user_name, row.private, row.state): row for row in session.scalars(select(JobCount))}
    lacking = Counter(jobs)
    lacking.subtract({each: row.jobs for each, row in counted.items()})
    if not any(lacking.values()):
        return
    budgets = select(*key, func.sum(Job.budget["max_trials"].as_integer())).where(UNFINISHED).group_by(*key)
    rows = session.execute(budgets)
    promised = {_Key(name, private, state): int(trials) for name, private, state, trials in rows}
    for each, number in lacking.items():
        if number:
            before = counted[each].promised_trials if each in counted else 0
            yield each, _Change(number, promised.get(each, 0) - before)


@cache_statements
def _sums() -> Select[*tuple[Any, ...]]:
    columns = JobCount.jobs, JobCount.trials, JobCount.saved_secs, JobCount.search_saved_secs
    return select(JobCount.state, *(func.sum(column) for column in columns)).group_by(JobCount.state)


def sums_by_state(session: Session) -> dict[JobState, tuple[int, int, float, float]]:
    """Return the number of jobs in each state, their trials, and the seconds that they saved and were spared."""
    rows = session.execute(_sums())
    return {state: (int(jobs), int(trials), saved, spared) for state, jobs, trials, saved, spared in rows}
