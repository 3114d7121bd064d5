"""Tasks: the workloads of a job; at most one task at a time tunes the same workload, device class and space."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Row, Select, bindparam, or_, select
from sqlalchemy.orm import Session

from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.errors import NotFound
from db.events import task_event
from db.jobs.left import certify_left
from db.leases import own_task
from db.models import Certificate, Job, Task
from db.results.certificates import library_time
from db.results.evidence import interval_of
from db.views import TaskView
from loopwright.codegen.kinds import FINISHED_TASK, AnsweredFrom, FailureKind, JobState, TaskState

_LINE = (
    *(Task.id, Task.job_id, Task.position, Task.workload_hash, Task.name, Task.weight, Task.sources, Task.state),
    *(Task.key, Task.answered_from, Task.certificate_id, Task.error, Task.started_at, Task.finished_at, Task.trials),
    *(Task.failures, Task.baseline_secs, Task.best_secs, Task.device_secs),
    *(Certificate.trial_id, Certificate.baseline_median, Certificate.best_median, Certificate.library),
    Certificate.document,
)
"""The columns of `_view`, which are read without making objects of the rows."""


@cache_statements
def _of_jobs() -> Select[*tuple[Any, ...]]:
    return (
        select(*_LINE)
        .select_from(Task)
        .outerjoin(Certificate, Task.certificate_id == Certificate.id)
        .where(Task.job_id.in_(bindparam("job_ids", expanding=True)))
        .order_by(Task.job_id, Task.position)
    )


def _view(line: Row[*tuple[Any, ...]]) -> TaskView:
    is_certified = line.trial_id is not None
    return TaskView(
        id=line.id,
        job_id=line.job_id,
        position=line.position,
        workload_hash=line.workload_hash,
        name=line.name,
        weight=line.weight,
        sources=tuple(line.sources),
        state=line.state,
        key=line.key,
        answered_from=line.answered_from,
        certificate_id=line.certificate_id,
        record_id=line.trial_id,
        error=line.error,
        started_at=line.started_at,
        finished_at=line.finished_at,
        trials=line.trials,
        failed=sum(line.failures.values()),
        failures={FailureKind(kind): count for kind, count in line.failures.items()},
        baseline_secs=line.baseline_median if is_certified else line.baseline_secs,
        best_secs=line.best_median if is_certified else line.best_secs,
        searched_secs=line.best_secs,
        device_secs=line.device_secs,
        library=library_time(line.library),
        interval=interval_of(line.document) if is_certified else None,
    )


class Tasks:
    """Methods that take a lease token raise `LeaseLost`, `NotFound`, or `InvalidTransition` for a finished task."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def of_job(self, job_id: str) -> list[TaskView]:
        """Return the tasks of a job in their order, with their progress; empty for an unknown job."""
        return self.of_jobs([job_id])[job_id]

    def of_jobs(self, job_ids: Iterable[str]) -> dict[str, list[TaskView]]:
        """Return the tasks of several jobs, by job id."""
        tasks_of: dict[str, list[TaskView]] = {job_id: [] for job_id in job_ids}
        with self._sessions.read() as session:
            for line in session.execute(_of_jobs(), {"job_ids": list(tasks_of)}):
                tasks_of[line.job_id].append(_view(line))
        return tasks_of

    @retry_conflicts
    def try_start(self, task_id: str, lease_token: str) -> bool:
        """Begin or resume tuning. False: a living job tunes the same workload, device class and space right now."""
        with self._sessions.write(Topic.JOBS) as session:
            job, mine = own_task(session, task_id, lease_token)
            now = self._sessions.now()
            # Everyone who wants this key locks its tasks in the same order: one decides after the other.
            rivals = session.scalars(
                select(Task)
                .where(Task.key == mine.key, or_(Task.id == task_id, Task.state.not_in(FINISHED_TASK)))
                .order_by(Task.id)
                .with_for_update()
                .execution_options(populate_existing=True)
            ).all()
            if mine.state == TaskState.RUNNING:
                return True
            for rival in rivals:
                if rival.state == TaskState.RUNNING:
                    holder = session.get_one(Job, rival.job_id)
                    if holder is job or _alive(holder, now):
                        return False
                    rival.state = TaskState.QUEUED
            # The dead holder must let go before the unique index sees the new one.
            session.flush()
            mine.state = TaskState.RUNNING
            mine.started_at = mine.started_at or now
            task_event(session, mine, now)
            return True

    @retry_conflicts
    def join(self, task_id: str, lease_token: str) -> None:
        """Mark a task as waiting for the answer of the task that tunes the same."""
        with self._sessions.write(Topic.JOBS) as session:
            _, task = own_task(session, task_id, lease_token)
            if task.state != TaskState.JOINED:
                task.state = TaskState.JOINED
                task_event(session, task, self._sessions.now())

    @retry_conflicts
    def answer(self, task_id: str, lease_token: str, certificate_id: str, answered_from: AnsweredFrom) -> None:
        """End a task with a stored certificate, and with it those that ended jobs left without one.

        Raise `NotFound` also if there is no such certificate.
        """
        with self._sessions.write(Topic.JOBS) as session:
            _, task = own_task(session, task_id, lease_token)
            certificate = session.get(Certificate, certificate_id)
            if certificate is None:
                raise NotFound("certificate", certificate_id)
            task.certificate_id = certificate_id
            task.answered_from = answered_from
            self._end(session, task, TaskState.SUCCEEDED, None, certificate)
            certify_left(session, task.key, certificate, self._sessions.now())

    @retry_conflicts
    def fail(self, task_id: str, lease_token: str, error: str) -> None:
        """End a task without an answer; `error` tells the user why."""
        with self._sessions.write(Topic.JOBS) as session:
            _, task = own_task(session, task_id, lease_token)
            self._end(session, task, TaskState.FAILED, error, None)

    def _end(
        self, session: Session, task: Task, state: TaskState, error: str | None, certificate: Certificate | None
    ) -> None:
        task.state = state
        task.error = error
        task.finished_at = now = self._sessions.now()
        task_event(session, task, now, certificate, interval_of(certificate.document) if certificate else None)


def _alive(job: Job, now: datetime) -> bool:
    return job.state == JobState.RUNNING and job.lease_expires_at is not None and job.lease_expires_at > now
