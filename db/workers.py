"""The machines of the fleet, as they last reported themselves."""

from __future__ import annotations

from datetime import timedelta

from sqlalchemy import func, select, update

from db.devices import device_class_value, put_device_class
from db.engine import Sessions
from db.models import DeviceClass as DeviceClassRow
from db.models import Target, Worker
from db.upsert import insert
from db.views import Offer, WorkerView
from tuner.types import DeviceClass


class Workers:
    """Registration and heartbeats. A worker is alive if it was seen within the last `live_within` seconds."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def register(self, worker_id: str, *, host: str, device: str, device_class: DeviceClass, builders: int) -> None:
        """Store a worker as seen now, in place of what it said before."""
        with self._sessions.write() as session:
            put_device_class(session, device_class)
            said = {
                "host": host,
                "device": device,
                "device_class_id": device_class.id,
                "builders": builders,
                "last_seen_at": self._sessions.now(),
            }
            statement = insert(session, Worker).values(id=worker_id, **said)
            session.execute(statement.on_conflict_do_update(index_elements=["id"], set_=said))

    def heartbeat(self, worker_id: str) -> bool:
        """Mark a worker as seen now; False if it has to register first."""
        with self._sessions.write() as session:
            seen = update(Worker).where(Worker.id == worker_id).values(last_seen_at=self._sessions.now())
            return session.connection().execute(seen).rowcount == 1

    def all(self, live_within: float) -> list[WorkerView]:
        """All workers that ever registered, by host and id."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        wanted = select(Worker, DeviceClassRow, Target.json).join(
            DeviceClassRow, Worker.device_class_id == DeviceClassRow.id
        )
        with self._sessions.read() as session:
            rows = session.execute(wanted.join(Target).order_by(Worker.host, Worker.id)).all()
        return [
            WorkerView(
                id=worker.id,
                host=worker.host,
                device=worker.device,
                device_class=device_class_value(device_class, target_json),
                builders=worker.builders,
                last_seen_at=worker.last_seen_at,
                alive=worker.last_seen_at >= live_since,
            )
            for worker, device_class, target_json in rows
        ]

    def offers(self, live_within: float) -> list[Offer]:
        """The device classes that live workers have now, the most frequent first."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        live = (
            select(Worker.device_class_id, func.count().label("workers"))
            .where(Worker.last_seen_at >= live_since)
            .group_by(Worker.device_class_id)
            .subquery()
        )
        wanted = (
            select(DeviceClassRow, Target.json, live.c.workers)
            .join(Target)
            .join(live, live.c.device_class_id == DeviceClassRow.id)
            .order_by(live.c.workers.desc(), DeviceClassRow.id)
        )
        with self._sessions.read() as session:
            return [
                Offer(device_class_value(device_class, target_json), count)
                for device_class, target_json, count in session.execute(wanted)
            ]
