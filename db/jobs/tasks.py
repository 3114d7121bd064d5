"""Tasks: the workloads of a job; at most one task at a time tunes the same workload, device class and space."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import or_, select
from sqlalchemy.orm import Session, load_only

from db.engine.connections import Sessions
from db.errors import NotFound
from db.events import task_event
from db.leases import own_task
from db.models import Certificate, Job, Task
from db.results.certificates import library_time
from db.results.evidence import interval_of
from db.views import TaskView
from loopwright.codegen.kinds import FINISHED_TASK, AnsweredFrom, FailureKind, JobState, TaskState


def _view(task: Task, certificate: Certificate | None) -> TaskView:
    return TaskView(
        id=task.id,
        job_id=task.job_id,
        position=task.position,
        workload_hash=task.workload_hash,
        name=task.name,
        weight=task.weight,
        sources=tuple(task.sources),
        state=task.state,
        key=task.key,
        answered_from=task.answered_from,
        certificate_id=task.certificate_id,
        record_id=certificate.trial_id if certificate else None,
        error=task.error,
        started_at=task.started_at,
        finished_at=task.finished_at,
        trials=task.trials,
        failed=sum(task.failures.values()),
        failures={FailureKind(kind): count for kind, count in task.failures.items()},
        baseline_secs=certificate.baseline_median if certificate else task.baseline_secs,
        best_secs=certificate.best_median if certificate else task.best_secs,
        searched_secs=task.best_secs,
        device_secs=task.device_secs,
        library=library_time(certificate) if certificate else None,
        interval=interval_of(certificate.document) if certificate else None,
    )


_ANSWER = load_only(
    *(Certificate.trial_id, Certificate.baseline_median, Certificate.best_median),
    *(Certificate.library, Certificate.document),
)
"""What `_view` needs of a certificate: the samples beside it would be decoded twice."""


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
        wanted = (
            select(Task, Certificate)
            .outerjoin(Certificate, Task.certificate_id == Certificate.id)
            .where(Task.job_id.in_(tasks_of))
            .order_by(Task.job_id, Task.position)
            .options(_ANSWER)
        )
        with self._sessions.read() as session:
            for task, certificate in session.execute(wanted):
                tasks_of[task.job_id].append(_view(task, certificate))
        return tasks_of

    def try_start(self, task_id: str, lease_token: str) -> bool:
        """Begin or resume tuning. False: a living job tunes the same workload, device class and space right now."""
        with self._sessions.write() as session:
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

    def join(self, task_id: str, lease_token: str) -> None:
        """Mark a task as waiting for the answer of the task that tunes the same."""
        with self._sessions.write() as session:
            _, task = own_task(session, task_id, lease_token)
            if task.state != TaskState.JOINED:
                task.state = TaskState.JOINED
                task_event(session, task, self._sessions.now())

    def answer(self, task_id: str, lease_token: str, certificate_id: str, answered_from: AnsweredFrom) -> None:
        """End a task with a stored certificate. Raise `NotFound` also if there is no such certificate."""
        with self._sessions.write() as session:
            _, task = own_task(session, task_id, lease_token)
            certificate = session.get(Certificate, certificate_id)
            if certificate is None:
                raise NotFound("certificate", certificate_id)
            task.certificate_id = certificate_id
            task.answered_from = answered_from
            self._end(session, task, TaskState.SUCCEEDED, None, certificate)

    def fail(self, task_id: str, lease_token: str, error: str) -> None:
        """End a task without an answer; `error` tells the user why."""
        with self._sessions.write() as session:
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
