"""Rows of made-up databases, and filling them: the parts that the databases of several benchmarks have in common."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Engine, insert

from db import migrate, models
from db.devices import target_id
from db.engine.connections import Sessions, create_engine
from db.inputs import space_hash
from db.job_counts import JobCounts
from loopwright.codegen import signatures
from loopwright.codegen.kinds import Grade
from tuner.types import DeviceClass, spread

Row = dict[str, Any]
_MADE_UP = "made up"
_KEY = "0" * 16
_RETIRED = datetime(2026, 1, 1, tzinfo=UTC)


@contextlib.contextmanager
def filling(database_url: str) -> Iterator[Engine]:
    """Make the tables where they are missing, yield an engine to fill them with, and gather statistics."""
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    key: Row = {"id": _KEY, "public_key": _MADE_UP, "private_key": None, "created_at": _RETIRED, "retired_at": _RETIRED}
    try:
        with engine.begin() as connection:
            connection.execute(insert(models.SigningKey), key)
        yield engine
        JobCounts(Sessions(engine)).correct()
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # Both databases plan by statistics, which they gather by themselves only after a while.
            connection.exec_driver_sql("ANALYZE" if engine.dialect.name == "sqlite" else "VACUUM ANALYZE")
    finally:
        engine.dispose()


def name(what: str, number: int) -> str:
    """Return an id of sixteen hexadecimal digits."""
    return hashlib.sha256(f"{what} {number}".encode()).hexdigest()[:16]


def device_class(connection: Connection, value: DeviceClass, **more: Any) -> None:
    """Insert a device class, whose target is there."""
    row: Row = {"id": value.id, "target_id": target_id(value.target_json), "model": value.model}
    row |= {"features": list(value.features), "cores": value.cores, "threads": value.threads, "runtime": value.runtime}
    connection.execute(insert(models.DeviceClass), row | more)


def job(id: str, name: str, machine: DeviceClass, created_at: datetime, **more: Any) -> Row:
    """Return a job that succeeded."""
    return {
        "id": id,
        "name": name,
        "state": "succeeded",
        "module_json": "{}",
        "space_json": None,
        "space_hash": space_hash(None),
        "device_class_id": machine.id,
        "target_json": machine.target_json,
        "budget": {"max_trials": 400},
        "seed": 0,
        "priority": 0,
        "force": False,
        "notes": [],
        "user_name": models.OWNER,
        "private": False,
        "labels_json": models.NO_LABELS,
        "suggested_trials": 0,
        "cancel_requested": False,
        "created_at": created_at,
        "queued_at": created_at,
        "started_at": created_at,
        "finished_at": created_at,
        "attempts": 1,
        "elapsed_s": 240.0,
        "saved_secs": 1e-3,
    } | more


def task(workload: Mapping[str, Any], *, id: str, job: str, certificate: str, at: datetime, **more: Any) -> Row:
    """Return a task that a search answered."""
    return {
        "id": id,
        "job_id": job,
        "workload_hash": workload["hash"],
        "name": workload["name"],
        "key": id,
        "state": "succeeded",
        "answered_from": "search",
        "certificate_id": certificate,
        "started_at": at,
        "finished_at": at,
    } | more


def evidence(
    workload: Mapping[str, Any],
    *,
    certificate: str,
    trial: str,
    machine: DeviceClass,
    samples: Sequence[float],
    baseline: float,
    best: float,
    at: datetime,
    peak_share: float | None,
    **more: Any,
) -> tuple[Row, Row]:
    """Return a certificate with the samples of its race, and the row of the best; ``more`` is the former's.

    Its document has what lists show; nobody signed it.
    """
    speedup = baseline / best
    interval = {"value": speedup, "low": 0.98 * speedup, "high": 1.02 * speedup}
    shared = {
        "workload_hash": workload["hash"],
        "device_class_id": machine.id,
        "baseline_median": baseline,
        "best_median": best,
        "created_at": at,
    }
    certified = shared | {
        "id": certificate,
        "space_hash": space_hash(None),
        "trial_id": trial,
        "inputs": _MADE_UP,
        "rtol": 1e-3,
        "atol": 1e-3,
        "max_abs_error": 0.0,
        "max_rel_error": 0.0,
        "baseline_run_secs": [baseline] * len(samples),
        "best_run_secs": list(samples),
        "rejected": {},
        "at_plateau": False,
        "sandbox": "none",
        "conditions": _MADE_UP,
        "document": signatures.canonical({"interval": interval, "grade": Grade.CLEAN.value}),
        "key_id": _KEY,
        "signature": _MADE_UP,
        "search_secs": 12.0,
    }
    row = shared | {
        "certificate_id": certificate,
        "name": workload["name"],
        "op": workload["op"],
        "text": f"{workload['name']} {workload['op']}",
        "speedup": speedup,
        "spread": spread(samples),
        "peak_share": peak_share,
    }
    return certified | more, row
