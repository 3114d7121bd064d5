"""A fleet of one machine, played: a test writes to the database what a controller and its workers would."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

from db import Database
from db.inputs import WorkerReport
from db.views import Peaks
from loopwright.codegen.kinds import (
    AnsweredFrom,
    FailureKind,
    JobState,
    Lane,
    Origin,
    SandboxLevel,
    Stage,
    ThrottleReason,
)
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import canonical_target, target_from
from tuner.space.builtin import builtin_space
from tuner.types import (
    BASELINE,
    Activity,
    CacheRate,
    Certificate,
    DeviceClass,
    DeviceState,
    Failure,
    MeasureCandidate,
    Measured,
    Span,
)

TARGET = canonical_target(target_from({"kind": "llvm", "mcpu": "haswell", "num-cores": 2}))
MACHINE = DeviceClass(TARGET, "GenuineIntel haswell 0001", ("avx2",), 2, 2, "tvm")
WORKER = "host/cpu"
SANDBOX = SandboxLevel.LANDLOCK
MEASURED_STATE = DeviceState(1980, 2619, 61, 412, (ThrottleReason.POWER_CAP,))
"""As of a GPU, so that a reader can see it."""
RACED_STATE = DeviceState(celsius=74, throttled=())
_IDLE = Activity()
CACHES = (CacheRate("L1", 2**16, 4e11), CacheRate("L2", 2**21, 2e11))
ROUNDS = 5
"""Batches of four trials that the played search proposes."""


def join(database: Database, activity: Activity = _IDLE) -> None:
    """Register the worker, or say that it is still alive."""
    machine: dict[str, Any] = {"host": "host", "device": "cpu", "device_class": MACHINE, "builders": 2}
    database.workers.register(WorkerReport(WORKER, **machine, sandbox=SANDBOX, activity=activity))


def play(database: Database, job_id: str) -> None:
    """Carry the job out: a baseline, `ROUNDS` of real candidates, a certificate, and the machine's peaks."""
    claimed = database.jobs.claim("test", 60)
    assert claimed is not None
    assert claimed.job.id == job_id
    token = claimed.lease_token
    for task in database.tasks.of_job(job_id):
        assert database.tasks.try_start(task.id, token)
        mod = module_from_json(database.workloads.get(task.workload_hash).module_json)
        space = builtin_space(mod, target_from(TARGET), 1)
        schedules = (space.replay(space.traces[0], seed) for seed in range(1, 1000))
        found_traces = (trace_to_json(schedule.trace) for schedule in schedules if schedule is not None)
        traces = iter(dict.fromkeys(itertools.islice(found_traces, 8 * ROUNDS)))
        found = [(BASELINE, 1e-3)]
        _finish(database, task.id, token, found, None)
        for number in range(ROUNDS):
            batch = [
                (MeasureCandidate(next(traces), Origin.RANDOM, -float(place)), 1e-4 * (1 + place + number))
                for place in range(4)
            ]
            _finish(database, task.id, token, batch, Span(Lane.PROPOSE, "search", number, number + 0.5))
            found += batch
        best, latency = min(found, key=lambda each: each[1])
        wrong = Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs by up to 0.5")
        certificate = Certificate(
            best.hash,
            "2 sets",
            1e-3,
            1e-3,
            0.0,
            0.0,
            (latency,) * 5,
            (1e-3,) * 5,
            contenders=3,
            rejected={found[-1][0].hash: wrong},
            sandbox=SANDBOX,
            system="Linux 6.1",
            device_state=RACED_STATE,
        )
        stored = database.certificates.store(task.id, token, certificate, claimed.job.budget.max_trials)
        database.tasks.answer(task.id, token, stored.id, AnsweredFrom.SEARCH)
    assert database.jobs.finish(job_id, token, JobState.SUCCEEDED)
    finished_at = database.jobs.get(job_id).finished_at
    assert finished_at is not None
    database.devices.put_peaks(MACHINE, Peaks("float32", 4e9, 1e10, finished_at, CACHES))


def _finish(
    database: Database, task_id: str, token: str, batch: list[tuple[MeasureCandidate, float]], searched: Span | None
) -> None:
    trials = database.trials.propose(task_id, token, [candidate for candidate, _ in batch], 0, searched)
    for trial, (_, latency) in zip(trials, batch, strict=True):
        spans = (Span(Lane.BUILD, "host/builder 0", 1.0, 2.0), Span(Lane.MEASURE, WORKER, 2.0, 3.0))
        samples = tuple(latency * factor for factor in (0.99, 1.0, 1.01))
        assert statistics.median(samples) == latency
        assert database.trials.finish(trial.id, token, Measured(samples, WORKER, spans, SANDBOX, MEASURED_STATE))
