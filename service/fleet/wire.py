"""Maps workers and device classes of the database to the wire."""

from __future__ import annotations

import json

from db.views import DeviceClassView, Peaks, WorkerView
from loopwright import schemas
from loopwright.codegen.machine.names import machine_name
from service.fleet.health import drift
from service.units import micros


def peaks(value: Peaks) -> schemas.Peaks:
    return schemas.Peaks(
        dtype=value.dtype,
        flops=value.flops,
        bytes_per_s=value.bytes_per_s,
        measured_at=value.measured_at,
        caches=[
            schemas.CachePeak(name=cache.name, bytes=cache.bytes, bytes_per_s=cache.bytes_per_s)
            for cache in value.caches
        ],
    )


def device_class(view: DeviceClassView) -> schemas.DeviceClass:
    value = view.device_class
    return schemas.DeviceClass(
        id=value.id,
        target=json.loads(value.target_json),
        name=machine_name(value.model, value.target_json),
        model=value.model,
        features=list(value.features),
        cores=value.cores,
        threads=value.threads,
        runtime=value.runtime,
        peaks=None if view.peaks is None else peaks(view.peaks),
        workers=view.workers,
        bests=view.bests,
    )


def worker(view: WorkerView) -> schemas.Worker:
    return schemas.Worker(
        id=view.id,
        host=view.host,
        device=view.device,
        device_model=machine_name(view.device_class.model, view.device_class.target_json),
        target=json.loads(view.device_class.target_json),
        device_class=view.device_class.id,
        threads=view.device_class.threads,
        builders=view.builders,
        sandbox=view.sandbox,
        alive=view.alive,
        last_seen_at=view.last_seen_at,
        builders_busy=view.activity.builders_busy if view.alive else 0,
        slot=_slot(view) if view.alive else None,
        slot_use=view.activity.slot_use if view.alive else None,
        drift=_drift(view),
        quarantine=_quarantine(view),
        drain=_drain(view),
        labels=view.labels,
    )


def _slot(view: WorkerView) -> schemas.Slot | None:
    since = view.activity.slot_since
    if since is None:
        return None
    return schemas.Slot(trial_id=view.activity.slot_trial_id, job_id=view.slot_job_id, since=since)


def _drift(view: WorkerView) -> schemas.Drift | None:
    found = drift(view.checks)
    if found is None:
        return None
    checks = [schemas.Check(at=check.created_at, us=micros(check.secs)) for check in view.checks]
    return schemas.Drift(ratio=found.ratio, flagged=found.flagged, checks=checks)


def _quarantine(view: WorkerView) -> schemas.Quarantine | None:
    if view.quarantined_at is None or view.quarantine_reason is None:
        return None
    return schemas.Quarantine(since=view.quarantined_at, reason=view.quarantine_reason)


def _drain(view: WorkerView) -> schemas.Drain | None:
    leaving = view.alive and view.activity.leaving
    if view.drained_at is None and not leaving:
        return None
    is_busy = view.alive and (view.activity.slot_since is not None or view.activity.builders_busy > 0)
    return schemas.Drain(state="draining" if is_busy else "drained", since=view.drained_at, leaving=leaving)
