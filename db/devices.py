"""Targets and device classes: what code is generated for, and whose timings may be compared."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.columns import digest
from db.engine import Sessions
from db.errors import NotFound
from db.models import DeviceClass as DeviceClassRow
from db.models import Target
from db.upsert import insert_new
from tuner.types import DeviceClass


def target_id(target_json: str) -> str:
    """Names a target by its canonical JSON."""
    return digest(target_json)[:16]


def put_device_class(session: Session, device_class: DeviceClass) -> None:
    """Store a device class and its target, unless they are there."""
    target = {
        "id": target_id(device_class.target_json),
        "json": device_class.target_json,
        "kind": _kind(json.loads(device_class.target_json)),
    }
    row = {
        "id": device_class.id,
        "target_id": target["id"],
        "model": device_class.model,
        "features": list(device_class.features),
        "cores": device_class.cores,
        "threads": device_class.threads,
        "runtime": device_class.runtime,
    }
    insert_new(session, Target, [target])
    insert_new(session, DeviceClassRow, [row])


def device_class_value(row: DeviceClassRow, target_json: str) -> DeviceClass:
    return DeviceClass(target_json, row.model, tuple(row.features), row.cores, row.threads, row.runtime)


def _kind(target: Any) -> str:
    """A target's kind is its ``kind`` field (a name, or an object with one), or the first word of a plain string."""
    kind = target.get("kind", "") if isinstance(target, dict) else target
    return str(kind.get("name", "") if isinstance(kind, dict) else kind).partition(" ")[0]


class Devices:
    """Device classes that were ever seen; `db.workers` tells which are there now."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    def put(self, device_class: DeviceClass) -> str:
        """Store a device class and its target, unless they are there; returns its id."""
        with self._sessions.write() as session:
            put_device_class(session, device_class)
        return device_class.id

    def get(self, device_class_id: str) -> DeviceClass:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            return get_device_class(session, device_class_id)

    def all(self) -> list[DeviceClass]:
        """All of them, by id."""
        wanted = select(DeviceClassRow, Target.json).join(Target).order_by(DeviceClassRow.id)
        with self._sessions.read() as session:
            return [device_class_value(*row) for row in session.execute(wanted)]


def get_device_class(session: Session, device_class_id: str) -> DeviceClass:
    """Raises `NotFound`."""
    wanted = select(DeviceClassRow, Target.json).join(Target).where(DeviceClassRow.id == device_class_id)
    row = session.execute(wanted).one_or_none()
    if row is None:
        raise NotFound("device class", device_class_id)
    return device_class_value(*row)
