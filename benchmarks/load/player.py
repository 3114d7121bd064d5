"""Running jobs, played: writes to the database what controllers and their workers would, until its input ends.

    python -m benchmarks.load.player PLAN.json < PIPE

Prints one line of JSON with the ids of the jobs when they are running and have some trials.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import tvm
from tvm import relax

from benchmarks.load import parts
from benchmarks.search.workloads import product
from db import Database
from db.inputs import NewJob, WorkerReport
from loopwright.codegen.kinds import FailureKind, Lane, Origin, SandboxLevel, Stage
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from loopwright.codegen.versions import TVM_VERSION
from tuner.budget import Budget
from tuner.space.builtin import builtin_space
from tuner.task import extract_tasks
from tuner.types import BASELINE, Activity, DeviceClass, Failure, MeasureCandidate, Measured, Outcome, Span
from tuner.workload import make_workload

LAYERS = 5
"""Tasks of a job."""
BATCH = 4
"""Trials that a measurer takes at a time."""
HISTORY = 100
"""Trials of each job before it counts."""
MAX_TRIALS = 1000
HEARTBEAT_SECONDS = 10.0
CHECKS = 30
"""Timings of its reference kernel that each worker has already."""
WORKERS = 8
_TRACES = 600
_LEASE_SECONDS = 3600.0
_FAILING = 0.1
"""Share of trials that fail. Not tuned."""


@dataclass(frozen=True, slots=True)
class Plan:
    """``rate``: trials a second of each job."""

    database_url: str
    device_class_id: str
    users: list[str]
    jobs: int
    rate: float


def model(number: int) -> tvm.IRModule:
    """Return `LAYERS` products, each of a shape of its own."""
    builder = relax.BlockBuilder()
    widths = [64 + number * (LAYERS + 1) + layer for layer in range(LAYERS + 1)]
    x = relax.Var("x", relax.TensorType((16, widths[0]), "float32"))
    weights = [
        relax.Var(f"w{layer}", relax.TensorType((widths[layer], widths[layer + 1]), "float32"))
        for layer in range(LAYERS)
    ]
    with builder.function("main", [x, *weights]):
        with builder.dataflow():
            for weight in weights:
                x = builder.emit(relax.op.nn.relu(relax.op.matmul(x, weight)))
            out = builder.emit_output(x)
        builder.emit_func_output(out)
    return builder.get()


def traces(target_json: str, count: int) -> list[str]:
    """Return so many traces, all of one length: a real one with its last decision changed. Nobody replays them here."""
    workload = make_workload(product(128, 128, 128), "product")
    space = builtin_space(module_from_json(workload.module_json), target_from(target_json), 1)
    schedules = (space.replay(trace, seed) for seed in range(1, 100) for trace in space.traces)
    real = next(trace_to_json(schedule.trace) for schedule in schedules if schedule is not None)
    instructions, decisions = json.loads(real)
    return [json.dumps([instructions, [*decisions[:-1], [decisions[-1][0], number]]]) for number in range(count)]


class PlayedJob:
    """A job under a lease, whose tasks take turns."""

    def __init__(self, database: Database, device_class: DeviceClass, user: str, number: int, pool: list[str]) -> None:
        self._db = database
        self._draw = random.Random(number)
        mod = model(number)
        tasks = list(extract_tasks(mod, target_from(device_class.target_json)).tasks)
        new = NewJob(f"played {number}", module_to_json(mod), device_class, Budget(MAX_TRIALS), user_name=user)
        self.id = database.jobs.create(new, tasks, TVM_VERSION).id
        claimed = database.jobs.claim("benchmark", _LEASE_SECONDS)
        assert claimed is not None
        assert claimed.job.id == self.id
        self._token = claimed.lease_token
        self._unused: dict[str, Iterator[str]] = {}
        for task in database.tasks.of_job(self.id):
            assert database.tasks.try_start(task.id, self._token)
            self._finish(task.id, [BASELINE])
            self._unused[task.id] = iter(self._draw.sample(pool, len(pool)))
        self._turns = itertools.cycle(self._unused)

    def play(self) -> None:
        """Propose a batch of the next task and measure it in no time."""
        task_id = next(self._turns)
        drawn = itertools.islice(self._unused[task_id], BATCH)
        batch = [MeasureCandidate(trace, Origin.MUTATION, self._draw.random()) for trace in drawn]
        self._finish(task_id, batch)

    def _finish(self, task_id: str, batch: list[MeasureCandidate]) -> None:
        now = time.time()
        searched = Span(Lane.PROPOSE, "search", now - 1.5, now - 1.0)
        for trial in self._db.trials.propose(task_id, self._token, batch, 0, searched):
            self._db.trials.finish(trial.id, self._token, self._outcome(trial.candidate, now))

    def _outcome(self, candidate: MeasureCandidate, now: float) -> Outcome:
        worker = f"host{self._draw.randrange(WORKERS)}/cpu"
        spans = (
            Span(Lane.BUILD, worker.replace("cpu", "builder 0"), now - 1.0, now - 0.5),
            Span(Lane.MEASURE, worker, now - 0.5, now),
        )
        if candidate.trace_json is not None and self._draw.random() < _FAILING:
            return Failure(Stage.BUILD, FailureKind.COMPILE, "a message of the compiler", worker, spans)
        samples = tuple(1e-4 * self._draw.lognormvariate(0.5, 0.5) for _ in range(5))
        return Measured(samples, worker, spans, SandboxLevel.NAMESPACES)


def join(database: Database, device_class: DeviceClass) -> None:
    """Register the workers, or say that they are still alive."""
    activity = Activity(builders_busy=4, slot_use=0.9)
    names = [f"host{number}" for number in range(WORKERS)]
    database.workers.register(
        *(
            WorkerReport(
                f"{name}/cpu", name, "cpu", device_class, 8, sandbox=SandboxLevel.NAMESPACES, activity=activity
            )
            for name in names
        )
    )


def play(plan: Plan) -> None:
    database = Database(plan.database_url)
    device_class = database.devices.get(plan.device_class_id)
    join(database, device_class)
    for number, check in itertools.product(range(WORKERS), range(CHECKS)):
        database.workers.add_check(f"host{number}/cpu", 1e-3 * (1 + 0.001 * check))
    pool = traces(device_class.target_json, _TRACES)
    users = itertools.cycle(plan.users)
    jobs = [PlayedJob(database, device_class, next(users), number, pool) for number in range(plan.jobs)]
    for job in jobs:
        for _ in range(HISTORY // BATCH):
            job.play()
    print(json.dumps({"jobs": [job.id for job in jobs]}), flush=True)
    ended = threading.Event()
    threading.Thread(target=_await_end, args=[ended], daemon=True).start()
    beat = 0.0
    turns = itertools.cycle(jobs)
    due = time.monotonic()
    while not ended.wait(max(0.0, due - time.monotonic())):
        next(turns).play()
        due += BATCH / (plan.rate * plan.jobs)
        if time.monotonic() > beat + HEARTBEAT_SECONDS:
            beat = time.monotonic()
            join(database, device_class)


def _await_end(ended: threading.Event) -> None:
    sys.stdin.read()
    ended.set()


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        play(parts.plan(Plan))
