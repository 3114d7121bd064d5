"""Leases: the row lock on a job that every change takes first, and the check of the job's token."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Select, bindparam, select
from sqlalchemy.orm import Session

from db.engine.statements import cache_statements
from db.errors import InvalidTransition, NotFound
from db.models import Job, Task, Trial
from loopwright.codegen.kinds import FINISHED_TASK, JobState, TaskState, TrialState
from tuner.errors import LeaseLost

RENEW_SECONDS = 2.0
"""Between two renewals of a lease."""
_SERVER_LEASE_SECONDS = 8.0
"""When a machine dies, another one has its jobs after so long. Three renewals may fail meanwhile."""
_FILE_LEASE_SECONDS = 120.0
"""Twice as long as a writer waits for an SQLite file (`db.engine.connections.BUSY_TIMEOUT_MS`): a lease that cannot
be renewed for so long does not expire. All who use a file are on one machine, and its controller takes up its own
jobs at its start.
"""


def lease_seconds(dialect: str) -> float:
    """Return how long a lease lasts from its last renewal."""
    return _FILE_LEASE_SECONDS if dialect == "sqlite" else _SERVER_LEASE_SECONDS


def lock_job(session: Session, job_id: str) -> Job:
    """Return the job, locked to the end of the transaction. Raise `NotFound`."""
    # NO KEY UPDATE: rows that merely refer to the job (foreign keys) are not held up.
    job = session.scalar(select(Job).where(Job.id == job_id).with_for_update(key_share=True))
    if job is None:
        raise NotFound("job", job_id)
    return job


def own_job(session: Session, job_id: str, lease_token: str) -> Job | None:
    """Return the job, locked, if `lease_token` is its lease; else None."""
    return session.scalar(_owned_job(), {"job_id": job_id, "lease_token": lease_token})


@cache_statements
def _owned_job() -> Select[Job]:
    lease = Job.state == JobState.RUNNING, Job.lease_token == bindparam("lease_token")
    return select(Job).where(Job.id == bindparam("job_id"), *lease).with_for_update(key_share=True)


def own_task(session: Session, task_id: str, lease_token: str) -> tuple[Job, Task]:
    """Return an unfinished task with its locked job. Raise `LeaseLost`, `NotFound` or `InvalidTransition`."""
    job = session.scalar(_job_of_task(), {"task_id": task_id})
    if job is None:
        raise NotFound("task", task_id)
    if job.state != JobState.RUNNING or job.lease_token != lease_token:
        raise LeaseLost(f"job {job.id} is no longer under this lease")
    task = session.get_one(Task, task_id)
    if task.state in FINISHED_TASK:
        raise InvalidTransition(f"task {task_id} is {task.state}")
    return job, task


@cache_statements
def _job_of_task() -> Select[Job]:
    mine = select(Job).join(Task, Task.job_id == Job.id).where(Task.id == bindparam("task_id"))
    return mine.with_for_update(key_share=True, of=Job)


def own_running_task(session: Session, task_id: str, lease_token: str) -> tuple[Job, Task]:
    """Like `own_task`, for a task that this job tunes: raise `LeaseLost` also if another job took the task over."""
    job, task = own_task(session, task_id, lease_token)
    if task.state != TaskState.RUNNING:
        raise LeaseLost(f"task {task_id} is {task.state}: it has not been started, or was taken over")
    return job, task


def lock_jobs_of(session: Session, trial_ids: Collection[str]) -> dict[str, str]:
    """Lock the jobs of some trials, and return the user of each by the job's id."""
    return dict(session.execute(_jobs_of_trials(), {"trial_ids": list(trial_ids)}).all())


@cache_statements
def _jobs_of_trials() -> Select[str, str]:
    of_trials = Trial.id.in_(bindparam("trial_ids", expanding=True))
    jobs = select(Task.job_id).join(Trial, Trial.task_id == Task.id).where(of_trials)
    # In the order in which everyone locks them.
    locked = select(Job.id, Job.user_name).where(Job.id.in_(jobs)).order_by(Job.id)
    return locked.with_for_update(key_share=True)


def own_trial(session: Session, trial_id: str, lease_token: str) -> tuple[Job, Task, Trial] | None:
    """Return an unfinished trial that `lease_token` owns, with its task and its locked job; else None."""
    job = session.scalar(
        select(Job)
        .join(Task, Task.job_id == Job.id)
        .join(Trial, Trial.task_id == Task.id)
        .where(Trial.id == trial_id)
        .with_for_update(key_share=True, of=Job)
    )
    # Not in the same statement: what that saw of them may be older than the lock.
    trial = session.get(Trial, trial_id)
    if job is None or trial is None or trial.lease_token != lease_token or trial.state != TrialState.PROPOSED:
        return None
    return job, session.get_one(Task, trial.task_id), trial
