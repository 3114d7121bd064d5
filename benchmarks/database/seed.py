"""A database full of jobs, trials and certificates, made up but of one piece."""

from __future__ import annotations

import functools
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import sqlalchemy as sa
import tvm
from sqlalchemy import Connection, insert

from benchmarks import rows
from benchmarks.database.made_up import (
    TARGET,
    TVM_VERSION,
    Size,
    another_device_class,
    device_class,
    job_id,
    workload_hash,
)
from benchmarks.rows import filling, name
from db import models
from db.devices import target_id
from db.engine.compression import compress_trace
from db.workloads import log_size
from loopwright.codegen.serialization import module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import convolution_programs, rule_programs
from tests.support.programs import product_relu
from tuner.cost_model.features import extract, to_bytes
from tuner.space.builtin import builtin_space
from tuner.types import DeviceClass

_WORKLOADS_A_CHUNK = 100
_FAILED = 0.05
_SPACE = {"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 16}
_PER_SKETCH = 6
"""Traces and features of other functions than those of the dictionary of traces."""
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
    pool = [(compress_trace(trace), features) for trace, features in candidates()]
    with filling(database_url) as engine:
        with engine.begin() as connection:
            _fill(connection, size)
        for first in range(0, size.workloads, _WORKLOADS_A_CHUNK):
            numbers = range(first, min(first + _WORKLOADS_A_CHUNK, size.workloads))
            trials = {number: list(_trials(number, size, pool)) for number in numbers}
            events = [_event(number, row, size) for number, made in trials.items() for row in made]
            certificates, bests = zip(*(_evidence(number, size) for number in numbers), strict=True)
            with engine.begin() as connection:
                connection.execute(insert(_TRIALS), [row for made in trials.values() for row in made])
                connection.execute(insert(models.Event), events)
                connection.execute(insert(models.Certificate), certificates)
                connection.execute(insert(models.Best), bests)


def _fill(connection: Connection, size: Size) -> None:
    """Insert what is there before the trials."""
    connection.execute(insert(models.Target), {"id": target_id(TARGET), "json": TARGET, "kind": "llvm"})
    for machine in (device_class(), another_device_class()):
        rows.device_class(connection, machine)
        made = size.trials // 10 * (9 if machine == device_class() else 1)
        counts = {"device_class_id": machine.id, "tvm_version": TVM_VERSION}
        for outcome, share in (("measured", 1 - _FAILED), ("CRASH", _FAILED)):
            trials = int(made * share)
            connection.execute(
                insert(models.TrialCount), {**counts, "outcome": outcome, "trials": trials, "samples": trials}
            )
    connection.execute(insert(models.Workload), [_workload(number, size) for number in range(size.workloads)])
    connection.execute(insert(models.Job), [_job(number, size) for number in range(size.jobs + size.old_jobs)])
    connection.execute(insert(models.Task), [_task(number, size) for number in range(size.workloads)])


@functools.cache
def _module(number: int) -> str:
    """Return a product as TVM's JSON."""
    return module_to_json(rule_programs.product(16 + number, 64, 64))


def _workload(number: int, size: Size) -> dict[str, Any]:
    draw = random.Random(number)
    height, width, depth = (2 ** draw.randint(4, 11) + draw.randint(0, 15) for _ in range(3))
    shapes = [[height, depth], [depth, width], [height, width]]
    family = 0 if number < size.family else 1 + (number - size.family) // 20
    return {
        "hash": workload_hash(number),
        "family": name("family", family),
        "name": f"fused_matmul_add_{number}",
        "module_json": _module(number % 64),
        "script": product_relu(64),
        "args": [[shape, "float32", "any"] for shape in shapes],
        "log_size": log_size(shapes),
        "op": "matmul",
        "compute_dtype": "float32",
        "flop": 2.0 * height * width * depth,
        "tvm_version": TVM_VERSION,
        "shared": True,
        "created_at": _time(number),
    }


def _job_of(workload: int, size: Size) -> int:
    return workload * size.jobs // size.workloads


def _machine_of(job: int) -> DeviceClass:
    return another_device_class() if job % 10 == 9 else device_class()


def _job(number: int, size: Size) -> dict[str, Any]:
    made = size.trials // size.jobs if number < size.jobs else 0
    module_json = _module(number % 64) if made else "{}"
    more = {"module_json": module_json, "trials": made}
    return rows.job(job_id(number), f"model {number}", _machine_of(number), _time(number), **more)


def _task(workload: int, size: Size) -> dict[str, Any]:
    job, trials = _job_of(workload, size), size.trials_of(workload)
    return rows.task(
        _workload(workload, size),
        id=name("task", workload),
        job=job_id(job),
        certificate=name("certificate", workload),
        at=_time(job),
        position=workload - job * size.workloads // size.jobs,
        weight=1 + workload % 12,
        trials=trials,
        failures={"CRASH": int(trials * _FAILED)},
        baseline_secs=1e-3,
        best_secs=1e-5,
    )


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
    return rows.evidence(
        _workload(workload, size),
        certificate=name("certificate", workload),
        trial=name(f"trial {workload}", 1),
        machine=_machine_of(job),
        samples=samples,
        baseline=1e-3,
        best=sorted(samples)[7],
        at=_time(job),
        peak_share=None,
        contenders=24,
        budget_trials=100,
    )


def _time(number: int) -> datetime:
    return _START + timedelta(seconds=number)


def candidates() -> Iterator[tuple[str, bytes]]:
    """Yield the trace of each candidate, as JSON, and its features as they are stored."""
    target = target_from(_SPACE)
    for mod in _functions():
        space = builtin_space(mod, target, 7)
        for trace in space.traces:
            schedules = [space.replay(trace, 1000 + number) for number in range(_PER_SKETCH)]
            accepted = [schedule for schedule in schedules if schedule is not None]
            for schedule, features in zip(accepted, extract(space.context, accepted), strict=True):
                yield trace_to_json(schedule.trace), to_bytes(features)


def _functions() -> list[tvm.IRModule]:
    return [
        rule_programs.product(96, 320, 200),
        rule_programs.linear(24, 1024, 1024),
        rule_programs.batched(16, 96, 32, 96),
        rule_programs.softmax(12, 96, 96),
        rule_programs.layer_norm(64, 1024),
        rule_programs.log_softmax(32, 1000),
        rule_programs.silu(4, 96, 320),
        convolution_programs.conv_nhwc(14, 96, 48, 5),
        convolution_programs.conv_nchw(56, 24, 48, 3, 2),
        convolution_programs.depthwise_nchw(56, 48, 5, 2),
    ]
