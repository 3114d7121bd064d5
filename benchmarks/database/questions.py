"""What is asked of the database, and how long each answer takes, in the process that asks.

.venv/bin/python -m benchmarks.database.questions URL TRIALS

A process of its own, without TVM, as those of the service are: Python would look for garbage among TVM's objects.
"""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.database.made_up import HEAVY, TARGET, TVM_VERSION, Size, device_class, job_id, workload_hash
from benchmarks.spread import percentile
from db import Database
from db.inputs import NewJob
from db.results.best_schedules import BestScheduleQuery
from loopwright.codegen.kinds import JobState, Origin
from tuner.budget import Budget
from tuner.types import MeasureCandidate, Measured, TaskSpec, TensorInfo, Workload

_HOUR = 3600.0
_WRITERS = 16
_BATCH = 64


@dataclass(frozen=True, slots=True)
class Question:
    """``allowed_ms`` is for the 99th percentile of `repeats` answers."""

    name: str
    ask: Callable[[], object]
    allowed_ms: float
    repeats: int = 100


def questions(db: Database, size: Size) -> list[Question]:
    draw = random.Random(0)
    here = device_class().id
    workloads = [workload_hash(number) for number in draw.sample(range(size.workloads), 200)]
    jobs = [job_id(number) for number in draw.sample(range(1, size.jobs), 200)]
    some_workload, some_job = itertools.cycle(workloads), itertools.cycle(jobs)
    heavy, of_small_family = workload_hash(0), workload_hash(size.workloads - 25)
    models = [draw.sample(workloads, 30) for _ in range(50)]
    some_model = itertools.cycle(models)
    speedups = BestScheduleQuery(sort="speedup")
    return [
        Question("best of a workload", lambda: db.certificates.best(next(some_workload), here), 5, 500),
        Question("bests of a model of 30 functions", lambda: db.lookup.bests(next(some_model), TARGET), 20),
        Question("page of 50 bests", lambda: db.certificates.bests(), 30),
        Question("page of the leaderboard by speedup", lambda: db.best_schedules.page(speedups, offset=5000), 30),
        Question(
            "page of 50 jobs with their tasks", lambda: db.tasks.of_jobs([job.id for job in db.jobs.page(50).items]), 30
        ),
        Question("one job with its tasks", lambda: (db.jobs.get(id := next(some_job)), db.tasks.of_job(id)), 20),
        Question("totals of the overview", lambda: db.totals(), 30),
        Question("trials of the last hour", lambda: db.trials_within(_HOUR), 30),
        Question("counts of /metrics", db.counts, 20),
        Question("records by latency", lambda: db.records.page(sort="latency"), 50),
        Question(
            "records of a device class by latency", lambda: db.records.page(device_class_id=here, sort="latency"), 50
        ),
        Question("records of a workload by latency", lambda: db.records.page(workload_hash=heavy, sort="latency"), 50),
        Question("newest records", db.records.page, 50),
        Question("known traces of a workload", lambda: db.trials.known(next(some_workload), here), 20),
        Question(f"known traces of one with {HEAVY:,} trials", lambda: db.trials.known(heavy, here), 50),
        Question("relatives in the largest family", lambda: db.trials.relatives(heavy, here), 50, 30),
        Question("relatives in a family of 20", lambda: db.trials.relatives(of_small_family, here), 50),
        Question("whether a base model is due", lambda: db.cost_models.due(here, TVM_VERSION), 50),
        Question("samples of a base model", lambda: db.cost_models.samples(here, TVM_VERSION), 3000, 3),
        Question("page of 50 trials of a job", lambda: db.trials.page(next(some_job)), 30),
        Question("claim, nothing queued", lambda: db.jobs.claim("benchmark", 30.0), 5, 500),
    ]


def asked(question: Question) -> dict[str, float]:
    """Return the milliseconds of the answers, after one that does not count, and of the processor in this process."""
    question.ask()
    taken, began = [], time.process_time()
    for _ in range(question.repeats):
        started = time.perf_counter()
        question.ask()
        taken.append((time.perf_counter() - started) * 1e3)
    cpu = (time.process_time() - began) * 1e3 / question.repeats
    return {**spread(taken), "cpu_ms": cpu, "allowed_ms": question.allowed_ms}


def spread(taken: list[float]) -> dict[str, float]:
    return {"p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99), "max_ms": max(taken)}


def written(db: Database) -> dict[str, dict[str, float]]:
    """Return the milliseconds of what jobs write: a batch of proposals, an outcome, and outcomes of 16 jobs at once."""
    proposing, finishing = [], []
    runs = [_Run(db, number) for number in range(_WRITERS)]
    for run in runs:
        proposing.append(run.propose(_BATCH))
    for _ in range(_BATCH // 2):
        finishing.append(runs[0].finish())
    together: list[float] = []
    threads = [
        threading.Thread(target=lambda run=run: together.extend(run.finish() for _ in range(_BATCH // 2)))
        for run in runs
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for run in runs:
        run.end()
    return {
        f"propose {_BATCH} candidates": {**spread(proposing), "allowed_ms": 30},
        "finish a trial": {**spread(finishing), "allowed_ms": 20},
        f"finish a trial, {_WRITERS} at once": {**spread(together), "allowed_ms": 300},
    }


class _Run:
    """A job of one new workload, at work."""

    def __init__(self, db: Database, number: int) -> None:
        self._db = db
        args = (TensorInfo((64, 64 + number), "float32"),)
        workload = Workload(f"written-{number}", f"written-{number}", "written", "{}", "", args)
        new = NewJob(name="written", module_json="{}", device_class=device_class(), budget=Budget(_BATCH))
        self._job = db.jobs.create(new, [TaskSpec(workload, 1)], TVM_VERSION)
        claimed = db.jobs.claim("benchmark", 3600.0)
        assert claimed is not None
        self._claimed = claimed
        self._task = db.tasks.of_job(claimed.job.id)[0]
        db.tasks.try_start(self._task.id, claimed.lease_token)

    def propose(self, count: int) -> float:
        trace = self._db.records.page(page_size=1).items[0].trace_json
        candidates = [MeasureCandidate(f"{trace} {number}", Origin.RANDOM, 0.5) for number in range(count)]
        started = time.perf_counter()
        self._open = self._db.trials.propose(self._task.id, self._claimed.lease_token, candidates, seed=0)
        return (time.perf_counter() - started) * 1e3

    def finish(self) -> float:
        trial = self._open.pop()
        started = time.perf_counter()
        self._db.trials.finish(trial.id, self._claimed.lease_token, Measured((1e-3,) * 5, "node-7/cpu"))
        return (time.perf_counter() - started) * 1e3

    def end(self) -> None:
        self._db.jobs.finish(self._claimed.job.id, self._claimed.lease_token, JobState.CANCELLED)


def main() -> None:
    """Print the answers' milliseconds as JSON."""
    url, trials = sys.argv[1:]
    db = Database(url)
    size = Size.of(int(trials))
    answers = {question.name: asked(question) for question in questions(db, size)}
    print(json.dumps({"questions": answers, "writes": written(db)}))
    db.close()


if __name__ == "__main__":
    main()
