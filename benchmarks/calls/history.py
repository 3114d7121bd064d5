"""Calls whose cost could depend on what was tuned, on the size of the fleet, and on how many outcomes come at once.

.venv/bin/python -m benchmarks.calls.history URL SIZE

``SIZE`` is a JSON object with the fields of `benchmarks.database.made_up.Size`. Prints the figures as JSON.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.calls.meter import Figures, Meter
from benchmarks.database.made_up import HEAVY, TVM_VERSION, Size, another_device_class, device_class, workload_hash
from db import Database
from db.access.visibility import Viewer
from db.inputs import NewJob, WorkerReport
from db.results.best_schedules import BestScheduleQuery
from loopwright.codegen.kinds import JobState, Lane, Origin, SandboxLevel
from tuner.budget import Budget
from tuner.types import Activity, MeasureCandidate, Measured, Span, TaskSpec, TensorInfo, Workload

BATCHES = (1, 16, 64)
"""Outcomes that are stored in one transaction."""
_OUTCOMES = 512
WORKERS = 1_000
BEAT_SECONDS = 5.0
_DAYS = 90.0
_PREDICTIONS = 2_000


def reads(db: Database, meter: Meter, size: Size) -> dict[str, Figures]:
    """Return the figures of what is read of the history, for the owner and for a user with a private job."""
    draw = random.Random(0)
    here, heavy = device_class().id, workload_hash(0)
    relatives = [workload_hash(number) for number in draw.sample(range(size.family), 21)]
    mine = db.seen_by(Viewer("ada"))
    query = BestScheduleQuery(sort="speedup")
    half = size.workloads // 2
    asked: dict[str, tuple[Callable[[], object], int]] = {
        f"{_PREDICTIONS:,} predictions of a workload": (lambda: db.insight.predictions(heavy, here, _PREDICTIONS), 11),
        "page of 100 of the leaderboard": (lambda: db.best_schedules.page(query, limit=100), 51),
        "page of 100 of the leaderboard, a user": (lambda: mine.best_schedules.page(query, limit=100), 51),
        "page of 100 in its middle, a user": (lambda: mine.best_schedules.page(query, offset=half, limit=100), 51),
    }
    found = {f"relatives in a family of {size.family:,}": meter.measured(partial(_relatives, db, here), relatives)}
    return found | {name: meter.repeated(*each) for name, each in asked.items()}


def _relatives(db: Database, device_class_id: str, workload: str) -> None:
    db.trials.relatives(workload, device_class_id)


def heartbeats(db: Database, meter: Meter) -> Figures:
    """Return the figures of a heartbeat of `WORKERS` workers, as `service.fleet.watch` makes it."""
    activity = Activity(builders_busy=4, slot_use=0.9)
    sandbox, machine = SandboxLevel.NAMESPACES, device_class()
    reports = [
        WorkerReport(f"host-{number}/cpu", f"host-{number}", "cpu", machine, 8, sandbox, activity=activity)
        for number in range(WORKERS)
    ]

    def beat() -> None:
        db.workers.register(*reports)
        db.workers.missing(120.0, 3600.0)
        db.workers.drained()
        db.workers.checks_after(10**9)
        db.workers.standings()
        db.workers.lost(3600.0)

    return meter.repeated(beat, 21)


def outcomes(db: Database, meter: Meter, batch: int) -> Figures:
    """Return the figures of storing so many outcomes in one transaction, and how many a second that makes."""
    args = (TensorInfo((64, 64 + batch), "float32"),)
    workload = Workload(f"stored-{batch}", "stored", "stored", "{}", "", args)
    new = NewJob("stored", "{}", device_class(), Budget(_OUTCOMES), priority=9)
    job = db.jobs.create(new, [TaskSpec(workload, 1)], TVM_VERSION)
    claimed = db.jobs.claim("calls", 3600.0)
    assert claimed is not None
    [task] = db.tasks.of_job(job.id)
    db.tasks.try_start(task.id, claimed.lease_token)
    count = max(_OUTCOMES // 8, 8 * batch)
    candidates = [MeasureCandidate(f"[{number}]", Origin.RANDOM, 0.5) for number in range(count)]
    trials = db.trials.propose(task.id, claimed.lease_token, candidates, seed=0)
    span = (Span(Lane.MEASURE, "node-7/cpu", 0.0, 0.2),)
    batches = [
        {trial.id: Measured((1e-3,) * 5, "node-7/cpu", span) for trial in trials[first : first + batch]}
        for first in range(0, count, batch)
    ]
    started = time.perf_counter()
    found = meter.measured(lambda each: db.trials.finish_all(each, claimed.lease_token), batches)
    seconds = time.perf_counter() - started
    db.jobs.finish(job.id, claimed.lease_token, JobState.CANCELLED)
    return {**found, "per_s": count / seconds, "ms_an_outcome": found["cpu_ms"] / batch}


def prune(db: Database, meter: Meter) -> dict[str, Any]:
    """Return how long all old jobs take to be pruned, and how long it takes to find that nothing is left to prune."""
    samples = db.retention.samples()
    deleted: list[int] = []
    jobs = db.retention.old_jobs(_DAYS)
    first = meter.measured(lambda each: deleted.append(db.retention.prune(each, samples)), jobs)
    again = meter.measured(lambda each: db.retention.prune(each, samples), jobs)
    return {"jobs": len(jobs), "deleted": sum(deleted), "first": first, "again": again}


def main() -> None:
    url, size = sys.argv[1], Size(**json.loads(sys.argv[2]))
    db, meter = Database(url), Meter(url)
    db.jobs.create(
        NewJob("private", "{}", another_device_class(), Budget(8), user_name="ada", private=True),
        [TaskSpec(Workload("private", "private", "private", "{}", "", (TensorInfo((8,), "float32"),)), 1)],
        TVM_VERSION,
    )
    found = {
        "reads": reads(db, meter, size),
        "heartbeat": heartbeats(db, meter),
        "outcomes": {batch: outcomes(db, meter, batch) for batch in BATCHES},
        "prune": prune(db, meter),
        "heavy": HEAVY,
    }
    print(json.dumps(found))
    db.close()


if __name__ == "__main__":
    main()
