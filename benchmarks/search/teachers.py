"""The experience of arms W and X: a real tuning database, filled by tuning workloads that no arm is asked for.

Every family of the comparison has relatives here, at other shapes. W may learn from all of them; X only from those of
other families. Neither holds a row of the workload that is tuned.
"""

from __future__ import annotations

import random
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

import tvm

from benchmarks.search.run_record import ROOT
from benchmarks.search.workloads import WORKLOADS, product, suite
from db import Database, migrate
from db.inputs import NewJob
from db.states import JobState
from db.views import JobView
from loopwright.codegen.schedule import apply_trace_json
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from loopwright.codegen.versions import TVM_VERSION
from service.ledger import DatabaseLedger
from tuner.cost_model.features import from_bytes
from tuner.cost_model.model import Sample, train_base
from tuner.search.individual import Individual
from tuner.space.builtin import builtin_space
from tuner.tune import TuneRequest, tune
from tuner.types import DeviceClass, Measured, Origin, TaskSpec, Trial
from tuner.workload import make_workload
from workers.fleet import RayFleet
from workers.walled_search import WalledSearch, search_child
from workers.walls.levels import Policy, choose

DATABASE = f"sqlite:///{ROOT / 'benchmarks' / 'search' / 'teachers.db'}"
TRIALS = 96

Lesson = tuple[Individual, float | None]
"""A program, and its latency in seconds; None where it failed."""

TEACHERS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    "MM-256": lambda: product(256, 256, 256),
    "MM-768": lambda: product(768, 768, 768),
    "MM-odd": lambda: product(383, 211, 97),
    **{f"{name}-{i}": suite(name, i) for name in ("GMM", "C1D", "C2D", "DEP", "GRP", "T2D") for i in (2, 3)},
    **{f"{name}-{i}": suite(name, i) for name in ("NRM", "SFM") for i in (0, 2)},
}


def teach(url: str, device_class: DeviceClass, builders: Mapping[str, int], measurer: str) -> None:
    """Tune every teacher that the database does not hold yet, each cold: what one learned must not help the next."""
    migrate.upgrade(url)
    database = Database(url)
    fleet = RayFleet(device_class.target_json, builders, {measurer: "local"})
    child = search_child(choose(Policy.PREFER))
    taught = {job.name for job in database.jobs.page(page_size=200).items if _has_taught(job, device_class)}
    for name, make in TEACHERS.items():
        if name in taught:
            continue
        started = time.monotonic()
        spec = TaskSpec(make_workload(make(), name), 1)
        new = NewJob(name=name, module_json=spec.workload.module_json, device_class=device_class, max_trials=TRIALS)
        database.jobs.create(new, [spec], TVM_VERSION)
        claimed = database.jobs.claim("benchmark", 600.0)
        assert claimed is not None
        tasks = database.tasks.of_job(claimed.job.id)
        assert database.tasks.try_start(tasks[0].id, claimed.lease_token)
        ledger = DatabaseLedger(database, claimed, tasks, TRIALS)
        tuning = TuneRequest([spec], device_class.target_json, None, TRIALS, None, 1)
        with closing(WalledSearch(child, tuning)) as search:
            tune(tuning, search, fleet, ledger)
        database.jobs.finish(claimed.job.id, claimed.lease_token, JobState.SUCCEEDED)
        print(f"teacher {name}: {time.monotonic() - started:.0f} s", flush=True)
    child.close()
    database.close()


def _has_taught(job: JobView, device_class: DeviceClass) -> bool:
    return job.state == "succeeded" and job.device_class_id == device_class.id


def experience(url: str, workload: str, device_class: DeviceClass, own_family: bool) -> tuple[tuple[str, ...], bytes]:
    """Return traces of relatives and the base model for a workload of the comparison.

    Args:
        own_family: Whether other workloads of the workload's family are used.
    """
    database = Database(url)
    here = make_workload(WORKLOADS[workload](), workload)
    database.workloads.put([here], TVM_VERSION)
    families = {view.hash: view.family for view in database.workloads.page(page_size=200).items}
    samples = [
        Sample(sample.workload_hash, from_bytes(sample.features), sample.median)
        for sample in database.cost_models.samples(device_class.id, TVM_VERSION)
        if own_family or families[sample.workload_hash] != here.family
    ]
    assert here.hash not in {sample.group for sample in samples}
    relatives = [] if not own_family else database.trials.relatives(here.hash, device_class.id)
    database.close()
    return tuple(relatives), train_base(samples, seed=0)


def histories() -> dict[str, list[Trial]]:
    """Every teacher's trials, in the order in which they were proposed, without the baseline."""
    database = Database(DATABASE)
    found: dict[str, list[Trial]] = {}
    for job in reversed(database.jobs.page(page_size=200).items):
        if job.state == "succeeded":
            (task,) = database.tasks.of_job(job.id)
            found[job.name] = [t for t in database.trials.history(task.id) if t.candidate.trace_json is not None]
    database.close()
    return found


def lessons(target_json: str) -> dict[str, list[Lesson]]:
    """Return every teacher's trials as a search sees them."""
    target = target_from(target_json)
    found: dict[str, list[Lesson]] = {}
    for name, trials in histories().items():
        mod = module_from_json(make_workload(TEACHERS[name](), name).module_json)
        space = builtin_space(mod, target, 1)
        schedules = [
            apply_trace_json(mod, trial.candidate.trace_json) for trial in trials if trial.candidate.trace_json
        ]
        outcomes = [trial.outcome.median if isinstance(trial.outcome, Measured) else None for trial in trials]
        individuals = [Individual.of(space, schedule, Origin.RANDOM) for schedule in schedules]
        found[name] = list(zip(individuals, outcomes, strict=True))
    return found


def shuffle(source_url: str, copy_url: str) -> None:
    """Copy the database with its latencies shuffled within each workload: what looks fast is a lottery.

    Of programs that were drawn at random only: the others were tried because they looked good, which tells something,
    too.
    """
    source, copy = (Path(url.removeprefix("sqlite:///")) for url in (source_url, copy_url))
    copy.unlink(missing_ok=True)
    order = random.Random(0)
    with sqlite3.connect(source) as original, sqlite3.connect(copy) as shuffled:
        original.backup(shuffled)
        shuffled.execute("DELETE FROM trials WHERE origin NOT IN ('random', 'baseline')")
        rows = shuffled.execute("SELECT workload_hash, id, median FROM trials WHERE median IS NOT NULL ORDER BY id")
        trials: dict[str, list[tuple[str, float]]] = {}
        for workload, trial, median in rows.fetchall():
            trials.setdefault(workload, []).append((trial, median))
        for members in trials.values():
            medians = [median for _, median in members]
            order.shuffle(medians)
            pairs = [(median, trial) for (trial, _), median in zip(members, medians, strict=True)]
            shuffled.executemany("UPDATE trials SET median = ? WHERE id = ?", pairs)
