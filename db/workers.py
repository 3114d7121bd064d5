"""The workers of the fleet: their last reports, their health and their drains."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, delete, func, or_, select
from sqlalchemy.orm import Session

from db.access.webhooks import notify, told_since
from db.devices import device_class_value, put_device_class
from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.errors import NotFound
from db.inputs import WorkerReport
from db.models import Check, Target, Task, Trial, Worker
from db.models import DeviceClass as DeviceClassRow
from db.states import WebhookEvent
from db.upsert import Insert, insert_lists, insert_of
from db.views import Availability, CheckView, OfferView, WorkerCount, WorkerStanding, WorkerView
from loopwright.codegen import worker_labels
from loopwright.codegen.kinds import FailureKind
from tuner.types import Activity

CHECKS = 60
"""The newest timings of the reference kernel that a worker is shown with."""
_CHECK_DAYS = 7
_ACTIVITY = tuple(each.name for each in fields(Activity))
_REPORTED = ("host", "device", "device_class_id", "builders", "sandbox", "labels", "last_seen_at", *_ACTIVITY)
"""Columns that a report replaces."""


@cache_statements
def _availability() -> Select[*tuple[Any, ...]]:
    return select(
        *(Worker.device_class_id, DeviceClassRow.model, Worker.labels, Worker.last_seen_at, Worker.quarantined_at),
        *(or_(Worker.drained_at.is_not(None), Worker.leaving), Worker.waits_for),
    ).join(DeviceClassRow, Worker.device_class_id == DeviceClassRow.id)


@cache_statements
def _seen() -> Select[*tuple[Any, ...]]:
    return select(Worker.last_seen_at, Worker.quarantined_at)


@cache_statements
def _standings() -> Select[*tuple[Any, ...]]:
    return select(Worker.id, Worker.slot_since, Worker.quarantine_reason, Worker.readmitted_at)


@functools.cache
def _reporting(dialect: str) -> Insert:
    """Insert or replace reports: of a file, by a row for each; of a server, by a list for each column."""
    statement = insert_of(dialect, Worker) if dialect == "sqlite" else insert_lists(Worker, ("id", *_REPORTED))
    replaced = {name: statement.excluded[name] for name in _REPORTED}
    return statement.on_conflict_do_update(index_elements=["id"], set_=replaced)


class Workers:
    """Registration and health. A worker is alive if it was seen within the last `live_within` seconds."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def register(self, *reports: WorkerReport) -> None:
        """Store what workers report as seen now, in place of their earlier reports, in one transaction."""
        if not reports:
            return
        with self._sessions.write(Topic.WORKERS) as session:
            class_ids = {device_class: device_class.id for device_class in {each.device_class for each in reports}}
            for device_class in class_ids:
                put_device_class(session, device_class)
            latest, now = {report.id: report for report in reports}, self._sessions.now()
            # In the order in which everyone locks them.
            rows = [
                {"last_seen_at": now, **_columns(latest[id], class_ids[latest[id].device_class])}
                for id in sorted(latest)
            ]
            dialect = session.get_bind().dialect.name
            values = rows if dialect == "sqlite" else {name: [row[name] for row in rows] for name in rows[0]}
            session.connection().execute(_reporting(dialect), values)

    def all(self, live_within: float) -> list[WorkerView]:
        """All workers that ever registered, by host and id."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        wanted = (
            select(Worker, DeviceClassRow, Target.json, Task.job_id)
            .join(DeviceClassRow, Worker.device_class_id == DeviceClassRow.id)
            .join(Target)
            .outerjoin(Trial, Trial.id == Worker.slot_trial_id)
            .outerjoin(Task, Task.id == Trial.task_id)
        )
        with self._sessions.read() as session:
            rows = session.execute(wanted.order_by(Worker.host, Worker.id)).all()
            checks = _checks(session)
        return [
            WorkerView(
                id=worker.id,
                host=worker.host,
                device=worker.device,
                device_class=device_class_value(device_class, target_json),
                builders=worker.builders,
                sandbox=worker.sandbox,
                last_seen_at=worker.last_seen_at,
                alive=worker.last_seen_at >= live_since,
                activity=Activity(**{name: getattr(worker, name) for name in _ACTIVITY}),
                slot_job_id=job_id,
                quarantined_at=worker.quarantined_at,
                quarantine_reason=worker.quarantine_reason,
                drained_at=worker.drained_at,
                labels=worker.labels,
                checks=tuple(checks.get(worker.id, ())),
            )
            for worker, device_class, target_json, job_id in rows
        ]

    def availability(self, live_within: float) -> list[Availability]:
        """Return for all workers whether they can measure, without what they are shown with otherwise."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        with self._sessions.read() as session:
            return [
                Availability(
                    device_class_id, model, labels, seen >= live_since, quarantined is not None, drained, waits_for
                )
                for device_class_id, model, labels, seen, quarantined, drained, waits_for in session.execute(
                    _availability()
                )
            ]

    def count(self, live_within: float) -> WorkerCount:
        """Return the number of workers."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        with self._sessions.read() as session:
            rows = session.execute(_seen()).all()
        alive = [quarantined_at for last_seen_at, quarantined_at in rows if last_seen_at >= live_since]
        return WorkerCount(len(rows), len(alive), sum(quarantined_at is not None for quarantined_at in alive))

    @retry_conflicts
    def add_check(self, worker_id: str, secs: float) -> None:
        """Keep a timing of the reference kernel.

        Of the earlier ones the newest stay, and the fastest since the worker was last cleared, for some days.
        """
        now = self._sessions.now()
        with self._sessions.write(Topic.WORKERS) as session:
            session.add(Check(worker_id=worker_id, secs=secs, created_at=now))
            session.flush()
            own = select(Check.id).where(Check.worker_id == worker_id)
            recent = Check.created_at >= now - timedelta(days=_CHECK_DAYS)
            cleared_at = select(Worker.readmitted_at).where(Worker.id == worker_id).scalar_subquery()
            since = or_(cleared_at.is_(None), Check.created_at > cleared_at)
            newest = own.where(recent).order_by(Check.id.desc()).limit(CHECKS)
            fastest = own.where(recent, since).order_by(Check.secs, Check.id).limit(1)
            kept = [*session.scalars(newest), *session.scalars(fastest)]
            session.execute(delete(Check).where(Check.worker_id == worker_id, Check.id.not_in(kept)))

    def lost(self, within: float) -> dict[str, int]:
        """Return how many trials ended in DEVICE_LOST on each worker in the last `within` seconds.

        Those before a worker was last cleared do not count. Workers without any are left out.
        """
        now = self._sessions.now()
        counted = (
            select(Worker.id, func.count())
            .select_from(Trial)
            .join(Worker, Worker.id == Trial.worker)
            .where(
                Trial.failure_kind == FailureKind.DEVICE_LOST,
                Trial.finished_at > now - timedelta(seconds=within),
                (Worker.readmitted_at.is_(None)) | (Trial.finished_at > Worker.readmitted_at),
            )
            .group_by(Worker.id)
        )
        with self._sessions.read() as session:
            return {row.id: row[1] for row in session.execute(counted)}

    def standings(self) -> dict[str, WorkerStanding]:
        """Return what decides whether each worker may measure, by id."""
        with self._sessions.read() as session:
            return {worker_id: WorkerStanding(*standing) for worker_id, *standing in session.execute(_standings())}

    def checks_after(self, check_id: int) -> tuple[int, dict[str, tuple[CheckView, ...]]]:
        """Return the newest check, and the checks of each worker that has one after ``check_id``, as in `WorkerView`.

        To be called with the newest check of the last call, so that it costs what is new.
        """
        changed = select(Check.worker_id).where(Check.id > check_id).distinct()
        with self._sessions.read() as session:
            newest = session.scalar(select(func.max(Check.id))) or 0
            checks = _checks(session, Check.worker_id.in_(changed)) if newest > check_id else {}
        return max(newest, check_id), {worker: tuple(own) for worker, own in checks.items()}

    @retry_conflicts
    def quarantine(self, worker_id: str, reason: str | None) -> None:
        """Quarantine a worker for `reason`, or keep it quarantined since it was; None ends the quarantine.

        Webhooks are notified when it begins.
        """
        with self._sessions.write() as session:
            worker = session.get(Worker, worker_id, with_for_update=True)
            if worker is None:
                return
            now = self._sessions.now()
            if reason is not None and worker.quarantined_at is None:
                notify(session, WebhookEvent.WORKER_QUARANTINED, _facts(worker) | {"reason": reason}, now)
            worker.quarantined_at = None if reason is None else worker.quarantined_at or now
            worker.quarantine_reason = reason

    def missing(self, after: float, within: float) -> list[str]:
        """Return the ids of workers that were last seen over `after` seconds ago, and at most `within`."""
        now = self._sessions.now()
        wanted = select(Worker.id).where(
            Worker.last_seen_at < now - timedelta(seconds=after), Worker.last_seen_at >= now - timedelta(seconds=within)
        )
        with self._sessions.read() as session:
            return list(session.scalars(wanted.order_by(Worker.id)))

    @retry_conflicts
    def tell_missing(self, worker_id: str, after: float) -> None:
        """Tell webhooks that a worker was not seen for over `after` seconds, once for each time that this happens.

        Nothing happens if the worker was seen meanwhile, or if somebody has told of it.
        """
        with self._sessions.write() as session:
            worker = session.get(Worker, worker_id, with_for_update=True)
            now = self._sessions.now()
            if worker is None or worker.last_seen_at >= now - timedelta(seconds=after):
                return
            notified = told_since(session, WebhookEvent.WORKER_LOST, worker.last_seen_at)
            if all(facts["worker"] != worker_id for facts in notified):
                facts = _facts(worker) | {"last_seen_at": worker.last_seen_at.isoformat()}
                notify(session, WebhookEvent.WORKER_LOST, facts, now)

    @retry_conflicts
    def forget(self, days: float) -> int:
        """Delete workers that were not seen for ``days``, but for those that are drained or quarantined.

        Return how many. The checks of all workers go when they are too old for `add_check`.
        """
        now = self._sessions.now()
        gone = select(Worker.id).where(
            Worker.last_seen_at < now - timedelta(days=days),
            Worker.drained_at.is_(None),
            Worker.quarantined_at.is_(None),
        )
        with self._sessions.write() as session:
            workers = session.scalars(gone.order_by(Worker.id).with_for_update(skip_locked=True)).all()
            old = Check.created_at < now - timedelta(days=_CHECK_DAYS)
            session.execute(delete(Check).where(or_(old, Check.worker_id.in_(workers))))
            session.execute(delete(Worker).where(Worker.id.in_(workers)))
            return len(workers)

    @retry_conflicts
    def readmit(self, worker_id: str) -> None:
        """End a worker's quarantine and ignore its earlier losses and timings. Raises `NotFound`."""
        with self._sessions.write() as session:
            worker = session.get(Worker, worker_id)
            if worker is None:
                raise NotFound("worker", worker_id)
            worker.quarantined_at = worker.quarantine_reason = None
            worker.readmitted_at = self._sessions.now()

    @retry_conflicts
    def drain(self, worker_id: str, *, drained: bool) -> None:
        """Have a worker get no work from now on, or from when it was drained, or have it get work again.

        Raises `NotFound`.
        """
        with self._sessions.write() as session:
            worker = session.get(Worker, worker_id, with_for_update=True)
            if worker is None:
                raise NotFound("worker", worker_id)
            worker.drained_at = (worker.drained_at or self._sessions.now()) if drained else None

    def drained(self) -> frozenset[str]:
        """Return the ids of workers that get no work, because an admin said so or because their hosts leave."""
        with self._sessions.read() as session:
            return frozenset(
                session.scalars(select(Worker.id).where(or_(Worker.drained_at.is_not(None), Worker.leaving)))
            )

    def offers(self, live_within: float, labels: Mapping[str, str] | None = None) -> list[OfferView]:
        """Return the device classes that live workers with these labels have now, the most frequent first."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        live = select(Worker.device_class_id, Worker.labels).where(Worker.last_seen_at >= live_since)
        with self._sessions.read() as session:
            counts = Counter(
                device_class_id
                for device_class_id, own in session.execute(live)
                if worker_labels.matches(own, labels or {})
            )
            wanted = select(DeviceClassRow, Target.json).join(Target).where(DeviceClassRow.id.in_(counts))
            found = [
                OfferView(device_class_value(device_class, target_json), counts[device_class.id])
                for device_class, target_json in session.execute(wanted)
            ]
        return sorted(found, key=lambda offer: (-offer.workers, offer.device_class.id))

    def labels(self, live_within: float) -> dict[str, dict[str, str]]:
        """Return the labels of live workers, by id."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        wanted = select(Worker.id, Worker.labels).where(Worker.last_seen_at >= live_since).order_by(Worker.id)
        with self._sessions.read() as session:
            return {row.id: row.labels for row in session.execute(wanted)}


def _facts(worker: Worker) -> dict[str, str]:
    """Return what webhooks are told of a worker."""
    return {
        "worker": worker.id,
        "host": worker.host,
        "device": worker.device,
        "device_class": worker.device_class_id,
    }


def _columns(report: WorkerReport, device_class_id: str) -> dict[str, Any]:
    """Return the columns of a worker that its report is about."""
    return {
        "id": report.id,
        "host": report.host,
        "device": report.device,
        "device_class_id": device_class_id,
        "builders": report.builders,
        "sandbox": report.sandbox,
        "labels": dict(report.labels),
        **{name: getattr(report.activity, name) for name in _ACTIVITY},
    }


def _checks(session: Session, *conditions: ColumnElement[bool]) -> dict[str, list[CheckView]]:
    """By worker, of those since it was last cleared: the fastest check and the newest, oldest first."""
    newest = func.row_number().over(partition_by=Check.worker_id, order_by=Check.id.desc())
    fastest = func.row_number().over(partition_by=Check.worker_id, order_by=(Check.secs, Check.id))
    ranked = (
        select(Check.id, newest.label("newest"), fastest.label("fastest"))
        .join(Worker, Worker.id == Check.worker_id)
        .where((Worker.readmitted_at.is_(None)) | (Check.created_at > Worker.readmitted_at), *conditions)
        .subquery()
    )
    # Columns, not rows of the table as objects: there are hundreds.
    wanted = (
        select(Check.worker_id, Check.secs, Check.created_at)
        .join(ranked, ranked.c.id == Check.id)
        .where((ranked.c.newest <= CHECKS) | (ranked.c.fastest == 1))
        .order_by(Check.id)
    )
    found: dict[str, list[CheckView]] = {}
    for worker_id, secs, created_at in session.execute(wanted):
        found.setdefault(worker_id, []).append(CheckView(secs, created_at))
    return found
