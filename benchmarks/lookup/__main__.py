"""Compiles one model against services that know few and many workloads, in turn.

.venv/bin/python -m benchmarks.lookup [--bests 10 100 …] [--repeats 15]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import os
import platform
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tvm
from tvm import relax

from benchmarks.leaderboard.__main__ import TOKEN, api
from benchmarks.leaderboard.seed import seed
from benchmarks.lookup.report import NAME, text
from benchmarks.results import write_raw
from db import Database, migrate
from db.inputs import NewJob
from db.states import AnsweredFrom, JobState
from loopwright import Client
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from loopwright.codegen.versions import TVM_VERSION
from tuner.space.builtin import builtin_space
from tuner.task import extract_tasks
from tuner.types import Certificate, DeviceClass, MeasureCandidate, Measured, Origin, SandboxLevel, TaskSpec

SIZES = (10, 1_000, 10_000)
FUNCTIONS = 10
TARGET = json.dumps({"kind": "llvm", "mcpu": "sapphirerapids", "num-cores": 16}, sort_keys=True)
"""One of the targets of the made-up bests: those of the model are among others of the same target."""
MACHINE = DeviceClass(TARGET, "GenuineIntel sapphirerapids, made up", ("made up",), 16, 16, "seeded")
PORT = 8090


def model() -> tvm.IRModule:
    """`FUNCTIONS` layers, each a product and a ReLU of its own size."""
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((16, 128), "float32"))
    weights = [relax.Var(f"w{i}", relax.TensorType((128 + 16 * i, 144 + 16 * i), "float32")) for i in range(FUNCTIONS)]
    with builder.function("main", [x, *weights]):
        with builder.dataflow():
            for weight in weights:
                x = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            out = builder.emit_output(x)
        builder.emit_func_output(out)
    return builder.get()


def certify(database: Database, mod: tvm.IRModule) -> None:
    """Store the model's tasks as a finished search does, each with a real trace of the built-in space."""
    target = target_from(TARGET)
    tasks = list(extract_tasks(mod, target).tasks)
    assert len(tasks) == FUNCTIONS
    job = NewJob("model", module_to_json(mod), MACHINE, max_trials=64)
    database.jobs.create(job, tasks, TVM_VERSION)
    claimed = database.jobs.claim("benchmark", 600)
    assert claimed is not None
    for task, spec in zip(database.tasks.of_job(claimed.job.id), tasks, strict=True):
        assert database.tasks.try_start(task.id, claimed.lease_token)
        candidates = [MeasureCandidate(None, Origin.BASELINE), MeasureCandidate(trace(spec), Origin.RANDOM)]
        baseline, best = database.trials.propose(task.id, claimed.lease_token, candidates)
        for trial, seconds in ((baseline, 1e-3), (best, 1e-4)):
            database.trials.finish(trial.id, claimed.lease_token, Measured((seconds,) * 5, "made up"))
        evidence = Certificate(
            *(best.candidate.hash, "made up", 0.0, 0.0, 0.0, 0.0, (1e-4,) * 15, (1e-3,) * 15, 2),
            sandbox=SandboxLevel.NONE,
            system="made up",
        )
        stored = database.certificates.store(task.id, claimed.lease_token, evidence, 64)
        database.tasks.answer(task.id, claimed.lease_token, stored.id, AnsweredFrom.SEARCH)
    database.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)


def trace(spec: TaskSpec) -> str:
    """The trace of one program of the built-in space."""
    space = builtin_space(module_from_json(spec.workload.module_json), target_from(TARGET), 1)
    schedules = (space.replay(trace, seed) for seed in range(1, 1000) for trace in space.traces)
    return next(trace_to_json(schedule.trace) for schedule in schedules if schedule is not None)


@dataclass
class Arm:
    """A service that knows so many bests, and what compiling against it took, in seconds."""

    bests: int
    database: Database
    client: Client
    requests: list[float] = field(default_factory=list)
    """Seconds of each request, its answer included."""
    compiles: list[float] = field(default_factory=list)

    def compile(self, mod: tvm.IRModule) -> None:
        # The service takes a worker that it has not seen for half a minute for gone.
        self.database.workers.register(
            "made up", host="made up", device="cpu", device_class=MACHINE, builders=1, sandbox=SandboxLevel.NONE
        )
        before = len(self.requests)
        started = time.perf_counter()
        self.client.compile(mod)
        self.compiles.append(time.perf_counter() - started)
        report = self.client.last_report
        assert report is not None
        assert [function.outcome for function in report.functions] == ["tuned"] * FUNCTIONS, str(report)
        assert len(self.requests) == before + 1, f"{len(self.requests) - before} requests instead of one"


@contextlib.contextmanager
def arm(bests: int, port: int, mod: tvm.IRModule) -> Iterator[Arm]:
    """A database with so many bests, the model's own last, and the service's API process over it."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="loopwright-bench-")))
        url = f"sqlite:///{folder / 'lookup.db'}"
        migrate.upgrade(url)
        if bests > FUNCTIONS:
            seed(url, bests - FUNCTIONS)
        database = Database(url)
        stack.callback(database.close)
        certify(database, mod)
        http = stack.enter_context(api(url, port, folder))
        client = stack.enter_context(Client(str(http.base_url), TOKEN))
        made = Arm(bests, database, client)
        send = client._transport.request

        def timed(*arguments: Any, **options: Any) -> Any:
            started = time.perf_counter()
            answer = send(*arguments, **options)
            made.requests.append(time.perf_counter() - started)
            return answer

        client._transport.request = timed  # type: ignore[method-assign]
        yield made


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.lookup", description=__doc__)
    parser.add_argument("--bests", type=int, nargs="+", default=list(SIZES), help="sizes of the databases")
    parser.add_argument("--repeats", type=int, default=15, help="counted compilations for each database")
    return parser


def main() -> None:
    options = parser().parse_args()
    logging.getLogger("loopwright").setLevel(logging.WARNING)
    load, mod = os.getloadavg()[0], model()
    with contextlib.ExitStack() as stack:
        arms = [stack.enter_context(arm(bests, PORT + i, mod)) for i, bests in enumerate(options.bests)]
        for number in range(options.repeats + 1):
            for each in arms if number % 2 else reversed(arms):
                each.compile(mod)
    databases = [
        # The first compilation fills the caches of client, service and database.
        {"bests": each.bests, "compile_seconds": each.compiles[1:], "request_seconds": each.requests[1:]}
        for each in arms
    ]
    found = {
        "machine": f"{platform.machine()} with {os.cpu_count()} cores",
        "load": load,
        "functions": FUNCTIONS,
        "databases": databases,
    }
    print(text(found))
    print(write_raw(NAME, found))


if __name__ == "__main__":
    main()
