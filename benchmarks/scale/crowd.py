"""Many jobs with real searches and a real ledger: how many simulated devices the cores of a controller serve."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import psutil

from benchmarks.scale.devices import DeviceFleet, Devices
from benchmarks.search.workloads import product
from db import Database, migrate
from db.inputs import NewJob
from db.views import ClaimedJob
from loopwright.codegen.target import canonical_target, target_from
from loopwright.codegen.versions import TVM_VERSION
from service.controller.ledger import DatabaseLedger
from tuner.budget import Budget
from tuner.search.request import TuneRequest
from tuner.tune import tune
from tuner.types import DeviceClass, TaskSpec
from tuner.workload import make_workload
from workers.child.search_children import SearchChildren
from workers.child.walled_search import WalledSearch
from workers.walls.levels import Policy, choose

_LEASE_SECONDS = 36_000.0
_MAX_TRIALS = 100_000
"""More than a run makes: jobs last until the end of the benchmark."""
_SETTLE_SECONDS = 10.0
"""After a change of the devices, before it counts."""
_MACHINE = DeviceClass(
    canonical_target(target_from({"kind": "llvm", "mcpu": "x86-64-v3", "num-cores": 2})),
    "simulated",
    (),
    2,
    2,
    "simulated",
)


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    trials: int
    search: float
    """CPU seconds of the children that search."""
    rest: float
    """CPU seconds of this process: loops, ledger, and a database that is a file."""


class Crowd:
    """So many ``jobs``, each with a function of its own, in threads as a controller has them."""

    def __init__(self, url: str, jobs: int, devices: Devices) -> None:
        migrate.upgrade(url)
        self._db = Database(url)
        self._devices = devices
        self._searches = SearchChildren(choose(Policy.PREFER))
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=self._job(number)) for number in range(jobs)]

    def __enter__(self) -> Crowd:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for view in self._db.jobs.page(page_size=500).items:
            self._db.jobs.request_cancel(view.id)
        for thread in self._threads:
            thread.join()
        self._db.close()

    def wait_until_all_search(self) -> None:
        """Return when each job has proposed with its cost model, as it does most of the time."""
        while any(view.trials < 4 * DeviceFleet.slots for view in self._tasks()):
            time.sleep(1.0)

    def measured(self, counts: Sequence[int], seconds: float) -> list[dict[str, Any]]:
        """Return what so many devices see, one count after the other, each for so long."""
        found = []
        for count in counts:
            self._devices.resize(count)
            time.sleep(_SETTLE_SECONDS)
            before = self._read()
            time.sleep(seconds)
            after = self._read()
            trials, passed = after.trials - before.trials, after.at - before.at
            found.append(
                {
                    "devices": count,
                    "trials_per_s": trials / passed,
                    "busy": trials * self._devices.seconds / (passed * count),
                    "search_ms": 1e3 * (after.search - before.search) / trials,
                    "rest_ms": 1e3 * (after.rest - before.rest) / trials,
                    "cores": (after.search + after.rest - before.search - before.rest) / passed,
                }
            )
        return found

    def _tasks(self) -> list[Any]:
        return [task for job in self._db.jobs.page(page_size=500).items for task in self._db.tasks.of_job(job.id)]

    def _read(self) -> _Reading:
        trials = sum(view.trials for view in self._tasks())
        me = psutil.Process()
        spent = me.cpu_times()
        search = 0.0
        for child in me.children(recursive=True):
            times = child.cpu_times()
            search += times.user + times.system
        return _Reading(time.monotonic(), trials, search, spent.user + spent.system)

    def _job(self, number: int) -> tuple[ClaimedJob, TaskSpec]:
        # Extents with many divisors, all different.
        workload = make_workload(product(64 + 16 * (number % 10), 96 + 16 * (number // 10), 128), "product")
        spec = TaskSpec(workload, 1)
        new = NewJob(f"job {number}", workload.module_json, _MACHINE, Budget(_MAX_TRIALS), seed=number)
        self._db.jobs.create(new, [spec], TVM_VERSION)
        claimed = self._db.jobs.claim("benchmark", _LEASE_SECONDS)
        assert claimed is not None
        return claimed, spec

    def _run(self, claimed: ClaimedJob, spec: TaskSpec) -> None:
        tasks = self._db.tasks.of_job(claimed.job.id)
        assert self._db.tasks.try_start(tasks[0].id, claimed.lease_token)
        request = TuneRequest([spec], _MACHINE.target_json, None, Budget(_MAX_TRIALS), claimed.job.seed)
        ledger = DatabaseLedger(self._db, claimed, tasks, _MAX_TRIALS)
        with self._searches.one() as child, closing(WalledSearch(child, request)) as search:
            tune(request, search, DeviceFleet(self._devices), ledger)
