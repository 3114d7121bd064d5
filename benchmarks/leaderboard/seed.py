"""A database full of certified workloads, made up but of one piece: also what the browser tests page through."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, insert

from benchmarks import rows
from benchmarks.rows import filling
from db import models
from db.devices import target_id
from tuner.types import DeviceClass

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
    with filling(database_url) as engine:
        with engine.begin() as connection:
            classes = _device_classes(connection)
        for first in range(0, workloads, _CHUNK):
            with engine.begin() as connection:
                _fill(connection, classes, range(first, min(first + _CHUNK, workloads)))


def _device_classes(connection: Connection) -> list[tuple[DeviceClass, float]]:
    """Three kinds of machines, with their peak (floating point operations a second)."""
    classes = []
    for target, model, flops, bytes_per_s in _TARGETS:
        text = json.dumps(target, sort_keys=True)
        cores = int(target.get("num-cores", 132))
        value = DeviceClass(text, model, ("made up",), cores, cores, "seeded")
        connection.execute(insert(models.Target), {"id": target_id(text), "json": text, "kind": target["kind"]})
        peaks = {"peak_dtype": "float32", "peak_flops": flops, "peak_bytes": bytes_per_s}
        rows.device_class(connection, value, **peaks, peaks_measured_at=_time(0))
        classes.append((value, flops))
    return classes


def _fill(connection: Connection, classes: list[tuple[DeviceClass, float]], numbers: range) -> None:
    made: dict[type[models.Base], list[dict[str, Any]]] = {
        table: [] for table in (models.Workload, models.Job, models.Task, models.Trial, models.Certificate, models.Best)
    }
    for number in numbers:
        for table, row in _rows(number, *classes[number // _PER_JOB % len(classes)]):
            made[table].append(row)
    for table, found in made.items():
        connection.execute(insert(table), found)


def _rows(number: int, device_class: DeviceClass, peak: float) -> Iterator[tuple[type[models.Base], dict[str, Any]]]:
    draw = random.Random(number)
    op = draw.choice(_OPS)
    extents = [2 ** draw.randint(4, 11) for _ in range(3)]
    args = [
        [[extents[0], extents[2]], "float32", "any"],
        [[extents[2], extents[1]], "float32", "any"],
        [extents[:2], "float32", "any"],
    ]
    fused = draw.choice(("", "_add", "_add_relu", "_multiply", "_gelu"))
    name = f"{'fused_' if fused else ''}{op}{fused}_{number}"
    flop = 2.0 * extents[0] * extents[1] * extents[2]
    best = flop / (peak * draw.uniform(0.05, 0.95))
    baseline = best * draw.choice((1.0, draw.uniform(1.0, 3.0), draw.uniform(1.0, 40.0)))
    samples = [best * draw.gauss(1.0, 0.01) for _ in range(9)]
    created_at = _time(number)
    task, trial, certificate = (rows.name(what, number) for what in ("task", "trial", "certificate"))
    job = rows.name("job", number // _PER_JOB)
    workload = {
        "hash": rows.name("workload", number) + rows.name("hash", number),
        "family": rows.name("family", number % 1000),
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
    }
    yield models.Workload, workload
    if number % _PER_JOB == 0:
        more = {"max_trials": 64 * _PER_JOB}
        yield models.Job, rows.job(job, f"model {number // _PER_JOB}", device_class, created_at, **more)
    place = {"position": number % _PER_JOB, "weight": draw.randint(1, 12)}
    yield models.Task, rows.task(workload, id=task, job=job, certificate=certificate, at=created_at, **place)
    yield (
        models.Trial,
        {
            "id": trial,
            "task_id": task,
            "workload_hash": workload["hash"],
            "device_class_id": device_class.id,
            "number": 1,
            "origin": "random",
            "candidate_hash": trial,
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
    certified, row = rows.evidence(
        workload,
        certificate=certificate,
        trial=trial,
        machine=device_class,
        samples=samples,
        baseline=baseline,
        best=best,
        at=created_at,
        peak_share=flop / best / peak,
        contenders=2,
        budget_trials=64,
    )
    yield models.Certificate, certified
    yield models.Best, row


def _time(number: int) -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=number)
