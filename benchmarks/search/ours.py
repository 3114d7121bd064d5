"""Loopwright's arms: its tuning loop on its own builders and measurer, in a process beside a running cluster.

    .venv/bin/python -m benchmarks.search.ours REQUEST.json

The file is a `Request` as JSON. The run's record goes into the request's folder.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.search.run_record import Incumbent, Run
from benchmarks.search.teachers import experience
from benchmarks.search.workloads import WORKLOADS
from loopwright.comparing.child import peak_mb
from tuner.search.config import SearchConfig
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import TuneRequest, tune
from tuner.types import DeviceClass, Measured, Outcome, TaskSpec, Trial
from tuner.workload import make_workload
from workers.cluster import connect
from workers.fleet import RayFleet
from workers.walled_search import WalledSearch, search_child
from workers.walls.levels import Policy, choose

NEVER = sys.maxsize
"""Trials until a model is ready that never is."""


def unchanged(config: SearchConfig) -> SearchConfig:
    return config


class Variant(NamedTuple):
    """How an arm differs from a cold search with the default config.

    ``relatives`` and ``base_model`` say what the search gets of the teachers' database, ``own_family`` whether that
    includes workloads of the same family.
    """

    description: str
    change: Callable[[SearchConfig], SearchConfig] = unchanged
    relatives: bool = False
    base_model: bool = False
    own_family: bool = True


def random_only(config: SearchConfig) -> SearchConfig:
    """Never train a model, so that all proposals are drawn at random."""
    return replace(config, gp_warm_up=NEVER, ranking=replace(config.ranking, warm_up=NEVER))


def without_rules(config: SearchConfig) -> SearchConfig:
    """Search the space of TVM's own sketches."""
    return replace(config, rules=False)


VARIANTS = {
    "R": Variant("random search", random_only),
    "C": Variant("cold"),
    "T": Variant("cold, in TVM's space", without_rules),
    "W": Variant("warm", relatives=True, base_model=True),
    "X": Variant("warm, by other families", base_model=True, own_family=False),
    "S": Variant("warm, by a database of shuffled latencies", relatives=True, base_model=True),
}
"""The arms of the comparison. `benchmarks.search.arms` describes them."""

ABLATIONS = {
    "beta": Variant("the UCB coefficient beta is 0", lambda c: replace(c, beta=0.0)),
    "process": Variant(
        "the ranking selects from random programs, without a Gaussian process", lambda c: replace(c, gp_warm_up=NEVER)
    ),
    "cutoff": Variant("every candidate is sampled in full", lambda c: replace(c, cutoff=None)),
    "models": Variant("random search, as a check that the benchmark finds what must be there", random_only),
}
"""Mechanism -> a cold search without it."""

WARM_ABLATIONS = {
    "relatives": Variant("no traces of related workloads", base_model=True),
    "base-model": Variant("no base model of the device class", relatives=True),
}
"""Mechanism -> a warm search without it."""


@dataclass(frozen=True, slots=True)
class Request:
    """A run: ``arm`` is its name in the record, ``variant`` a key of one of the tables above.

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


class ClockLedger(MemoryLedger):
    """Records in ``run`` when each outcome reaches the tuner."""

    def __init__(self, run: Run, started: float) -> None:
        super().__init__(1)
        self._run = run
        self._started = started

    def finish(self, trial: Trial, outcome: Outcome) -> None:
        super().finish(trial, outcome)
        if trial.candidate.trace_json is not None:
            latency = outcome.median if isinstance(outcome, Measured) else None
            self._run.observe(time.monotonic() - self._started, latency, trial.candidate.trace_json)


def execute(request: Request) -> Run:
    """Tune the workload and return the record, whose last incumbent is the winner of the closing race."""
    variant = (VARIANTS | ABLATIONS | WARM_ABLATIONS)[request.variant]
    connect(request.address, Path(request.folder))
    run = Run(request.arm, request.workload, request.seed, request.machine)
    relatives: tuple[str, ...] = ()
    base: bytes | None = None
    if request.teachers is not None:  # the service has this ready when a job starts
        known, trained = experience(request.teachers, request.workload, request.device_class, variant.own_family)
        relatives, base = known if variant.relatives else (), trained if variant.base_model else None
    child = search_child(choose(Policy.PREFER))
    child.start()  # the service has this ready, too
    started = time.monotonic()
    target_json = request.device_class.target_json
    spec = TaskSpec(make_workload(WORKLOADS[request.workload](), request.workload), 1, relatives)
    fleet = RayFleet(target_json, request.builders, {request.measurer: "local"})
    ledger = ClockLedger(run, started)
    config = variant.change(SearchConfig())
    tuning = TuneRequest([spec], target_json, None, request.trials, None, request.seed, base, config)
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


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.ours")
    parser.add_argument("request", type=Path, help="a Request as JSON")
    return parser


def main() -> None:
    request = Request.read(parser().parse_args().request)
    execute(request).save(Path(request.folder))


if __name__ == "__main__":
    main()
