"""The experience of a warm search: a real tuning database, filled by tuning workloads that no arm is asked for.

Every family of the comparison has relatives here, at other shapes. It has no row of the workload that is tuned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import closing

import tvm

from benchmarks.code import ROOT
from benchmarks.search.workloads import WORKLOADS, product, suite
from db import Database, migrate
from db.inputs import NewJob
from db.states import JobState
from db.views import JobView
from loopwright.codegen.versions import TVM_VERSION
from service.ledger import DatabaseLedger
from tuner.cost_model.features import from_bytes
from tuner.cost_model.model import Sample, train_base
from tuner.tune import TuneRequest, tune
from tuner.types import DeviceClass, TaskSpec
from tuner.workload import make_workload
from workers.fleet import RayFleet
from workers.walled_search import WalledSearch, search_child
from workers.walls.levels import Policy, choose

DATABASE = f"sqlite:///{ROOT / 'benchmarks' / 'search' / 'teachers.db'}"
TRIALS = 96

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


def experience(url: str, workload: str, device_class: DeviceClass) -> tuple[tuple[str, ...], bytes]:
    """Return traces of relatives and the base model for a workload of the comparison."""
    with closing(Database(url)) as database:
        here = make_workload(WORKLOADS[workload](), workload)
        database.workloads.put([here], TVM_VERSION)
        samples = [
            Sample(sample.workload_hash, from_bytes(sample.features), sample.median)
            for sample in database.cost_models.samples(device_class.id, TVM_VERSION)
        ]
        assert here.hash not in {sample.group for sample in samples}
        relatives = database.trials.relatives(here.hash, device_class.id)
    return tuple(relatives), train_base(samples, seed=0)
