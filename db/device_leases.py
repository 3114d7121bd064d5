"""Which controller uses which device: a lease of each controller, for all devices that it has, renewed in one row.

A controller has a lease while its jobs want devices. When a lease expires, or is given up, its devices are free.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta

from sqlalchemy import ColumnElement, case, delete, select, text, update
from sqlalchemy.orm import Session

from db.engine.changes import Topic
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.inputs import Demand
from db.models import Controller, Worker
from db.upsert import insert
from loopwright.codegen import worker_labels

_ONE_AT_A_TIME = text("SELECT pg_advisory_xact_lock(257)")
"""What a controller decides stands on what the one before it has changed. The number is one that nothing else has."""


@dataclass(frozen=True, slots=True)
class Device:
    """A device that can measure now. ``kind`` is what demands call it by; ``leased_to`` is the owner of its lease."""

    id: str
    kind: str
    leased_to: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """Devices that a controller wants and may return."""

    wanted: Collection[str]
    returned: Collection[str]


def kind(device_class_id: str, labels: Mapping[str, str]) -> str:
    """Return the name of all devices of one class with the same labels: whatever one can measure, all can."""
    return f"{device_class_id} {worker_labels.text(labels)}".rstrip()


class DeviceLeases:
    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def renew(
        self,
        owner: str,
        demands: Sequence[Demand],
        seconds: float,
        live_within: float,
        decide: Callable[[Sequence[Device], Mapping[str, Sequence[Demand]]], Change],
    ) -> frozenset[str]:
        """Renew the lease of a controller, or begin one, and change its devices. Return those that it has now.

        Args:
            demands: what its jobs could use now, which other controllers read.
            seconds: how long the lease lasts from now.
            live_within: a device that was not seen for so many seconds measures nothing.
            decide: gets all devices, and the demands of all controllers; it is called within the transaction, and again
                if that is rolled back. What it wants is leased as far as it is free.
        """
        with self._sessions.write(Topic.NONE) as session:
            now = self._sessions.now()
            if session.get_bind().dialect.name == "postgresql":
                session.execute(_ONE_AT_A_TIME)
            over = session.scalars(select(Controller.owner).where(Controller.expires_at <= now)).all()
            others = select(Controller.owner, Controller.demands).where(
                Controller.owner.not_in(over), Controller.owner != owner
            )
            told = {who: [Demand.read(each) for each in theirs] for who, theirs in session.execute(others)}
            able = select(Worker.id, Worker.device_class_id, Worker.labels, Worker.leased_to).where(
                Worker.last_seen_at >= now - timedelta(seconds=live_within),
                Worker.quarantined_at.is_(None),
                Worker.drained_at.is_(None),
                Worker.leaving.is_(False),
            )
            devices = [
                Device(id, kind(device_class_id, labels), None if leased_to in over else leased_to)
                for id, device_class_id, labels, leased_to in session.execute(able.order_by(Worker.id))
            ]
            change = decide(devices, {**told, owner: list(demands)})
            ended = Worker.leased_to.in_(over)
            returned = Worker.id.in_(sorted(change.returned)) & (Worker.leased_to == owner)
            wanted = Worker.id.in_(sorted(change.wanted)) & Worker.leased_to.is_(None)
            if over or change.returned or change.wanted:
                _lock(session, ended | returned | wanted)
            if over:
                session.execute(delete(Controller).where(Controller.owner.in_(over)))
            statement = insert(session, Controller)
            replaced = {name: statement.excluded[name] for name in ("demands", "expires_at")}
            session.execute(
                statement.on_conflict_do_update(index_elements=["owner"], set_=replaced),
                {
                    "owner": owner,
                    "demands": [asdict(demand) for demand in demands],
                    "expires_at": now + timedelta(seconds=seconds),
                },
            )
            if change.returned or change.wanted:
                leased_to = case((Worker.leased_to.is_(None), owner))
                session.execute(update(Worker).where(returned | wanted).values(leased_to=leased_to))
            return frozenset(session.scalars(select(Worker.id).where(Worker.leased_to == owner)))

    @retry_conflicts
    def give_up(self, owner: str) -> None:
        """End the lease of a controller; its devices are free."""
        with self._sessions.write(Topic.NONE) as session:
            _lock(session, Worker.leased_to == owner)
            session.execute(delete(Controller).where(Controller.owner == owner))


def _lock(session: Session, which: ColumnElement[bool]) -> None:
    """Lock devices in the order in which everyone does: all that a transaction changes at once."""
    session.execute(select(Worker.id).where(which).order_by(Worker.id).with_for_update(key_share=True))
