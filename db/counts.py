"""Totals for monitoring and for the overview, from sums that are updated with each change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.models import Best, Job, LeaseLossCount, Task, Trial, TrialCount, Workload
from db.states import LeaseLoss
from db.upsert import insert
from loopwright.codegen.kinds import FINISHED, TrialState
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
    trials_since: int
    saved_secs: float
    search_saved_secs: float


def count(session: Session) -> Counts:
    """Count everything, independent of the caller's visibility."""
    jobs = session.execute(select(Job.state, func.count()).group_by(Job.state))
    outcomes = session.execute(select(TrialCount.outcome, func.sum(TrialCount.trials)).group_by(TrialCount.outcome))
    proposed = select(func.count()).select_from(Trial).where(Trial.state == TrialState.PROPOSED)
    lost = session.execute(select(LeaseLossCount.cause, LeaseLossCount.losses))
    return Counts(
        jobs=dict(jobs.all()),
        trials={outcome: int(trials) for outcome, trials in outcomes},
        proposed=session.scalar(proposed) or 0,
        lease_losses=dict(lost.all()),
    )


def totals(session: Session, since: datetime) -> Totals:
    """Everything that there is; ``trials_since`` counts those that were proposed after `since` and have ended."""
    of_jobs = select(
        Job.state,
        func.count(),
        func.sum(Job.trials),
        func.sum(Job.saved_secs),
        func.sum(Job.search_saved_secs),
    ).group_by(Job.state)
    rows = session.execute(of_jobs).all()
    # Those of a job that has not ended are counted in its tasks.
    unfinished = select(func.sum(Task.trials)).join(Job, Task.job_id == Job.id).where(Job.state.not_in(FINISHED))
    ended = Trial.number > 0, Trial.state != TrialState.PROPOSED
    recent = select(func.count()).where(Trial.created_at > since, *ended)
    return Totals(
        jobs={state: jobs for state, jobs, *_ in rows},
        workloads=session.scalar(select(func.count()).select_from(Workload)) or 0,
        bests=session.scalar(select(func.count()).select_from(Best)) or 0,
        trials=sum(trials for _, _, trials, *_ in rows) + (session.scalar(unfinished) or 0),
        trials_since=session.scalar(recent) or 0,
        saved_secs=sum(saved for *_, saved, _ in rows),
        search_saved_secs=sum(search_saved for *_, search_saved in rows),
    )


def count_lease_loss(session: Session, cause: LeaseLoss) -> None:
    """Count a lease that was lost. Last in a transaction: all jobs share these rows."""
    statement = insert(session, LeaseLossCount).values(cause=cause, losses=1)
    more = {"losses": LeaseLossCount.losses + 1}
    session.execute(statement.on_conflict_do_update(index_elements=["cause"], set_=more))


def count_trial(session: Session, task: Task, trial: Trial, outcome: Outcome) -> None:
    """Count a trial that ends to its task, and to all."""
    name, learns = TrialState.MEASURED.value, trial.features is not None
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
    task.device_secs += device_seconds(outcome.spans)
    key = {"device_class_id": trial.device_class_id, "tvm_version": trial.tvm_version, "outcome": name}
    more = {"trials": 1, "samples": int(learns)}
    statement = insert(session, TrialCount).values(**key, **more)
    sums = {column: getattr(TrialCount, column) + number for column, number in more.items()}
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=sums))
