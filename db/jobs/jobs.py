"""Jobs: submitted once, claimed under leases, finished once."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, case, delete, exists, func, or_, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.access.usage import admit
from db.access.webhooks import notify
from db.conditions import ANSWERED, RUNNING, TRUE, UNFINISHED
from db.counts import count_lease_loss
from db.devices import put_device_class
from db.engine.changes import Topic
from db.engine.columns import new_id, new_token
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import Keyset, Page
from db.engine.statements import cache_statements, varied
from db.errors import IdempotencyConflict, NotFound, Unavailable
from db.events import job_event, job_event_row, task_event
from db.inputs import LabelledMachine, NewJob
from db.job_counts import count_job
from db.jobs.claimable import database_answers, expired_jobs
from db.jobs.claimed_rows import ClaimedRow, Lease, claim_row
from db.jobs.job_news import tell_queued
from db.jobs.left import certify_by_known
from db.jobs.queue import FAR, Lane, Running, Waiting, lanes, turns
from db.jobs.rows import LINE, insert_jobs, job_line, job_view, line_view, stored_tags
from db.leases import lock_job, own_job
from db.models import Certificate, Event, Job, Task, Trial
from db.source_search import is_called_at
from db.states import FinalState, JobSort, LeaseLoss, WebhookEvent
from db.upsert import insert_last
from db.views import ClaimedJob, JobInputs, JobView, LeaseView, ModelTime
from db.workloads import put_workloads
from loopwright.codegen.kinds import FINISHED, FINISHED_TASK, AnsweredFrom, JobState, TaskState, TrialState
from tuner.errors import LeaseLost
from tuner.types import TaskSpec

_ORDERS = {
    (sort, descending): Keyset(f"jobs by {sort}, {descending}", column, Job.id, descending=descending)
    for sort, column in ((JobSort.CREATED, Job.created_at), (JobSort.NAME, Job.name), (JobSort.GAIN, Job.saved_secs))
    for descending in (False, True)
}
_OF_GROUP = Keyset("jobs of a group", Job.group_position)
QUEUED_AGAIN = "in the queue again"
_ARE_UNFINISHED = select(exists().where(UNFINISHED))
_ARE_ANSWERED = select(exists().where(ANSWERED))
_ANSWERED = frozenset({JobState.SUCCEEDED, JobState.PARTLY})
_AT_ONCE = 500
"""Jobs of one transaction. Not tuned."""


class Jobs:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def create(self, new: NewJob, tasks: Sequence[TaskSpec], tvm_version: str) -> JobView:
        """Store a queued job with its tasks and their workloads, all or nothing.

        If its user created a job under the same idempotency key before, return that one; raise `IdempotencyConflict` if
        its request was another. Raise `QuotaExceeded` for a job that is over a limit of its user.
        """
        [view] = self._create([(new, tasks)], tvm_version, group_id=None)
        return view

    def create_group(self, jobs: Sequence[tuple[NewJob, Sequence[TaskSpec]]], tvm_version: str) -> list[JobView]:
        """Store the jobs of one submission, with their tasks, as a group: all or none of them.

        There is at least one, and all have the same user, visibility and idempotency key. Quotas count each of them.
        Return them in their order; an idempotency key that was used before is as for `create`.
        """
        return self._create(jobs, tvm_version, group_id=new_id())

    def _create(
        self, jobs: Sequence[tuple[NewJob, Sequence[TaskSpec]]], tvm_version: str, *, group_id: str | None
    ) -> list[JobView]:
        first, _ = jobs[0]
        known = first.user_name, first.idempotency_key, first.request_digest
        if earlier := self.earlier(*known):
            return earlier
        try:
            views = self._insert(jobs, tvm_version, group_id)
        except IntegrityError:
            # Two equal requests at once: the other one was first.
            if earlier := self.earlier(*known):
                return earlier
            raise
        # They are stored, whatever comes now: without this they wait for their turn.
        if unforced := [view.id for view in views if not view.force]:
            with contextlib.suppress(Unavailable):
                self._note_answers(_unnoted_of_ids(), {"job_ids": unforced})
        return views

    @retry_conflicts
    def _insert(
        self, jobs: Sequence[tuple[NewJob, Sequence[TaskSpec]]], tvm_version: str, group_id: str | None
    ) -> list[JobView]:
        first, _ = jobs[0]
        with self._sessions.write() as session:
            now = self._sessions.now()
            admit(session, [new for new, _ in jobs], now)
            # Sorted, so that two transactions take the locks in the same order.
            for device_class in sorted((new.device_class for new, _ in jobs), key=lambda each: each.id):
                put_device_class(session, device_class)
            holder = first.user_name if first.private else None
            workloads = [spec.workload for _, tasks in jobs for spec in tasks]
            put_workloads(session, workloads, tvm_version, now, private_to=holder)
            views = insert_jobs(session, jobs, now, group_id)
            tell_queued(session)
            return views

    def earlier(self, user_name: str, idempotency_key: str | None, request_digest: str | None) -> list[JobView]:
        """Return the job that the user created under this key, or the jobs of the group; none if there are none.

        Raise `IdempotencyConflict` if the request was another.
        """
        if idempotency_key is None:
            return []
        with self._sessions.read() as session:
            row = session.scalar(select(Job).where(Job.user_name == user_name, Job.idempotency_key == idempotency_key))
            if row is None:
                return []
            if row.request_digest != request_digest:
                raise IdempotencyConflict(idempotency_key)
            if row.group_id is None:
                return [job_view(row)]
            group = select(Job).where(Job.group_id == row.group_id).order_by(Job.group_position)
            return [job_view(each) for each in session.scalars(group)]

    def get(self, job_id: str) -> JobView:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            line = session.execute(job_line(), {"job_id": job_id}).one_or_none()
        if line is None:
            raise NotFound("job", job_id)
        return line_view(*line)

    def newest_named(self, name: str, state: JobState, user_name: str) -> JobView | None:
        """Return a user's newest job of that name in that state, if any."""
        wanted = select(Job).where(Job.name == name, Job.state == state, Job.user_name == user_name)
        wanted = wanted.order_by(Job.created_at.desc(), Job.id.desc())
        with self._sessions.read() as session:
            row = session.scalar(wanted.limit(1))
        return None if row is None else job_view(row)

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
        group_id: str | None = None,
        name: str | None = None,
        *,
        search: str = "",
        since: datetime | None = None,
        tag: str | None = None,
        sort: JobSort = JobSort.CREATED,
        descending: bool = True,
    ) -> Page[JobView]:
        """Return jobs, sorted: those in one of `states`, of one user, of one name, and with one tag, if given.

        With `search`, those whose name contains it in any case, or whose id begins with it, or whose model calls a
        function at a place with it in its name; with `since`, those that were submitted then or later. Those of one
        group come in the order of its targets. Raise `InvalidPage`.
        """
        filters = {"user_name": user_name, "group_id": group_id, "name": name, "since": since}
        facts = {name: value for name, value in filters.items() if value is not None}
        wanted = _listed(frozenset(states), frozenset(facts))
        if search:
            named = Job.name.icontains(search, autoescape=True)
            calls = Job.id.in_(select(Task.job_id).where(is_called_at(search)))
            wanted = varied(wanted.where(or_(named, Job.id.startswith(search, autoescape=True), calls)))
        if tag is not None:
            wanted = varied(wanted.where(Job.tags.contains(f"\n{tag}\n", autoescape=True)))
        order = _ORDERS[sort, descending] if group_id is None else _OF_GROUP
        with self._sessions.read() as session:
            return order.page(session, wanted, line_view, page_size, page_token, facts)

    def leases(self) -> list[LeaseView]:
        """Return the leases of the running jobs, the oldest first."""
        with self._sessions.read() as session:
            return [LeaseView(*lease) for lease in session.execute(_leases())]

    @retry_conflicts
    def claim(
        self,
        owner: str,
        lease_seconds: float,
        *,
        machines: Collection[LabelledMachine] | None = None,
        answered: bool = False,
        waiting: Waiting | None = None,
    ) -> ClaimedJob | None:
        """Claim a queued job: of the highest priority, then of the user with the fewest that run, then the oldest.

        Jobs whose lease expired are queued again before.

        Args:
            machines: only a job for one of these, whatever its target, with the labels it asks for; None: for any.
            answered: only one that needs no loop: the database has an answer to each of its tasks.
            waiting: only one of these.
        """
        # Without the lock that a write takes, because it finds nothing most of the time.
        with self._sessions.read(one_snapshot=False) as session:
            running = Running.read(session)
            expired = running.first_end is not None and running.first_end <= self._sessions.now()
            first = None if answered else next(turns(session, machines, running), None)
            found = session.scalar(_ARE_ANSWERED) if answered else _is_among(first, waiting)
        if expired:
            self._requeue_expired()
            first = None
        elif not found:
            return None
        with self._sessions.write(Topic.JOBS) as session:
            now = self._sessions.now()
            lease = Lease(owner, new_token(), now + timedelta(seconds=lease_seconds), now)
            job = _claim_answered(session, lease) if answered else _claim_next(session, machines, waiting, first, lease)
            if job is None:
                return None
            count_job(session, job, JobState.QUEUED)
            insert_last(session, [(Event, [job_event_row(job, now)])])
            return ClaimedJob(job_view(job), JobInputs(job.module_json, job.space_json, job.shapes), lease.token)

    @retry_conflicts
    def _requeue_expired(self) -> None:
        with self._sessions.write(Topic.JOBS) as session:
            expired = expired_jobs(self._sessions.now()).order_by(Job.id)
            jobs = session.scalars(expired.with_for_update(skip_locked=True, key_share=True)).all()
            for job in jobs:
                self._put_back(session, job)
            for _ in jobs:
                count_lease_loss(session, LeaseLoss.EXPIRED)

    def waiting(self, seconds: float, machines: Collection[LabelledMachine]) -> Waiting | None:
        """Return the jobs for these machines that are queued for so long, of the highest priority; None without one."""
        since = self._sessions.now() - timedelta(seconds=seconds)
        with self._sessions.read() as session:
            for of_priority in lanes(session, machines, Running.read(session).asked_labels):
                if any(lane.since <= since for lane in of_priority):
                    return Waiting(of_priority[0].priority, since)
        return None

    def are_unfinished(self) -> bool:
        """Return whether any job waits or runs."""
        with self._sessions.read() as session:
            return bool(session.scalar(_ARE_UNFINISHED))

    def lowest_priority(self) -> int | None:
        """Return the lowest priority of the running jobs, of all controllers; None if none is running."""
        with self._sessions.read() as session:
            return session.scalar(select(func.min(Job.priority)).where(RUNNING))

    def note_answers(self, task_key: str) -> None:
        """Note which jobs the database answers, now that there is a certificate for the tasks with this key.

        In a transaction of its own, after that of the certificate: of two certificates that answer a job together,
        the later call sees both.
        """
        self._note_answers(_unnoted_of_key(), {"task_key": task_key})

    @retry_conflicts
    def _note_answers(self, unnoted: Select[str], which: Mapping[str, object]) -> None:
        while True:
            with self._sessions.read(one_snapshot=False) as session:
                job_ids = session.scalars(unnoted, which).all()
            if not job_ids:
                return
            with self._sessions.write(Topic.NONE) as session:
                # In the order in which everyone locks them.
                session.execute(select(Job.id).where(Job.id.in_(job_ids)).order_by(Job.id).with_for_update())
                session.execute(update(Job).where(Job.id.in_(job_ids)).values(is_answered=True))
                tell_queued(session)

    @retry_conflicts
    def renew(self, job_id: str, lease_token: str, lease_seconds: float, add_elapsed: float = 0.0) -> bool:
        """Extend a lease to `lease_seconds` from now and add `add_elapsed` seconds of running. False: it is lost."""
        until = self._sessions.now() + timedelta(seconds=lease_seconds)
        with self._sessions.write(Topic.NONE) as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            job.lease_expires_at = until
            job.elapsed_s += add_elapsed
            return True

    @retry_conflicts
    def release(self, job_id: str, lease_token: str, *, died: bool = False, to_end: bool = False) -> bool:
        """Put a job and its running tasks back into the queue. Return False if the lease is lost.

        Its attempt counts only if its loop ``died``. ``to_end``: it has had its turn, and waits behind the others.
        """
        with self._sessions.write(Topic.JOBS) as session:
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

    @retry_conflicts
    def release_forgotten(self, owner: str, known: Collection[str]) -> int:
        """Put back the jobs under leases of `owner` whose tokens are not `known`; return how many.

        Such a claim was stored, and its owner was cut off before it heard of it. The attempt does not count.
        """
        held = select(Job).where(RUNNING, Job.lease_owner == owner)
        forgotten = held.where(Job.lease_token.not_in(known)).order_by(Job.id)
        with self._sessions.write(Topic.JOBS) as session:
            jobs = session.scalars(forgotten.with_for_update(key_share=True)).all()
            for job in jobs:
                self._put_back(session, job)
                job.attempts -= 1
            return len(jobs)

    def _put_back(self, session: Session, job: Job) -> None:
        now, before = self._sessions.now(), job.state
        job.state = JobState.QUEUED
        _begin_phase(job, QUEUED_AGAIN, now)
        job.lease_owner = job.lease_token = job.lease_expires_at = job.activity = None
        for task in _unfinished_tasks(session, job.id):
            task.state = TaskState.QUEUED
            task_event(session, task, now)
        count_job(session, job, before)
        job_event(session, job, now)
        tell_queued(session)

    @retry_conflicts
    def add_note(self, job_id: str, lease_token: str, note: str) -> bool:
        """Add a line to the notes of a running job, unless it is among them. Return False if the lease is lost."""
        with self._sessions.write(Topic.JOBS) as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            if note not in job.notes:
                job.notes = [*job.notes, note]
            return True

    @retry_conflicts
    def set_activity(self, job_id: str, lease_token: str, activity: str, phase: str | None = None) -> bool:
        """Store what a running job does or waits for, in words. Return False if the lease is lost.

        Activities with the same `phase` are one phase of the job; None: the activity is a phase by itself.
        """
        with self._sessions.write(Topic.JOBS) as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            job.activity = activity
            _begin_phase(job, phase or activity, self._sessions.now())
            return True

    @retry_conflicts
    def describe(self, job_id: str, *, tags: Collection[str] | None = None, description: str | None = None) -> JobView:
        """Replace the tags and the description of a job; None: as they are. Raise `NotFound`."""
        with self._sessions.write(Topic.JOBS) as session:
            job = lock_job(session, job_id)
            if tags is not None:
                job.tags = stored_tags(tags)
            if description is not None:
                job.description = description
            session.flush()
            return job_view(job)

    @retry_conflicts
    def store_model_time(self, job_id: str, lease_token: str, time: ModelTime) -> bool:
        """Store what one run of a running job's whole model takes. Return False if the lease is lost."""
        with self._sessions.write(Topic.JOBS) as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            job.model_secs, job.model_baseline_secs = time.secs, time.baseline_secs
            job.model_speedup = None if time.speedup is None else asdict(time.speedup)
            return True

    @retry_conflicts
    def finish(self, job_id: str, lease_token: str, state: FinalState, error: str | None = None) -> bool:
        """End a job. Return False if the lease is lost.

        Its unfinished tasks end with it: failed, with its `error`, if it failed, else cancelled. Candidates that were
        proposed and not measured go: nothing is known of them.
        """
        with self._sessions.write(Topic.JOBS) as session:
            job = own_job(session, job_id, lease_token)
            if job is None:
                return False
            self._end(session, job, state, error)
            return True

    @retry_conflicts
    def request_cancel(self, job_id: str) -> JobView:
        """Cancel a queued job at once, or ask the owner of a running one to. A finished job stays. Raise `NotFound`."""
        with self._sessions.write(Topic.JOBS) as session:
            job = lock_job(session, job_id)
            if job.state not in FINISHED:
                job.cancel_requested = True
            if job.state == JobState.QUEUED:
                self._end(session, job, JobState.CANCELLED, None)
            session.flush()
            return job_view(job)

    def cancel_requested(self, job_id: str, lease_token: str) -> bool:
        """Return whether the user wants this job to stop. Raise LeaseLost if the job no longer has this lease."""
        held = select(Job.cancel_requested).where(Job.id == job_id, Job.lease_token == lease_token)
        with self._sessions.read() as session:
            requested = session.scalar(held)
        if requested is None:
            raise LeaseLost(f"job {job_id} is no longer under this lease")
        return requested

    @retry_conflicts
    def expire_leases(self, owner: str | None = None) -> int:
        """Expire the leases of `owner`, or of all owners, at a start after which no earlier owner can be running.

        Return the number of jobs that may be claimed anew.
        """
        held: ColumnElement[bool] = RUNNING
        if owner is not None:
            held = and_(held, Job.lease_owner == owner)
        with self._sessions.write(Topic.NONE) as session:
            ended = update(Job).where(held).values(lease_expires_at=self._sessions.now())
            return session.connection().execute(ended).rowcount

    def _end(self, session: Session, job: Job, state: FinalState, error: str | None) -> None:
        now, before = self._sessions.now(), job.state
        job.state = state
        job.error = error
        job.finished_at = now
        job.lease_owner = job.lease_token = job.lease_expires_at = job.activity = None
        for task in _unfinished_tasks(session, job.id):
            task.state = TaskState.FAILED if state == JobState.FAILED else TaskState.CANCELLED
            task.error = error
            task.finished_at = now
            task_event(session, task, now)
        tasks = select(Task.id).where(Task.job_id == job.id)
        session.execute(delete(Trial).where(Trial.task_id.in_(tasks), Trial.state == TrialState.PROPOSED))
        job.trials = session.scalar(select(func.sum(Task.trials)).where(Task.job_id == job.id)) or 0
        job.saved_secs, job.search_saved_secs = _saved(session, job) if state in _ANSWERED else (0.0, 0.0)
        count_job(session, job, before)
        if state == JobState.PARTLY:
            certify_by_known(session, job, now)
        job_event(session, job, now)
        facts = {"job_id": job.id, "name": job.name, "state": state, "error": job.error, "owner": job.user_name}
        notify(session, WebhookEvent.JOB_FINISHED, facts, now)


@cache_statements
def _listed(states: frozenset[JobState], filters: frozenset[str]) -> Select[*tuple[Any, ...]]:
    """Select jobs in some states, or in any without one, by what is given under the names of ``filters``."""
    conditions: dict[str, ColumnElement[bool]] = {
        "user_name": Job.user_name == bindparam("user_name"),
        "group_id": Job.group_id == bindparam("group_id"),
        "name": Job.name == bindparam("name"),
        "since": Job.created_at >= bindparam("since"),
    }
    wanted = select(*LINE).where(*(condition for name, condition in conditions.items() if name in filters))
    if not states:
        return wanted
    wanted = wanted.where(Job.state.in_(sorted(states)))
    # What follows leads to an index.
    if states <= FINISHED:
        return wanted.where(Job.finished_at.is_not(None))
    return wanted if states & FINISHED else wanted.where(UNFINISHED)


@cache_statements
def _leases() -> Select[*tuple[Any, ...]]:
    columns = Job.id, Job.name, Job.device_class_id, Job.lease_owner, Job.lease_expires_at, Job.attempts
    return select(*columns).where(RUNNING, Job.lease_owner.is_not(None)).order_by(Job.started_at)


def _unnoted(which: ColumnElement[bool]) -> Select[str]:
    """Select jobs that the database answers, where that is not noted."""
    unnoted = select(Job.id).where(which, UNFINISHED, Job.is_answered.is_not(TRUE), database_answers())
    return unnoted.order_by(Job.id).limit(_AT_ONCE)


@cache_statements
def _unnoted_of_ids() -> Select[str]:
    return _unnoted(Job.id.in_(bindparam("job_ids", expanding=True)))


@cache_statements
def _unnoted_of_key() -> Select[str]:
    return _unnoted(Job.id.in_(select(Task.job_id).where(Task.key == bindparam("task_key"))))


def _claim_next(
    session: Session,
    machines: Collection[LabelledMachine] | None,
    waiting: Waiting | None,
    first: Lane | None,
    lease: Lease,
) -> ClaimedRow | None:
    """Claim the job that is next for these machines, of those that nobody else is about to claim.

    ``first`` is the lane whose turn it was a moment ago. The queue is looked through only if that lane has none.
    """
    until = FAR if waiting is None else waiting.since
    for lane in itertools.chain([] if first is None else [first], _turns(session, machines)):
        if not _is_among(lane, waiting):
            return None
        if (job := lane.claim_first(session, lease, until)) is not None:
            return job
    return None


def _is_among(lane: Lane | None, waiting: Waiting | None) -> bool:
    return lane is not None and (waiting is None or lane.priority >= waiting.priority)


def _turns(session: Session, machines: Collection[LabelledMachine] | None) -> Iterator[Lane]:
    yield from turns(session, machines, Running.read(session))


def _claim_answered(session: Session, lease: Lease) -> ClaimedRow | None:
    """Claim a job that the database answers. Those whose answer has gone are noted."""
    while True:
        job_id = session.scalar(_first_answered())
        if job_id is None:
            return None
        if session.scalar(_still_answered(), {"job_id": job_id}):
            return claim_row(session, _job_of_id(), {"job_id": job_id}, lease)
        session.execute(update(Job).where(Job.id == job_id).values(is_answered=False))


@cache_statements
def _first_answered() -> Select[str]:
    first = select(Job.id).where(ANSWERED).order_by(Job.queued_at, Job.id).limit(1)
    return first.with_for_update(skip_locked=True, key_share=True)


@cache_statements
def _job_of_id() -> Select[str]:
    return select(Job.id).where(Job.id == bindparam("job_id"))


@cache_statements
def _still_answered() -> Select[str]:
    return select(Job.id).where(Job.id == bindparam("job_id"), database_answers())


def _begin_phase(job: Job, words: str, now: datetime) -> None:
    if not job.phases or job.phases[-1][0] != words:
        job.phases = [*job.phases, [words, round(now.timestamp(), 3)]]


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
    unfinished = select(Task).where(Task.job_id == job_id, Task.state.not_in(FINISHED_TASK)).order_by(Task.id)
    return session.scalars(unfinished.with_for_update()).all()
