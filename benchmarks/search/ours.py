"""Loopwright's arms: its loop on its own builders and measurer, in a process of its own beside a running cluster.

C is the search as it is, cold. R is the same loop with a cost model that never gets ready, so that all proposals are
random. W starts with what a database of other workloads has to tell, X with what it has to tell without the workload's
family. S is W with a database of random programs only, their latencies shuffled within each workload: it must not do
better than C. Arms in `ABLATIONS` are C or W with one mechanism taken out.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from benchmarks.search.run_record import Incumbent, Run, peak_mb
from benchmarks.search.teachers import experience
from benchmarks.search.workloads import WORKLOADS
from tuner import tune as loop
from tuner.cost_model import gaussian_process, model
from tuner.cost_model.gaussian_process import GaussianProcess
from tuner.search import evolution, judge
from tuner.search.evolution import EvolutionarySearch
from tuner.search.individual import Individual
from tuner.search.judge import Described, Judge
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import TuneRequest, tune
from tuner.types import DeviceClass, Measured, Outcome, TaskSpec, Trial
from tuner.workload import make_workload
from workers.cluster import connect
from workers.fleet import RayFleet


def _fit_nothing(judge: Judge) -> None:
    """R: no model ever gets ready; C-decisions: the Gaussian process does not."""


def _observe_the_measured(judge: Judge, program: Described, latency: float | None) -> None:
    """C-failures: a failed trial teaches nothing."""
    if latency is not None:
        _observe(judge, program, latency)


def _wait() -> None:
    """C-early: both models."""
    for module in (model, judge):
        setattr(module, "WARM_UP", 100)  # noqa: B010


def _only_the_cost_model() -> None:
    """C-decisions."""
    Judge._fit_process = _fit_nothing  # type: ignore[method-assign,assignment]
    Judge.experienced = property(lambda judge: judge.ready)  # type: ignore[assignment,method-assign]


def _newcomers(search: EvolutionarySearch, parents: object, count: int, **_: float) -> Iterator[Individual]:
    """C-evolution: the model picks among programs that are all drawn at random."""
    yield from filter(None, (search._newcomer() for _ in range(count)))


def _children(
    search: EvolutionarySearch, parents: list[tuple[Individual, str | None]], count: int, **_: float
) -> Iterator[Individual]:
    """C-drafts: programs are made before anything is thought of them, by TVM's mutators and crossover."""
    yield from filter(None, (search._child(parents) for _ in range(count)))


def _only_newcomers() -> None:
    EvolutionarySearch._drafted = _newcomers  # type: ignore[method-assign,assignment]
    EvolutionarySearch._child = lambda search, _: search._newcomer()  # type: ignore[method-assign,assignment]


_observe = Judge.observe
ABLATIONS: dict[str, tuple[str, Callable[[], None]]] = {
    "C-evolution": (
        "the model picks among random programs: no drafts, no mutation, no crossover",
        _only_newcomers,
    ),
    "C-drafts": (
        "TVM's mutators and crossover alone make neighbours and children",
        lambda: setattr(EvolutionarySearch, "_drafted", _children),
    ),
    "C-beliefs": (
        "each of a batch is picked as if it were alone",
        lambda: setattr(GaussianProcess, "believing", lambda process, _: process),
    ),
    "C-crossover": ("no crossover", lambda: setattr(evolution, "_CROSSOVER_SHARE", 0.0)),
    "C-pool": ("no program is kept from one round to the next", lambda: setattr(evolution, "_POOL", 0)),
    "C-near": ("no batch begins at the best programs measured", lambda: setattr(evolution, "_NEAR_SHARE", 0.0)),
    "C-optimism": ("picks are never given more than is expected of them", lambda: setattr(evolution, "_OPTIMISM", 0.0)),
    "C-early": ("the models wait for 100 trials, as MetaSchedule's", _wait),
    "C-failures": ("failed trials teach nothing", lambda: setattr(Judge, "observe", _observe_the_measured)),
    "C-decisions": (
        "the cost model goes on judging, without the Gaussian process",
        _only_the_cost_model,
    ),
    "C-lengths": (
        "the Gaussian process with one length for all columns",
        lambda: setattr(gaussian_process, "_STEPS", 0),
    ),
    "C-batch": ("64 proposals at a time instead of 8", lambda: setattr(loop, "BATCH", 64)),
    "C-race": ("every candidate is measured in full", lambda: setattr(loop, "CUTOFF", math.inf)),
    "W-traces": ("the base model alone", lambda: None),
    "W-base": ("the relatives' traces alone", lambda: None),
}
"""Arm -> what is taken out, and how."""


class ClockLedger(MemoryLedger):
    """Notes in ``run`` when each outcome reaches the tuner."""

    def __init__(self, run: Run, started: float) -> None:
        super().__init__(1)
        self._run = run
        self._started = started

    def finish(self, trial: Trial, outcome: Outcome) -> None:
        super().finish(trial, outcome)
        if trial.candidate.trace_json is not None:
            latency = outcome.median if isinstance(outcome, Measured) else None
            self._run.observe(time.monotonic() - self._started, latency, trial.candidate.trace_json)


def main(arguments: Sequence[str]) -> None:
    arm, workload, seed, machine, trials, folder, device_class_json, address, builders, measurer, teachers = arguments
    if arm == "R":
        Judge.fit = _fit_nothing  # type: ignore[method-assign,assignment]
    elif arm in ABLATIONS:
        ABLATIONS[arm][1]()
    fields = json.loads(device_class_json)
    device_class = DeviceClass(**fields | {"features": tuple(fields["features"])})
    target_json = device_class.target_json
    connect(address, Path(folder))
    run = Run(arm, workload, int(seed), machine)
    # What the service has ready when a job starts.
    relatives, base = experience(teachers, workload, device_class, arm) if arm[0] in "WXS" else ((), None)
    if arm == "W-traces":
        relatives = ()
    elif arm == "W-base":
        base = None
    started = time.monotonic()
    spec = TaskSpec(make_workload(WORKLOADS[workload](), workload), 1, relatives)
    fleet = RayFleet(target_json, json.loads(builders), {measurer: "local"})
    ledger = ClockLedger(run, started)
    tune(TuneRequest([spec], target_json, None, int(trials), None, int(seed), base), fleet, ledger)
    run.seconds = time.monotonic() - started
    certified = ledger.certificates[0]
    [winner] = [trial for trial in ledger.history(0) if trial.candidate.hash == certified.candidate_hash]
    if winner.candidate.trace_json is not None:
        # The closing race of the best few, measured side by side, has the last word on which of them it is.
        latency = statistics.median(certified.best_run_secs)
        run.incumbents.append(Incumbent(run.seconds, run.trials, latency, winner.candidate.trace_json))
    run.peak_mb = peak_mb()
    run.save(Path(folder))


if __name__ == "__main__":
    main(sys.argv[1:])
