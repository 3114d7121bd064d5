"""The present state of the service, for monitoring. Each query uses an index or a small table."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import QueuePool, func, select, text

from db.conditions import BEGUN, QUEUED, RUNNING, UNFINISHED
from db.engine.connections import Sessions
from db.models import Delivery, Job, TrialTally, Usage, Worker

_LOST_DAYS = 1
"""A worker that was not seen for longer has left."""
_GIVEN_UP_DAYS = 7


@dataclass(frozen=True, slots=True)
class Queue:
    """``oldest_secs``: for how long the oldest queued job has waited, 0 if there is none.

    ``leases`` and ``expired`` are numbers of running jobs. Of the jobs that have not ended, ``reclaims`` are all claims
    beyond the first of each, ``most_claims`` those of the job that has the most.
    """

    oldest_secs: float
    leases: int
    expired: int
    reclaims: int
    most_claims: int


@dataclass(frozen=True, slots=True)
class WorkerGauge:
    """A worker that was seen within a day. What it does is None, or 0, unless it is alive."""

    id: str
    device_class_id: str
    alive: bool
    quarantined: bool
    drained: bool
    last_seen_at: datetime
    builders: int
    builders_busy: int
    slot_use: float | None
    """In [0, 1]."""


@dataclass(frozen=True, slots=True)
class Outbox:
    """Deliveries of webhooks: not tried yet, to be tried again, and given up, of those of the last week."""

    pending: int
    retrying: int
    given_up: int


@dataclass(frozen=True, slots=True)
class Use:
    """The use of all users since the database was made. ``device_secs`` are seconds in measuring slots."""

    jobs: int
    device_secs: float


@dataclass(frozen=True, slots=True)
class Connections:
    """Connections to the database that this process has, and may have at most."""

    used: int
    idle: int
    most: int


class Gauges:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def queue(self) -> Queue:
        now = self._sessions.now()
        oldest = select(func.min(Job.created_at)).where(UNFINISHED, QUEUED)
        leases = select(
            func.count(),
            func.count().filter(Job.lease_expires_at < now),
        ).where(RUNNING)
        claims = select(
            func.coalesce(func.sum(Job.attempts - 1), 0),
            func.coalesce(func.max(Job.attempts), 0),
        ).where(BEGUN, Job.attempts > 0)
        with self._sessions.read() as session:
            since = session.scalar(oldest)
            running, expired = session.execute(leases).one()
            reclaims, most = session.execute(claims).one()
        waited = 0.0 if since is None else max(0.0, (now - since).total_seconds())
        return Queue(waited, running - expired, expired, reclaims, most)

    def wanted_devices(self) -> dict[str, int]:
        """Return how many devices of each class the jobs could use that have not ended: one for each job."""
        # Each state has an index; that of both has no device class.
        by_class = [
            select(Job.device_class_id, func.count()).where(state).group_by(Job.device_class_id)
            for state in (QUEUED, RUNNING)
        ]
        wanted: Counter[str] = Counter()
        with self._sessions.read() as session:
            for counted in by_class:
                wanted.update(dict(session.execute(counted).all()))
        return dict(wanted)

    def workers(self, live_within: float) -> list[WorkerGauge]:
        """Return the workers that were seen within a day, by id; `live_within` is in seconds."""
        now = self._sessions.now()
        live_since = now - timedelta(seconds=live_within)
        wanted = select(
            Worker.id,
            Worker.device_class_id,
            Worker.last_seen_at,
            Worker.quarantined_at,
            Worker.drained_at,
            Worker.leaving,
            Worker.builders,
            Worker.builders_busy,
            Worker.slot_use,
        ).where(Worker.last_seen_at >= now - timedelta(days=_LOST_DAYS))
        with self._sessions.read() as session:
            rows = session.execute(wanted.order_by(Worker.id)).all()
        return [
            WorkerGauge(
                id=row.id,
                device_class_id=row.device_class_id,
                alive=(alive := row.last_seen_at >= live_since),
                quarantined=row.quarantined_at is not None,
                drained=row.drained_at is not None or row.leaving,
                last_seen_at=row.last_seen_at,
                builders=row.builders,
                builders_busy=row.builders_busy if alive else 0,
                slot_use=row.slot_use if alive else None,
            )
            for row in rows
        ]

    def outbox(self) -> Outbox:
        waiting = select(
            func.count().filter(Delivery.attempts == 0),
            func.count().filter(Delivery.attempts > 0),
        ).where(Delivery.next_at.is_not(None))
        given_up = (
            select(func.count())
            .select_from(Delivery)
            .where(
                Delivery.created_at > self._sessions.now() - timedelta(days=_GIVEN_UP_DAYS),
                Delivery.next_at.is_(None),
                Delivery.delivered_at.is_(None),
            )
        )
        with self._sessions.read() as session:
            pending, retrying = session.execute(waiting).one()
            return Outbox(pending, retrying, session.scalar(given_up) or 0)

    def use(self) -> Use:
        """Return the sums over the table of users and days."""
        summed = select(func.coalesce(func.sum(Usage.jobs), 0), func.coalesce(func.sum(Usage.device_seconds), 0.0))
        tallied = select(func.coalesce(func.sum(TrialTally.device_seconds), 0.0))
        with self._sessions.read() as session:
            jobs, device_secs = session.execute(summed).one()
            return Use(int(jobs), float(device_secs) + session.scalars(tallied).one())

    def revision(self) -> str:
        """Return the revision of the database's tables."""
        with self._sessions.read() as session:
            return str(session.scalar(text("SELECT version_num FROM alembic_version")))

    def connections(self) -> Connections:
        """Return those of this process; the database is not asked."""
        with self._sessions.read() as session:
            pool = session.get_bind().engine.pool
        assert isinstance(pool, QueuePool)
        return Connections(pool.checkedout(), pool.checkedin(), pool.size() + pool._max_overflow)
