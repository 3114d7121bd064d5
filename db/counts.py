"""Totals for monitoring and for the overview, from sums that are updated with each change."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Select, func, select
from sqlalchemy.orm import Session

from db.access.visibility import count_seen
from db.conditions import trials_begun
from db.engine.statements import cache_statements
from db.job_counts import sums_by_state
from db.models import Best, LeaseLossCount, Task, Trial, TrialCount, TrialTally, Workload
from db.states import LeaseLoss
from db.tallies import Tallied, Tally, add_tally
from db.upsert import add
from loopwright.codegen.kinds import TrialState
from tuner.types import LOSSES, Failure, Measured, Outcome, device_seconds


@dataclass(frozen=True, slots=True)
class Counts:
    """Jobs by state; a state without jobs is missing.

    ``trials`` has those that ever ended, by "measured" or the kind of their failure; ``proposed`` have not ended yet.
    ``lease_losses`` has all that there ever were.
    """

    jobs: dict[str, int]
    trials: dict[str, int]
    proposed: int
    lease_losses: dict[LeaseLoss, int]


@dataclass(frozen=True, slots=True)
class Totals:
    """How much there is; ``saved_secs`` is what one run of every tuned model saves, ``search_saved_secs`` what
    answers from the database and joined searches saved.

    ``trials`` are those that jobs made, without baselines, whether or not they are still stored.
    """

    jobs: dict[str, int]
    workloads: int
    bests: int
    trials: int
    saved_secs: float
    search_saved_secs: float


def count(session: Session) -> Counts:
    """Count everything, independent of the caller's visibility."""
    outcomes: Counter[str] = Counter()
    for table in (TrialCount, TrialTally):
        for outcome, trials in session.execute(select(table.outcome, func.sum(table.trials)).group_by(table.outcome)):
            outcomes[outcome] += int(trials)
    proposed = select(func.count()).select_from(Trial).where(Trial.state == TrialState.PROPOSED)
    lost = session.execute(select(LeaseLossCount.cause, LeaseLossCount.losses))
    return Counts(
        jobs={state: jobs for state, (jobs, *_) in sums_by_state(session).items() if jobs},
        trials=dict(outcomes),
        proposed=session.scalar(proposed) or 0,
        lease_losses=dict(lost.all()),
    )


def trials_since(session: Session, since: datetime) -> int:
    """Return the number of trials that were proposed after `since` and have ended, without baselines."""
    recent = select(Trial.id).where(Trial.created_at > since, Trial.number > 0, Trial.state != TrialState.PROPOSED)
    return count_seen(session, recent, Trial.workload_hash)


def totals(session: Session) -> Totals:
    """Everything that there is."""
    by_state = sums_by_state(session)
    # Those of a job that has not ended are counted in its tasks.
    return Totals(
        jobs={state: jobs for state, (jobs, *_) in by_state.items() if jobs},
        workloads=count_seen(session, _workloads(), Workload.hash),
        bests=count_seen(session, _bests(), Best.workload_hash),
        trials=sum(trials for _, trials, *_ in by_state.values()) + int(session.scalars(_trials_begun()).one()),
        saved_secs=sum(saved for *_, saved, _ in by_state.values()),
        search_saved_secs=sum(search_saved for *_, search_saved in by_state.values()),
    )


@cache_statements
def _workloads() -> Select[str]:
    return select(Workload.hash)


@cache_statements
def _bests() -> Select[str]:
    return select(Best.workload_hash)


@cache_statements
def _trials_begun() -> Select[int]:
    return trials_begun()


def count_lease_loss(session: Session, cause: LeaseLoss) -> None:
    """Count a lease that was lost. Last in a transaction: all jobs share these rows."""
    add(session, LeaseLossCount, {"cause": cause}, {"losses": 1})


@dataclass(frozen=True, slots=True)
class CountedTrial:
    """What counts of a trial besides its outcome; ``learns``: it has features, of which a cost model learns."""

    number: int
    device_class_id: str
    tvm_version: str
    learns: bool


def count_trials(
    session: Session,
    ended: Iterable[tuple[Task, CountedTrial, Outcome]],
    users: Mapping[str, str],
    now: datetime,
) -> None:
    """Count trials that end: to their tasks, to the use of the ``users`` (by job), and to all."""
    tallies: defaultdict[Tally, Tallied] = defaultdict(Tallied)
    for task, trial, outcome in ended:
        name, learns, seconds = TrialState.MEASURED.value, trial.learns, device_seconds(outcome.spans)
        match outcome:
            case Measured():
                task.best_secs = min(outcome.median, task.best_secs or outcome.median)
                if trial.number == 0:
                    task.baseline_secs = outcome.median
            case Failure():
                name, learns = outcome.kind.value, learns and outcome.kind not in LOSSES
                if trial.number > 0:
                    task.failures = task.failures | {name: task.failures.get(name, 0) + 1}
        task.trials += trial.number > 0
        task.device_secs += seconds
        tallied = tallies[Tally(task.id, name, users[task.job_id], trial.device_class_id, trial.tvm_version)]
        tallied.trials += 1
        tallied.samples += learns
        tallied.device_seconds += seconds
    for tally, tallied in tallies.items():
        add_tally(session, tally, tallied, now)
