"""Trials: the durable ledger of every candidate that was proposed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Row,
    Select,
    bindparam,
    func,
    select,
    update,
)
from sqlalchemy.orm import Session

from db.access.usage import add_device_time
from db.counts import CountedTrial, count_trials
from db.engine.changes import Topic
from db.engine.columns import new_id
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.paging import MAX_PAGE_SIZE, Keyset, Page
from db.engine.statements import cache_statements
from db.events import trial_events
from db.leases import lock_jobs_of, own_running_task, own_trial
from db.models import DeviceClass, Target, Task, Workload
from db.models import Trial as TrialRow
from db.relatives import Extents, relatives_traces
from db.trial_rows import LINE, spans_of, stored_span, trial_value, trial_view
from db.views import TrialView
from loopwright.codegen.kinds import FailureKind, TrialState
from loopwright.codegen.versions import CODEGEN_VERSION
from tuner.codec import encode
from tuner.types import Failure, MeasureCandidate, Measured, Outcome, Span, Trial, device_seconds

_REPEATED = 16
"""So many trials are looked at for each candidate: jobs that begin with what is known measure it again. Not tuned."""

_BY_POSITION = Keyset("trials", Task.position, TrialRow.number)


def _first(rows: Iterable[Row[str, str | None]], most: int) -> dict[str, str]:
    """Return the traces of the first ``most`` candidates, by hash."""
    found: dict[str, str] = {}
    for candidate_hash, trace in rows:
        if len(found) < most and trace is not None:
            found.setdefault(candidate_hash, trace)
    return found


_FINISHED_BY = (
    *(TrialRow.id, TrialRow.task_id, TrialRow.number, TrialRow.device_class_id, TrialRow.tvm_version, TrialRow.spans),
    TrialRow.features.is_not(None).label("learns"),
)
"""What `Trials.finish_all` reads of a trial."""


@cache_statements
def _owned() -> Select[*tuple[Any, ...]]:
    of_lease = TrialRow.state == TrialState.PROPOSED, TrialRow.lease_token == bindparam("lease_token")
    return select(*_FINISHED_BY).where(TrialRow.id.in_(bindparam("trial_ids", expanding=True)), *of_lease)


def _counted(row: Row[*tuple[Any, ...]]) -> CountedTrial:
    return CountedTrial(row.number, row.device_class_id, row.tvm_version, learns=row.learns)


def _values(row: Row[*tuple[Any, ...]], outcome: Outcome, now: datetime) -> dict[str, Any]:
    """Return what a trial becomes by its outcome: the same columns whatever that is, for one statement for many."""
    values: dict[str, Any] = {
        "id": row.id,
        "lease_token": None,
        "worker": outcome.worker,
        "finished_at": now,
        "spans": [*(row.spans or ()), *map(stored_span, outcome.spans)],
        "run_secs": None,
        "median": None,
        "sandbox": None,
        "device_state": None,
        "failure_stage": None,
        "failure_kind": None,
        "failure_message": None,
    }
    match outcome:
        case Measured():
            return values | {
                "state": TrialState.MEASURED,
                "run_secs": list(outcome.run_secs),
                "median": outcome.median,
                "sandbox": outcome.sandbox,
                "device_state": encode(outcome.device_state),
            }
        case Failure():
            return values | {
                "state": TrialState.FAILED,
                "failure_stage": outcome.stage,
                "failure_kind": outcome.kind,
                "failure_message": outcome.message,
            }


def _tasks(session: Session, ids: Collection[str]) -> dict[str, Task]:
    return {task.id: task for task in session.scalars(_with_ids(), {"ids": list(ids)})}


@cache_statements
def _of_job() -> Select[*tuple[Any, ...]]:
    return select(*LINE).join(Task, TrialRow.task_id == Task.id).where(Task.job_id == bindparam("job_id"))


@cache_statements
def _with_ids() -> Select[Task]:
    return select(Task).where(Task.id.in_(bindparam("ids", expanding=True)))


class Trials:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._extents = Extents()

    @retry_conflicts
    def propose(
        self,
        task_id: str,
        lease_token: str,
        candidates: Collection[MeasureCandidate],
        seed: int | None = None,
        searched: Span | None = None,
    ) -> list[Trial]:
        """Enter candidates of a running task into the ledger, in their order, without those that the task has already.

        ``searched`` is the time in which the search proposed them, if it did. Return the new trials, which
        `lease_token` owns. Raise `LeaseLost` if the caller does not own the task any more.
        """
        with self._sessions.write(Topic.TRIALS) as session:
            job, task = own_running_task(session, task_id, lease_token)
            seen = set(session.scalars(select(TrialRow.candidate_hash).where(TrialRow.task_id == task_id)))
            last = session.scalar(select(func.max(TrialRow.number)).where(TrialRow.task_id == task_id)) or 0
            tvm_version = session.scalars(select(Workload.tvm_version).where(Workload.hash == task.workload_hash)).one()
            now = self._sessions.now()
            rows = []
            for candidate in candidates:
                if candidate.hash in seen:
                    continue
                seen.add(candidate.hash)
                is_baseline = candidate.trace_json is None
                last += not is_baseline
                rows.append(
                    TrialRow(
                        id=new_id(),
                        task_id=task_id,
                        workload_hash=task.workload_hash,
                        device_class_id=job.device_class_id,
                        number=0 if is_baseline else last,
                        origin=candidate.origin,
                        candidate_hash=candidate.hash,
                        trace_json=candidate.trace_json,
                        state=TrialState.PROPOSED,
                        lease_token=lease_token,
                        predicted=candidate.predicted,
                        predicted_by=candidate.predicted_by,
                        parent=candidate.parent,
                        features=candidate.features,
                        seed=seed,
                        tvm_version=tvm_version,
                        codegen_version=CODEGEN_VERSION,
                        created_at=now,
                        spans=None if searched is None else [stored_span(searched)],
                    )
                )
            session.add_all(rows)
            return [trial_value(row) for row in rows]

    def finish(self, trial_id: str, lease_token: str, outcome: Outcome) -> bool:
        """Write a trial's outcome and its event. Return False if it is finished or `lease_token` does not own it."""
        return bool(self.finish_all({trial_id: outcome}, lease_token))

    @retry_conflicts
    def finish_all(self, outcomes: Mapping[str, Outcome], lease_token: str) -> set[str]:
        """Write outcomes by trial, and their events in this order, in one transaction: a commit takes milliseconds.

        Return the ids of the trials that `lease_token` owned, without those that were finished.
        """
        with self._sessions.write(Topic.TRIALS) as session:
            users = lock_jobs_of(session, outcomes)
            # Not in the same statement: what that saw of them may be older than the lock.
            facts = {"trial_ids": list(outcomes), "lease_token": lease_token}
            rows = {row.id: row for row in session.execute(_owned(), facts)}
            mine = {trial_id: outcome for trial_id, outcome in outcomes.items() if trial_id in rows}
            if not mine:
                return set()
            now = self._sessions.now()
            values = [_values(rows[trial_id], outcome, now) for trial_id, outcome in mine.items()]
            session.execute(update(TrialRow), values)
            tasks = _tasks(session, {row.task_id for row in rows.values()})
            trial_events(session, [(tasks[rows[trial_id].task_id].job_id, trial_id) for trial_id in mine], now)
            ended = [(rows[trial_id], outcome) for trial_id, outcome in mine.items()]
            count_trials(session, [(tasks[row.task_id], _counted(row), outcome) for row, outcome in ended], users, now)
            return set(mine)

    @retry_conflicts
    def note_kill(self, trial_id: str, lease_token: str, attempt: Span) -> Trial | None:
        """Add an attempt that was killed to a trial, which stays unfinished; return the trial with all of them.

        Return None if the trial is finished or `lease_token` does not own it.
        """
        with self._sessions.write() as session:
            owned = own_trial(session, trial_id, lease_token)
            if owned is None:
                return None
            job, _, row = owned
            row.spans = [*(row.spans or ()), stored_span(attempt)]
            add_device_time(session, job.user_name, attempt, self._sessions.now())
            return trial_value(row)

    @retry_conflicts
    def adopt(self, task_id: str, lease_token: str) -> int:
        """Move the unfinished trials of a running task to a new lease; return how many there are.

        Raise `LeaseLost` if `lease_token` is not the job's.
        """
        with self._sessions.write(Topic.TRIALS) as session:
            own_running_task(session, task_id, lease_token)
            moved = (
                update(TrialRow)
                .where(TrialRow.task_id == task_id, TrialRow.state == TrialState.PROPOSED)
                .values(lease_token=lease_token)
            )
            return session.connection().execute(moved).rowcount

    def history(self, task_id: str) -> list[Trial]:
        """Return every trial of a task by number: what a search resumes from. Unfinished ones have no outcome."""
        wanted = select(TrialRow).where(TrialRow.task_id == task_id).order_by(TrialRow.number)
        with self._sessions.read() as session:
            return [trial_value(row) for row in session.scalars(wanted)]

    def device_seconds(self, task_ids: Iterable[str]) -> float:
        """Return how long the trials of some tasks were in measuring slots."""
        wanted = select(TrialRow.spans).where(TrialRow.task_id.in_(task_ids))
        with self._sessions.read() as session:
            return sum(device_seconds(spans_of(spans)) for spans in session.scalars(wanted))

    def known(self, workload_hash: str, device_class_id: str, most: int = 8) -> list[str]:
        """Return traces measured for the workload, the fastest first: on the device class, then imported ones.

        At most ``most`` of each. Imported timings were taken on other machines, so they rank after our own.
        """
        imported = TrialRow.task_id.is_(None)
        kind = select(Target.kind).join(DeviceClass).where(DeviceClass.id == device_class_id).scalar_subquery()
        fastest = (
            select(TrialRow.candidate_hash, TrialRow.trace_json)
            .join(Workload, TrialRow.workload_hash == Workload.hash)
            .join(DeviceClass, TrialRow.device_class_id == DeviceClass.id)
            .join(Target, DeviceClass.target_id == Target.id)
            .where(
                TrialRow.workload_hash == workload_hash,
                Workload.tvm_version == TrialRow.tvm_version,
                TrialRow.codegen_version <= CODEGEN_VERSION,
                Target.kind == kind,
                TrialRow.median.is_not(None),
                TrialRow.trace_json.is_not(None),
            )
            .order_by(TrialRow.median, TrialRow.candidate_hash)
            .limit(_REPEATED * most)
        )
        with self._sessions.read() as session:
            ours = session.execute(fastest.where(~imported, TrialRow.device_class_id == device_class_id)).all()
            theirs = session.execute(fastest.where(imported)).all()
        # Jobs measure the same candidates again: each once, with its fastest time.
        return list({**_first(ours, most), **_first(theirs, most)}.values())

    def barred(self, workload_hash: str, device_class_id: str) -> list[str]:
        """Return the traces of the workload that no job tries again on the device class (`FailureKind.KILLED`)."""
        killers = (
            select(TrialRow.candidate_hash, TrialRow.trace_json)
            .join(Workload, TrialRow.workload_hash == Workload.hash)
            .where(
                TrialRow.workload_hash == workload_hash,
                TrialRow.device_class_id == device_class_id,
                TrialRow.tvm_version == Workload.tvm_version,
                TrialRow.codegen_version <= CODEGEN_VERSION,
                TrialRow.median.is_(None),  # so that the index of medians leads to them
                TrialRow.failure_kind == FailureKind.KILLED,
                TrialRow.trace_json.is_not(None),
            )
            .order_by(TrialRow.candidate_hash)
        )
        with self._sessions.read() as session:
            return [trace for _, trace in session.execute(killers).unique() if trace is not None]

    def relatives(self, workload_hash: str, device_class_id: str, most: int = 32) -> list[str]:
        """Return traces of the fastest trials of other workloads of the family on the device class.

        First the fastest trace of each workload, ordered by the distance of its shapes, then the second fastest of
        each, and so on: at most ``most``, and at most `db.relatives.PER_RELATIVE` of one workload.
        """
        with self._sessions.read(one_snapshot=False) as session:
            return relatives_traces(session, self._extents, workload_hash, device_class_id, most)

    def page(self, job_id: str, page_size: int = 50, page_token: str | None = None) -> Page[TrialView]:
        """Return the trials of a job by task and number. Raise `InvalidPage`."""
        with self._sessions.read() as session:
            return _BY_POSITION.page(session, _of_job(), trial_view, page_size, page_token, {"job_id": job_id})

    def all_of_job(self, job_id: str) -> Iterator[TrialView]:
        """Yield all trials of a job by task and number, a page at a time."""
        token = None
        while True:
            page = self.page(job_id, MAX_PAGE_SIZE, token)
            yield from page.items
            token = page.next_page_token
            if token is None:
                return
