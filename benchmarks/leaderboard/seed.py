"""A database full of certified workloads, made up but of one piece: also what the browser tests page through.

.venv/bin/python -m benchmarks.leaderboard.seed sqlite:///FILE [--workloads 100000]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from db import migrate, models
from db.devices import target_id
from db.engine import create_engine
from db.inputs import space_hash
from tuner.types import DeviceClass, spread

WORKLOADS = 100_000
_PER_JOB = 20
_CHUNK = 5000
_TARGETS: tuple[tuple[dict[str, Any], str, float, float], ...] = (
    ({"kind": "llvm", "mcpu": "sapphirerapids", "num-cores": 16}, "GenuineIntel sapphirerapids 3f81", 1.9e12, 7.5e10),
    ({"kind": "llvm", "mcpu": "znver4", "num-cores": 32}, "AuthenticAMD znver4 a07c", 2.6e12, 1.1e11),
    ({"kind": "cuda", "arch": "sm_90"}, "NVIDIA H100 80GB HBM3", 5.1e13, 2.6e12),
)
_OPS = ("matmul", "batch_matmul", "conv2d", "depthwise_conv2d", "softmax", "norm", "reduction", "elementwise", "copy")
_TRACE = json.dumps([[], []])


def seed(database_url: str, workloads: int = WORKLOADS) -> None:
    """Make the tables where they are missing, and fill them: each workload with a job's task, a measured
    trial and a certificate. Equal numbers, equal databases. The programs themselves are left out."""
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    try:
        with engine.begin() as connection:
            classes = _device_classes(connection)
            for first in range(0, workloads, _CHUNK):
                _fill(connection, classes, range(first, min(first + _CHUNK, workloads)))
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # Both databases plan by statistics, which they gather by themselves only after a while.
            connection.exec_driver_sql("ANALYZE" if engine.dialect.name == "sqlite" else "VACUUM ANALYZE")
    finally:
        engine.dispose()


def _device_classes(connection: Connection) -> list[tuple[DeviceClass, float]]:
    """Three kinds of machines, with their peak (floating point operations a second)."""
    classes = []
    for target, model, flops, bytes_per_s in _TARGETS:
        text = json.dumps(target, sort_keys=True)
        cores = int(target.get("num-cores", 132))
        value = DeviceClass(text, model, ("made up",), cores, cores, "seeded")
        connection.execute(insert(models.Target), {"id": target_id(text), "json": text, "kind": target["kind"]})
        row = {
            "id": value.id,
            "target_id": target_id(text),
            "model": model,
            "features": list(value.features),
            "cores": cores,
            "threads": cores,
            "runtime": value.runtime,
            "peak_dtype": "float32",
            "peak_flops": flops,
            "peak_bytes": bytes_per_s,
            "peaks_measured_at": _time(0),
        }
        connection.execute(insert(models.DeviceClass), row)
        classes.append((value, flops))
    return classes


def _fill(connection: Connection, classes: list[tuple[DeviceClass, float]], numbers: range) -> None:
    rows: dict[type[models.Base], list[dict[str, Any]]] = {
        table: [] for table in (models.Workload, models.Job, models.Task, models.Trial, models.Certificate, models.Best)
    }
    for number in numbers:
        for table, row in _rows(number, *classes[number // _PER_JOB % len(classes)]):
            rows[table].append(row)
    for table, found in rows.items():
        connection.execute(insert(table), found)


def _rows(number: int, device_class: DeviceClass, peak: float) -> Iterator[tuple[type[models.Base], dict[str, Any]]]:
    draw = random.Random(number)
    op = draw.choice(_OPS)
    extents = [2 ** draw.randint(4, 11) for _ in range(3)]
    args = [[[extents[0], extents[2]], "float32"], [[extents[2], extents[1]], "float32"], [extents[:2], "float32"]]
    fused = draw.choice(("", "_add", "_add_relu", "_multiply", "_gelu"))
    name = f"{'fused_' if fused else ''}{op}{fused}_{number}"
    flop = 2.0 * extents[0] * extents[1] * extents[2]
    best = flop / (peak * draw.uniform(0.05, 0.95))
    baseline = best * draw.choice((1.0, draw.uniform(1.0, 3.0), draw.uniform(1.0, 40.0)))
    samples = [best * draw.gauss(1.0, 0.01) for _ in range(9)]
    created_at = _time(number)
    ids = {what: _id(what, number) for what in ("task", "trial", "certificate")}
    key, job = _id("workload", number) + _id("hash", number), _id("job", number // _PER_JOB)

    yield (
        models.Workload,
        {
            "hash": key,
            "family": _id("family", number % 1000),
            "name": name,
            "module_json": "{}",
            "script": f"# {name}: made up, without a program",
            "args": args,
            "op": op,
            "compute_dtype": "float32",
            "flop": flop,
            "tvm_version": "seeded",
            "shared": True,
            "created_at": created_at,
        },
    )
    if number % _PER_JOB == 0:
        yield models.Job, _job(job, number, device_class, created_at)
    yield (
        models.Task,
        {
            "id": ids["task"],
            "job_id": job,
            "position": number % _PER_JOB,
            "workload_hash": key,
            "name": name,
            "weight": draw.randint(1, 12),
            "key": ids["task"],
            "state": "succeeded",
            "answered_from": "search",
            "certificate_id": ids["certificate"],
            "started_at": created_at,
            "finished_at": created_at,
        },
    )
    yield (
        models.Trial,
        {
            "id": ids["trial"],
            "task_id": ids["task"],
            "workload_hash": key,
            "device_class_id": device_class.id,
            "number": 1,
            "origin": "random",
            "candidate_hash": ids["trial"],
            "trace_json": _TRACE,
            "state": "measured",
            "run_secs": [best],
            "median": best,
            "tvm_version": "seeded",
            "codegen_version": 1,
            "created_at": created_at,
            "finished_at": created_at,
        },
    )
    evidence = {
        "workload_hash": key,
        "device_class_id": device_class.id,
        "baseline_median": baseline,
        "best_median": best,
        "created_at": created_at,
    }
    yield (
        models.Certificate,
        evidence
        | {
            "id": ids["certificate"],
            "space_hash": space_hash(None),
            "trial_id": ids["trial"],
            "inputs": "made up",
            "rtol": 1e-3,
            "atol": 1e-3,
            "max_abs_error": 0.0,
            "max_rel_error": 0.0,
            "baseline_run_secs": [baseline] * len(samples),
            "best_run_secs": samples,
            "contenders": 2,
            "rejected": {},
            "budget_trials": 64,
            "search_secs": 12.0,
            "at_plateau": False,
            "sandbox": "none",
            "conditions": "made up",
        },
    )
    yield (
        models.Best,
        evidence
        | {
            "certificate_id": ids["certificate"],
            "name": name,
            "op": op,
            "text": f"{name} {op}",
            "speedup": baseline / best,
            "spread": spread(samples),
            "peak_share": flop / best / peak,
        },
    )


def _job(id: str, number: int, device_class: DeviceClass, created_at: datetime) -> dict[str, Any]:
    return {
        "id": id,
        "name": f"model {number // _PER_JOB}",
        "state": "succeeded",
        "module_json": "{}",
        "space_json": None,
        "space_hash": space_hash(None),
        "device_class_id": device_class.id,
        "target_json": device_class.target_json,
        "max_trials": 64 * _PER_JOB,
        "seed": 0,
        "priority": 0,
        "force": False,
        "notes": [],
        "user_name": models.OWNER,
        "private": False,
        "labels_json": models.NO_LABELS,
        "until_plateau": False,
        "suggested_trials": 0,
        "cancel_requested": False,
        "created_at": created_at,
        "queued_at": created_at,
        "started_at": created_at,
        "finished_at": created_at,
        "attempts": 1,
        "elapsed_s": 240.0,
        "saved_secs": 1e-3,
    }


def _id(what: str, number: int) -> str:
    return hashlib.sha256(f"{what} {number}".encode()).hexdigest()[:16]


def _time(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.leaderboard.seed")
    parser.add_argument("database_url")
    parser.add_argument("--workloads", type=int, default=WORKLOADS)
    return parser


def main() -> None:
    options = parser().parse_args()
    seed(options.database_url, options.workloads)


if __name__ == "__main__":
    main()
