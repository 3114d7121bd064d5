"""Jobs: submitted once, claimed under leases, finished once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import timedelta

from sqlalchemy import ColumnElement, and_, case, delete, func, literal, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, undefer

from db.claimable import answered_jobs, expired_jobs, queued_jobs
from db.columns import digest, new_id, new_token
from db.counts import count_lease_loss
from db.devices import put_device_class
from db.engine import Sessions
from db.errors import IdempotencyConflict, NotFound
from db.events import job_event, task_event
from db.inputs import NewJob, space_hash
from db.job_news import tell_queued
from db.leases import lock_job, own_job
from db.models import Certificate, Gate, Job, Recheck, Task, Trial
from db.paging import Keyset, Page
from db.states import FINISHED, AnsweredFrom, FinalState, JobState, LeaseLoss, TaskState, TrialState, WebhookEvent
from db.usage import admit
from db.views import ClaimedJob, JobInputs, JobView, LeaseView
from db.webhooks import notify
from db.workloads import put_workloads
from tuner.errors import LeaseLost
from tuner.types import DeviceClass, TaskSpec

_NEWEST = Keyset("jobs", Job.created_at, Job.id, descending=True)


def _view(row: Job) -> JobView:
    return JobView(
        id=row.id,
        name=row.name,
        state=row.state,
        target_json=row.target_json,
        device_class_id=row.device_class_id,
        space_hash=row.space_hash,
        max_trials=row.max_trials,
        max_seconds=row.max_seconds,
        max_device_seconds=row.max_device_seconds,
        target_latency_us=row.target_latency_us,
        until_plateau=row.until_plateau,
        suggested_trials=row.suggested_trials,
        seed=row.seed,
        priority=row.priority,
        force=row.force,
        notes=tuple(row.notes),
        cancel_requested=row.cancel_requested,
        error=row.error,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        attempts=row.attempts,
        elapsed_s=row.elapsed_s,
        user_name=row.user_name,
        private=row.private,
        model_secs=row.model_secs,
    )


class Jobs:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def create(self, new: NewJob, tasks: Sequence[TaskSpec], tvm_version: str) -> JobView:
        """Store a queued job with its tasks and their workloads, all or nothing.

        If its user created a job under the same idempotency key before, return that one; raise `IdempotencyConflict` if
        its request was another. Raise `QuotaExceeded` for a job that is over a limit of its user.
        """
        earlier = self.earlier(new.user_name, new.idempotency_key, new.request_digest)
        if earlier is not None:
            return earlier
        try:
            with self._sessions.write() as session:
                now = self._sessions.now()
                admit(session, new, now)
                put_device_class(session, new.device_class)
                holder = new.user_name if new.private else None
                put_workloads(session, [spec.workload for spec in tasks], tvm_version, now, private_to=holder)
                return self._insert(session, new, tasks)
        except IntegrityError:
            # Two equal requests at once: the other one was first.
            earlier = self.earlier(new.user_name, new.idempotency_key, new.request_digest)
            if earlier is None:
                raise
            return earlier

    def earlier(self, user_name: str, idempotency_key: str | None, request_digest: str | None) -> JobView | None:
        """Return the job that the user created under this key, if any.

        Raise `IdempotencyConflict` if its request was another.
        """
        if idempotency_key is None:
            return None
        with self._sessions.read() as session:
            row = session.scalar(select(Job).where(Job.user_name == user_name, Job.idempotency_key == idempotency_key))
        if row is None:
            return None
        if row.request_digest != request_digest:
            raise IdempotencyConflict(idempotency_key)
        return _view(row)

    def _insert(self, session: Session, new: NewJob, tasks: Sequence[TaskSpec]) -> JobView:
        space, now = space_hash(new.space_json), self._sessions.now()
        job = Job(
            id=new_id(),
            name=new.name,
            state=JobState.QUEUED,
            module_json=new.module_json,
            space_json=new.space_json,
            space_hash=space,
            shapes=None if new.shapes is None else list(new.shapes),
            device_class_id=new.device_class.id,
            target_json=new.device_class.target_json,
            max_trials=new.max_trials,
            max_seconds=new.max_seconds,
            max_device_seconds=new.max_device_seconds,
            target_latency_us=new.target_latency_us,
            until_plateau=new.until_plateau,
            suggested_trials=new.suggested_trials,
            seed=new.seed,
            priority=new.priority,
            force=new.force,
            notes=list(new.notes),
            user_name=new.user_name,
            private=new.private,
            idempotency_key=new.idempotency_key,
            request_digest=new.request_digest,
            cancel_requested=False,
            created_at=now,
            queued_at=now,
            attempts=0,
            elapsed_s=0.0,
        )
        session.add(job)
        session.flush()
        for position, spec in enumerate(tasks):
            task = Task(
                id=new_id(),
                job_id=job.id,
                position=position,
                workload_hash=spec.workload.hash,
                name=spec.workload.name,
                weight=spec.weight,
                key=digest(spec.workload.hash, job.device_class_id, space),
                state=TaskState.QUEUED,
            )
            session.add(task)
        if new.gate is not None:
            session.add(Gate(job_id=job.id, request=new.gate, result=None))
        for certificate_id, reason in new.rechecks:
            session.add(Recheck(job_id=job.id, certificate_id=certificate_id, reason=reason, result=None))
        job_event(session, job, now)
        tell_queued(session)
        session.flush()
        return _view(job)

    def get(self, job_id: str) -> JobView:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            row = session.get(Job, job_id)
        if row is None:
            raise NotFound("job", job_id)
        return _view(row)

    def newest_named(self, name: str, state: JobState) -> JobView | None:
        """Return the newest job of that name in that state, if any."""
        wanted = select(Job).where(Job.name == name, Job.state == state).order_by(Job.created_at.desc(), Job.id.desc())
        with self._sessions.read() as session:
            row = session.scalar(wanted.limit(1))
        return None if row is None else _view(row)

    def inputs(self, job_id: str) -> JobInputs:
        """Raises `NotFound`."""
        wanted = select(Job.module_json, Job.space_json, Job.shapes).where(Job.id == job_id)
        with self._sessions.read() as session:
            row = session.execute(wanted).one_or_none()
        if row is None:
            raise NotFound("job", job_id)
        return JobInputs(*row)

    def page(
        self,
        page_size: int = 50,
        page_token: str | None = None,
        states: Collection[JobState] = (),
        user_name: str | None = None,
    ) -> Page[JobView]:
        """Return jobs, the newest first: those in one of `states`, and of one user, if given. Raise `InvalidPage`."""
        wanted = select(Job).where(Job.state.in_(states)) if states else select(Job)
        if user_name is not None:
            wanted = wanted.where(Job.user_name == user_name)
        with self._sessions.read() as session:
            return _NEWEST.page(session, wanted, _view, page_size, page_token)

    def leases(self) -> list[LeaseView]:
        """Return the leases of the running jobs, the oldest first."""
        wanted = select(Job).where(Job.state == JobState.RUNNING, Job.lease_owner.is_not(None)).order_by(Job.started_at)
        with self._sessions.read() as session:
            return [
                LeaseView(row.id, row.name, row.device_class_id, row.lease_owner, row.lease_expires_at, row.attempts)  # type: ignore[arg-type]
                for row in session.scalars(wanted)
            ]

    def claim(
        self,
        owner: str,
        lease_seconds: float,
        *,
        machines: Collection[DeviceClass] | None = None,
        answered: bool = False,
    ) -> ClaimedJob | None:
        """Claim a queued job: of the highest priority, then of the user with the fewest that run, then the oldest.

        Jobs whose lease expired are queued again before.

        Args:
            machines: only a job for one of these, whatever its target; None: for any.
            answered: only one that needs no loop: the database has an answer to each of its tasks.
        """
        wanted = answered_jobs() if answered else queued_jobs(machines)
        with self._sessions.read() as session:
            # Without the lock that a write takes, because it finds nothing most of the time.
            found, expired = (
                session.scalar(select(which.exists())) for which in (wanted, expired_jobs(self._sessions.now()))
            )
        if expired:
            self._requeue_expired()
        elif not found:
            return None
        with self._sessions.write() as session:
            running = select(Job.user_name, func.count()).where(Job.state == JobState.RUNNING).group_by(Job.user_name)
            active = {row[0]: row[1] for row in session.execute(running)}
            users = case(active, value=Job.user_name, else_=0) if active else literal(0)
            # The module is not read for those that are sorted.
            first = wanted.with_only_columns(Job.id).order_by(Job.priority.desc(), users, Job.queued_at, Job.id)
            job_id = session.scalar(first.limit(1).with_for_update(skip_locked=True, key_share=True))
            if job_id is None:
                return None
            job = session.get_one(
                Job, job_id, options=[undefer(Job.module_json), undefer(Job.space_json)], populate_existing=True
            )
            token, now = new_token(), self._sessions.now()
            job.state = JobState.RUNNING
            job.lease_owner = owner
            job.lease_token = token
            job.lease_expires_at = now + timedelta(seconds=lease_seconds)
            job.started_at = job.started_at or now
            job.attempts += 1
            job_event(session, job, now)
            return ClaimedJob(_view(job), JobInputs(job.module_json, job.space_json, job.shapes), token)

    def _requeue_expired(self) -> None:
        with self._sessions.write() as session:
            expired = expired_jobs(self._sessions.now()).order_by(Job.id)
            jobs = session.scalars(expired.with_for_update(skip_locked=True, key_share=True)).all()
            for job in jobs:
                self._put_back(session, job)
            for _ in jobs:
                count_lease_loss(session, LeaseLoss.EXPIRED)

    def waiting(self, seconds: float, machines: Collection[DeviceClass]) -> int | None:
        """Return the highest priority of the jobs for these machines that are queued for so long; None without one."""
        since = self._sessions.now() - timedelta(seconds=seconds)
        wanted = queued_jobs(machines).where(Job.queued_at <= since)
        with self._sessions.read() as session:
            return session.scalar(wanted.with_only_columns(func.max(Job.priority)))

    def renew(self, job_id: str, lease_token: str, lease_seconds: float, add_elapsed: float = 0.0) -> bool:
        """Extend a lease to `lease_seconds` from now and add `add_elapsed` seconds of running. False: it is lost."""
        until = self._sessions.now() + timedelta(seconds=lease_seconds)
        with self._sessions.write() as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            job.lease_expires_at = until
            job.elapsed_s += add_elapsed
            return True

    def release(self, job_id: str, lease_token: str, *, died: bool = False, to_end: bool = False) -> bool:
        """Put a job and its running tasks back into the queue. Return False if the lease is lost.

        Its attempt counts only if its loop ``died``. ``to_end``: it has had its turn, and waits behind the others.
        """
        with self._sessions.write() as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            self._put_back(session, job)
            job.attempts -= not died
            if to_end:
                job.queued_at = self._sessions.now()
            if died:
                count_lease_loss(session, LeaseLoss.DIED)
            return True

    def release_forgotten(self, owner: str, known: Collection[str]) -> int:
        """Put back the jobs under leases of `owner` whose tokens are not `known`; return how many.

        Such a claim was stored, and its owner was cut off before it heard of it. The attempt does not count.
        """
        held = select(Job).where(Job.state == JobState.RUNNING, Job.lease_owner == owner)
        forgotten = held.where(Job.lease_token.not_in(known)).order_by(Job.id)
        with self._sessions.write() as session:
            jobs = session.scalars(forgotten.with_for_update(key_share=True)).all()
            for job in jobs:
                self._put_back(session, job)
                job.attempts -= 1
            return len(jobs)

    def _put_back(self, session: Session, job: Job) -> None:
        now = self._sessions.now()
        job.state = JobState.QUEUED
        job.lease_owner = job.lease_token = job.lease_expires_at = None
        for task in _unfinished_tasks(session, job.id):
            task.state = TaskState.QUEUED
            task_event(session, task, now)
        job_event(session, job, now)
        tell_queued(session)

    def add_note(self, job_id: str, lease_token: str, note: str) -> bool:
        """Add a line to the notes of a running job, unless it is among them. Return False if the lease is lost."""
        with self._sessions.write() as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            if note not in job.notes:
                job.notes = [*job.notes, note]
            return True

    def store_model_time(self, job_id: str, lease_token: str, seconds: float) -> bool:
        """Store what one run of a running job's whole model takes. Return False if the lease is lost."""
        with self._sessions.write() as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            job.model_secs = seconds
            return True

    def finish(self, job_id: str, lease_token: str, state: FinalState, error: str | None = None) -> bool:
        """End a job. Return False if the lease is lost.

        Its unfinished tasks end with it: failed, with its `error`, if it failed, else cancelled. Candidates that were
        proposed and not measured go: nothing is known of them.
        """
        with self._sessions.write() as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            self._end(session, job, state, error)
            return True

    def request_cancel(self, job_id: str) -> JobView:
        """Cancel a queued job at once and ask the owner of a running one to; a finished one stays. Raise `NotFound`."""
        with self._sessions.write() as session:
            job = lock_job(session, job_id)
            if job.state not in FINISHED:
                job.cancel_requested = True
            if job.state == JobState.QUEUED:
                self._end(session, job, JobState.CANCELLED, None)
            session.flush()
            return _view(job)

    def cancel_requested(self, job_id: str, lease_token: str) -> bool:
        """Return whether a job under this lease is to end. Raise LeaseLost if it is under it no longer."""
        held = select(Job.cancel_requested).where(Job.id == job_id, Job.lease_token == lease_token)
        with self._sessions.read() as session:
            requested = session.scalar(held)
        if requested is None:
            raise LeaseLost(f"job {job_id} is no longer under this lease")
        return requested

    def expire_leases(self, owner: str | None = None) -> int:
        """Expire the leases of `owner`, or of all owners, at a start after which no earlier owner can be running.

        Return the number of jobs that may be claimed anew.
        """
        held: ColumnElement[bool] = Job.state == JobState.RUNNING
        if owner is not None:
            held = and_(held, Job.lease_owner == owner)
        with self._sessions.write() as session:
            ended = update(Job).where(held).values(lease_expires_at=self._sessions.now())
            return session.connection().execute(ended).rowcount

    def _end(self, session: Session, job: Job, state: FinalState, error: str | None) -> None:
        now = self._sessions.now()
        job.state = state
        job.error = error
        job.finished_at = now
        job.lease_owner = job.lease_token = job.lease_expires_at = None
        for task in _unfinished_tasks(session, job.id):
            task.state = TaskState.FAILED if state == JobState.FAILED else TaskState.CANCELLED
            task.error = error
            task.finished_at = now
            task_event(session, task, now)
        tasks = select(Task.id).where(Task.job_id == job.id)
        session.execute(delete(Trial).where(Trial.task_id.in_(tasks), Trial.state == TrialState.PROPOSED))
        job.trials = session.scalar(select(func.sum(Task.trials)).where(Task.job_id == job.id)) or 0
        job.saved_secs, job.search_saved_secs = _saved(session, job) if state == JobState.SUCCEEDED else (0.0, 0.0)
        job_event(session, job, now)
        facts = {"job_id": job.id, "name": job.name, "state": state, "error": error, "owner": job.user_name}
        notify(session, WebhookEvent.JOB_FINISHED, facts, now)


def _saved(session: Session, job: Job) -> tuple[float, float]:
    """Return what one run of the tuned model saves, and the search time that the job was spared; in seconds."""
    gain = Task.weight * (Certificate.baseline_median - Certificate.best_median)
    spared = case((Task.answered_from != AnsweredFrom.SEARCH, Certificate.search_secs), else_=0.0)
    summed = (
        select(func.coalesce(func.sum(gain), 0.0), func.coalesce(func.sum(spared), 0.0))
        .select_from(Task)
        .join(Certificate, Task.certificate_id == Certificate.id)
        .where(Task.job_id == job.id)
    )
    saved, search_saved = session.execute(summed).one()
    return saved, search_saved


def _unfinished_tasks(session: Session, job_id: str) -> Sequence[Task]:
    unfinished = select(Task).where(Task.job_id == job_id, Task.state.not_in(FINISHED)).order_by(Task.id)
    return session.scalars(unfinished.with_for_update()).all()
