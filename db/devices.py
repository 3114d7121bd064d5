"""Targets and device classes: what code is generated for, and whose timings may be compared."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, bindparam, func, select
from sqlalchemy.orm import Session

from db.bests import renew_peaks
from db.engine.columns import digest
from db.engine.conflicts import retry_conflicts
from db.engine.connections import Sessions
from db.engine.statements import cache_statements
from db.errors import NotFound
from db.models import Best, Target, Worker
from db.models import DeviceClass as DeviceClassRow
from db.upsert import insert_new
from db.views import DeviceClassView, Peaks
from tuner.types import CacheRate, DeviceClass

_BETTER = 1.01
"""Peaks that are better by less are the same: all shares would have to be written anew."""


def target_id(target_json: str) -> str:
    """Names a target by its canonical JSON."""
    return digest(target_json)[:16]


def put_device_class(session: Session, device_class: DeviceClass) -> None:
    """Store a device class and its target, unless they are there."""
    if session.scalar(_known(), {"id": device_class.id}) is not None:
        return
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
    if insert_new(session, DeviceClassRow, [row]):
        # A user's own target on machines whose peaks are known.
        measured = select(DeviceClassRow).where(same_machine(device_class), DeviceClassRow.peak_flops.is_not(None))
        sibling = session.scalars(measured.limit(1)).one_or_none()
        if sibling is not None:
            _set_peaks(session, device_class, _peaks(sibling))


@cache_statements
def _known() -> Select[str]:
    return select(DeviceClassRow.id).where(DeviceClassRow.id == bindparam("id"))


def device_class_value(row: DeviceClassRow, target_json: str) -> DeviceClass:
    return DeviceClass(target_json, row.model, tuple(row.features), row.cores, row.threads, row.runtime)


def _kind(target: Any) -> str:
    """A target's kind is its ``kind`` field (a name, or an object with one), or the first word of a plain string."""
    kind = target.get("kind", "") if isinstance(target, dict) else target
    return str(kind.get("name", "") if isinstance(kind, dict) else kind).partition(" ")[0]


class Devices:
    """All device classes that ever had a worker; `db.workers` lists the workers that are alive."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions

    @retry_conflicts
    def put(self, device_class: DeviceClass) -> str:
        """Store a device class and its target, unless they are there; returns its id."""
        with self._sessions.write() as session:
            put_device_class(session, device_class)
        return device_class.id

    def get(self, device_class_id: str) -> DeviceClass:
        """Raises `NotFound`."""
        with self._sessions.read() as session:
            return get_device_class(session, device_class_id)

    @retry_conflicts
    def put_peaks(self, device_class: DeviceClass, peaks: Peaks) -> None:
        """Store peaks that exceed the stored ones, for all classes of these machines, whatever their target."""
        with self._sessions.write() as session:
            _set_peaks(session, device_class, peaks)

    def peaks(self, device_class_id: str) -> Peaks | None:
        """Return the peaks; None if they were not measured yet. Raises `NotFound` for an unknown class."""
        with self._sessions.read() as session:
            row = session.get(DeviceClassRow, device_class_id)
        if row is None:
            raise NotFound("device class", device_class_id)
        return _peaks(row)

    def peak_flops(self, device_class_id: str) -> float | None:
        """Return the operations per second in float32; None if they were not measured. Raises `NotFound`."""
        peaks = self.peaks(device_class_id)
        return peaks.flops if peaks is not None and peaks.dtype == "float32" else None

    def overview(self, live_within: float) -> list[DeviceClassView]:
        """Return all classes with their bests and the workers seen within `live_within` seconds, by model and id."""
        live_since = self._sessions.now() - timedelta(seconds=live_within)
        bests = select(func.count()).where(Best.device_class_id == DeviceClassRow.id).scalar_subquery()
        alive = Worker.last_seen_at >= live_since
        workers = select(func.count()).where(Worker.device_class_id == DeviceClassRow.id, alive).scalar_subquery()
        wanted = select(DeviceClassRow, Target.json, bests, workers).join(Target)
        with self._sessions.read() as session:
            rows = session.execute(wanted.order_by(DeviceClassRow.model, DeviceClassRow.id)).all()
        return [
            DeviceClassView(device_class_value(row, target_json), _peaks(row), best_count, worker_count)
            for row, target_json, best_count, worker_count in rows
        ]

    def all(self) -> list[DeviceClass]:
        """All of them, by id."""
        wanted = select(DeviceClassRow, Target.json).join(Target).order_by(DeviceClassRow.id)
        with self._sessions.read() as session:
            return [device_class_value(*row) for row in session.execute(wanted)]


def of_machine(device_class: DeviceClass) -> ColumnElement[bool]:
    """Classes of these machines, whatever their target and their TVM; the model has the features' digest in it."""
    return and_(
        DeviceClassRow.model == device_class.model,
        DeviceClassRow.cores == device_class.cores,
        DeviceClassRow.threads == device_class.threads,
    )


def same_machine(device_class: DeviceClass) -> ColumnElement[bool]:
    """Return the classes that differ at most in their target."""
    return and_(of_machine(device_class), DeviceClassRow.runtime == device_class.runtime)


def _set_peaks(session: Session, device_class: DeviceClass, peaks: Peaks | None) -> None:
    if peaks is None:
        return
    rows = session.scalars(
        select(DeviceClassRow)
        .where(same_machine(device_class))
        .order_by(DeviceClassRow.id)
        .with_for_update(key_share=True)
    )
    for row in rows.all():
        flops, moved = row.peak_flops or 0.0, row.peak_bytes or 0.0
        caches = _faster(_caches(row), peaks.caches)
        if peaks.flops > flops * _BETTER or peaks.bytes_per_s > moved * _BETTER or caches != _caches(row):
            row.peak_dtype, row.peaks_measured_at = peaks.dtype, peaks.measured_at
            row.caches = [asdict(cache) for cache in caches]
            row.peak_flops, row.peak_bytes = max(peaks.flops, flops), max(peaks.bytes_per_s, moved)
            session.flush()
            renew_peaks(session, row.id)


def _peaks(row: DeviceClassRow) -> Peaks | None:
    if row.peak_dtype is None or row.peak_flops is None or row.peak_bytes is None or row.peaks_measured_at is None:
        return None
    return Peaks(row.peak_dtype, row.peak_flops, row.peak_bytes, row.peaks_measured_at, _caches(row))


def _caches(row: DeviceClassRow) -> tuple[CacheRate, ...]:
    return tuple(CacheRate(**cache) for cache in row.caches)


def _faster(known: tuple[CacheRate, ...], measured: tuple[CacheRate, ...]) -> tuple[CacheRate, ...]:
    """Return the caches that were measured, each with the known rate unless it is now faster; the known ones if none.

    Machines of a class may differ in their caches: those of a virtual one are what its host says.
    """
    rates = {cache.name: cache.bytes_per_s for cache in known}
    best = [
        cache
        if cache.bytes_per_s > rates.get(cache.name, 0.0) * _BETTER
        else replace(cache, bytes_per_s=rates[cache.name])
        for cache in measured
    ]
    return tuple(best) or known


def get_device_class(session: Session, device_class_id: str) -> DeviceClass:
    """Raises `NotFound`."""
    wanted = select(DeviceClassRow, Target.json).join(Target).where(DeviceClassRow.id == device_class_id)
    row = session.execute(wanted).one_or_none()
    if row is None:
        raise NotFound("device class", device_class_id)
    return device_class_value(*row)
