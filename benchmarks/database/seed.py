"""A database full of jobs, trials and certificates, made up but of one piece.

.venv/bin/python -m benchmarks.database.seed sqlite:///FILE [--trials 1000000]
"""

from __future__ import annotations

import argparse
import functools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection, insert

from benchmarks.database.ledger import candidates
from benchmarks.database.made_up import (
    FAMILY,
    TARGET,
    TRIALS,
    TVM_VERSION,
    Size,
    another_device_class,
    device_class,
    job_id,
    name,
    workload_hash,
)
from db import migrate, models
from db.compression import compress_trace
from db.devices import target_id
from db.engine import create_engine
from db.inputs import space_hash
from loopwright.codegen.serialization import module_to_json
from tests.support import rule_programs
from tests.support.programs import product_relu
from tuner.types import DeviceClass, spread

_WORKLOADS_A_CHUNK = 100
_FAILED = 0.05
_TRIALS = sa.Table(
    "trials",
    sa.MetaData(),
    *(
        # Traces are compressed once for all trials.
        sa.Column(column.name, sa.LargeBinary if column.name == "trace" else column.type)
        for column in models.Trial.__table__.columns
    ),
)
_START = datetime(2020, 1, 1, tzinfo=UTC)


def seed(database_url: str, size: Size) -> None:
    """Make the tables and fill them. Equal sizes, equal databases."""
    migrate.upgrade(database_url)
    engine = create_engine(database_url)
    pool = [(compress_trace(trace), features) for trace, features in candidates()]
    try:
        with engine.begin() as connection:
            _fill(connection, size)
        for first in range(0, size.workloads, _WORKLOADS_A_CHUNK):
            numbers = range(first, min(first + _WORKLOADS_A_CHUNK, size.workloads))
            trials = {number: list(_trials(number, size, pool)) for number in numbers}
            events = [_event(number, row, size) for number, rows in trials.items() for row in rows]
            certificates, bests = zip(*(_evidence(number, size) for number in numbers), strict=True)
            with engine.begin() as connection:
                connection.execute(insert(_TRIALS), [row for rows in trials.values() for row in rows])
                connection.execute(insert(models.Event), events)
                connection.execute(insert(models.Certificate), certificates)
                connection.execute(insert(models.Best), bests)
        with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # Both databases plan by statistics, which they gather by themselves only after a while.
            connection.exec_driver_sql("ANALYZE" if engine.dialect.name == "sqlite" else "VACUUM ANALYZE")
    finally:
        engine.dispose()


def _fill(connection: Connection, size: Size) -> None:
    """Insert what is there before the trials."""
    connection.execute(insert(models.Target), {"id": target_id(TARGET), "json": TARGET, "kind": "llvm"})
    for machine in (device_class(), another_device_class()):
        row: dict[str, Any] = {"id": machine.id, "target_id": target_id(TARGET), "model": machine.model}
        row |= {"features": list(machine.features), "cores": 32, "threads": 32, "runtime": machine.runtime}
        connection.execute(insert(models.DeviceClass), row)
        made = size.trials // 10 * (9 if machine == device_class() else 1)
        counts = {"device_class_id": machine.id, "tvm_version": TVM_VERSION}
        for outcome, share in (("measured", 1 - _FAILED), ("CRASH", _FAILED)):
            trials = int(made * share)
            connection.execute(
                insert(models.TrialCount), {**counts, "outcome": outcome, "trials": trials, "samples": trials}
            )
    connection.execute(insert(models.Workload), [_workload(number) for number in range(size.workloads)])
    connection.execute(insert(models.Job), [_job(number, size) for number in range(size.jobs + size.old_jobs)])
    connection.execute(insert(models.Task), [_task(number, size) for number in range(size.workloads)])


@functools.cache
def _module(number: int) -> str:
    """Return a product as TVM's JSON."""
    return module_to_json(rule_programs.product(16 + number, 64, 64))


def _workload(number: int) -> dict[str, Any]:
    draw = random.Random(number)
    rows, columns, depth = (2 ** draw.randint(4, 11) + draw.randint(0, 15) for _ in range(3))
    family = 0 if number < FAMILY else 1 + (number - FAMILY) // 20
    return {
        "hash": workload_hash(number),
        "family": name("family", family),
        "name": f"fused_matmul_add_{number}",
        "module_json": _module(number % 64),
        "script": product_relu(64),
        "args": [[[rows, depth], "float32"], [[depth, columns], "float32"], [[rows, columns], "float32"]],
        "op": "matmul",
        "compute_dtype": "float32",
        "flop": 2.0 * rows * columns * depth,
        "tvm_version": TVM_VERSION,
        "shared": True,
        "created_at": _time(number),
    }


def _job_of(workload: int, size: Size) -> int:
    return workload * size.jobs // size.workloads


def _machine_of(job: int) -> DeviceClass:
    return another_device_class() if job % 10 == 9 else device_class()


def _job(number: int, size: Size) -> dict[str, Any]:
    machine = _machine_of(number)
    made = size.trials // size.jobs if number < size.jobs else 0
    return {
        "id": job_id(number),
        "name": f"model {number}",
        "state": "succeeded",
        "module_json": _module(number % 64) if made else "{}",
        "space_json": None,
        "space_hash": space_hash(None),
        "device_class_id": machine.id,
        "target_json": TARGET,
        "max_trials": 400,
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
        "created_at": _time(number),
        "queued_at": _time(number),
        "started_at": _time(number),
        "finished_at": _time(number),
        "attempts": 1,
        "elapsed_s": 240.0,
        "saved_secs": 1e-3,
        "trials": made,
    }


def _task(workload: int, size: Size) -> dict[str, Any]:
    job = _job_of(workload, size)
    return {
        "id": name("task", workload),
        "job_id": job_id(job),
        "position": workload - job * size.workloads // size.jobs,
        "workload_hash": workload_hash(workload),
        "name": f"fused_matmul_add_{workload}",
        "weight": 1 + workload % 12,
        "key": name("key", workload),
        "state": "succeeded",
        "answered_from": "search",
        "certificate_id": name("certificate", workload),
        "started_at": _time(job),
        "finished_at": _time(job),
        "trials": size.trials_of(workload),
        "failures": {"CRASH": int(size.trials_of(workload) * _FAILED)},
        "baseline_secs": 1e-3,
        "best_secs": 1e-5,
    }


def _trials(workload: int, size: Size, pool: list[tuple[bytes, bytes]]) -> Iterator[dict[str, Any]]:
    draw = random.Random(workload)
    job = _job_of(workload, size)
    machine, created_at = _machine_of(job).id, _time(job)
    for number in range(1, size.trials_of(workload) + 1):
        trace, features = draw.choice(pool)
        failed = number % round(1 / _FAILED) == 0
        origin = draw.choice(("random", "mutation", "mutation", "seed"))
        median = 1e-5 * (1 + 30 * draw.random())
        samples = None if failed else [median * draw.gauss(1.0, 0.01) for _ in range(5)]
        ended = created_at.timestamp() + number * 0.2
        spans = [
            ["propose", "search", round(ended - 1.3, 4), round(ended - 1.2, 4)],
            ["build", f"node-7/builder {number % 16}", round(ended - 0.9, 4), round(ended - 0.4, 4)],
            ["measure", "node-7/cpu", round(ended - 0.2, 4), round(ended, 4)],
        ]
        yield {
            "id": name(f"trial {workload}", number),
            "task_id": name("task", workload),
            "workload_hash": workload_hash(workload),
            "device_class_id": machine,
            "number": number,
            "origin": origin,
            "candidate_hash": name("candidate", number) + name("hash", number),
            "trace": trace,
            "state": "failed" if failed else "measured",
            "lease_token": None,
            "run_secs": samples,
            "median": None if failed else median,
            "failure_stage": "run" if failed else None,
            "failure_kind": "CRASH" if failed else None,
            "failure_message": "the program died by signal 11" if failed else None,
            "predicted": draw.random(),
            "parent": name("candidate", number - 1) + name("hash", number - 1) if origin == "mutation" else None,
            "worker": "node-7/cpu",
            "sandbox": "namespaces",
            "seed": 0,
            "features": features,
            "tvm_version": TVM_VERSION,
            "codegen_version": 1,
            "created_at": created_at + timedelta(seconds=number // 64),
            "finished_at": created_at + timedelta(seconds=number * 0.2),
            "spans": spans,
        }


def _event(workload: int, trial: dict[str, Any], size: Size) -> dict[str, Any]:
    facts = {"type": "trial", "data": {"id": trial["id"]}, "created_at": trial["finished_at"]}
    return {"job_id": job_id(_job_of(workload, size)), **facts}


def _evidence(workload: int, size: Size) -> tuple[dict[str, Any], dict[str, Any]]:
    job = _job_of(workload, size)
    samples = [1e-5 * random.Random(workload).gauss(1.0, 0.01) for _ in range(15)]
    best = sorted(samples)[7]
    shared = {
        "workload_hash": workload_hash(workload),
        "device_class_id": _machine_of(job).id,
        "baseline_median": 1e-3,
        "best_median": best,
        "created_at": _time(job),
    }
    certificate = shared | {
        "id": name("certificate", workload),
        "space_hash": space_hash(None),
        "trial_id": name(f"trial {workload}", 1),
        "inputs": "made up",
        "rtol": 1e-3,
        "atol": 1e-3,
        "max_abs_error": 0.0,
        "max_rel_error": 0.0,
        "baseline_run_secs": [1e-3] * len(samples),
        "best_run_secs": samples,
        "contenders": 24,
        "rejected": {},
        "budget_trials": 100,
        "search_secs": 12.0,
        "at_plateau": False,
        "sandbox": "none",
        "conditions": "made up",
    }
    row = shared | {
        "certificate_id": name("certificate", workload),
        "name": f"fused_matmul_add_{workload}",
        "op": "matmul",
        "text": f"fused_matmul_add_{workload} matmul",
        "speedup": 1e-3 / best,
        "spread": spread(samples),
        "peak_share": None,
    }
    return certificate, row


def _time(number: int) -> datetime:
    return _START + timedelta(seconds=number)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.database.seed")
    parser.add_argument("url")
    parser.add_argument("--trials", type=int, default=TRIALS)
    return parser


def main() -> None:
    options = parser().parse_args()
    seed(options.url, Size(trials=options.trials))


if __name__ == "__main__":
    main()
