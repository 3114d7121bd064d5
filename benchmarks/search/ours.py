"""Loopwright's arms: its tuning loop on its own builders and measurer, in a process beside a running cluster.

    .venv/bin/python -m benchmarks.search.ours REQUEST.json

The file is a `Request` as JSON. The run's record goes into the request's folder.
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.alone import run_module, threads_of_tuner
from benchmarks.code import ROOT
from benchmarks.search.runs import Incumbent, Run
from benchmarks.search.teachers import experience
from benchmarks.search.workloads import WORKLOADS
from loopwright.comparing.child import peak_mb
from tuner.budget import Budget
from tuner.search.config import SearchConfig
from tuner.search.request import TuneRequest
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import tune
from tuner.types import DeviceClass, Measured, Outcome, TaskSpec, Trial
from tuner.workload import make_workload
from workers.child.walled_search import WalledSearch, search_child
from workers.ray.cluster import connect
from workers.ray.fleet import RayFleet
from workers.walls.levels import Policy, choose

NEVER = sys.maxsize
"""Trials until a model is ready that never is."""
Change = Callable[[SearchConfig], SearchConfig]


def random_only(config: SearchConfig) -> SearchConfig:
    """Never train a model, so that all proposals are drawn at random."""
    return replace(config, gp_warm_up=NEVER, ranking=replace(config.ranking, warm_up=NEVER))


def without_rules(config: SearchConfig) -> SearchConfig:
    """Search the space of TVM's own sketches."""
    return replace(config, rules=False)


VARIANTS: dict[str, Change] = {"R": random_only, "C": replace, "T": without_rules, "W": replace}
"""The arms of the comparison, as `benchmarks.search.run` describes them."""


@dataclass(frozen=True, slots=True)
class Request:
    """A run: ``arm`` is its name in the record, ``variant`` a key of the table above.

    ``address`` is the Ray cluster's, ``builders`` and ``measurer`` name its actors; ``teachers`` is the URL of the
    database of a warm variant.
    """

    arm: str
    variant: str
    workload: str
    seed: int
    machine: str
    trials: int
    folder: str
    device_class: DeviceClass
    address: str
    builders: Mapping[str, int]
    measurer: str
    teachers: str | None = None

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @staticmethod
    def read(path: Path) -> Request:
        fields: dict[str, Any] = json.loads(path.read_text())
        device_class = fields["device_class"]
        device_class["features"] = tuple(device_class["features"])
        return Request(**fields | {"device_class": DeviceClass(**device_class)})


def ask(request: Request, folder: Path, *, environment: Mapping[str, str] | None = None, root: Path = ROOT) -> None:
    """Run this module with the code of a checkout, in a process of its own. The record is the folder's JSON file."""
    path = folder / "request"
    request.write(path)
    threads = threads_of_tuner(request.device_class.threads)
    run_module("benchmarks.search.ours", [str(path)], environment={**(environment or {}), **threads}, root=root)


class ClockLedger(MemoryLedger):
    """Records in ``run`` when each outcome reaches the tuner."""

    def __init__(self, run: Run, started: float) -> None:
        super().__init__(1)
        self._run = run
        self._started = started

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        super().finish(*finished)
        for trial, outcome in finished:
            if trial.candidate.trace_json is not None:
                latency = outcome.median if isinstance(outcome, Measured) else None
                self._run.observe(time.monotonic() - self._started, latency, trial.candidate.trace_json)


def execute(request: Request) -> Run:
    """Tune the workload and return the record, whose last incumbent is the winner of the closing race."""
    connect(request.address, Path(request.folder), Policy.PREFER)
    run = Run(request.arm, request.workload, request.seed, request.machine)
    relatives: tuple[str, ...] = ()
    base: bytes | None = None
    if request.teachers is not None:  # the service has this ready when a job starts
        relatives, base = experience(request.teachers, request.workload, request.device_class)
    child = search_child(choose(Policy.PREFER))
    child.start()  # the service has this ready, too
    started = time.monotonic()
    target_json = request.device_class.target_json
    spec = TaskSpec(make_workload(WORKLOADS[request.workload](), request.workload), 1, relatives)
    fleet = RayFleet(target_json, request.builders, {request.measurer: "local"})
    ledger = ClockLedger(run, started)
    config = VARIANTS[request.variant](SearchConfig())
    tuning = TuneRequest([spec], target_json, None, Budget(request.trials), request.seed, base, config)
    with closing(child), closing(WalledSearch(child, tuning)) as search:
        tune(tuning, search, fleet, ledger)
    run.seconds = time.monotonic() - started
    certified = ledger.certificates[0]
    [winner] = [trial for trial in ledger.history(0) if trial.candidate.hash == certified.candidate_hash]
    if winner.candidate.trace_json is not None:
        latency = statistics.median(certified.best_run_secs)
        run.incumbents.append(Incumbent(run.seconds, run.trials, latency, winner.candidate.trace_json))
    run.peak_mb = peak_mb() + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024  # the loop and its search
    return run


def main() -> None:
    (path,) = sys.argv[1:]
    request = Request.read(Path(path))
    execute(request).save(Path(request.folder))


if __name__ == "__main__":
    main()
