"""Runs what is missing of the ablation, cell by cell: the search as it is, and without each of its mechanisms.

A cell is a workload with a seed. All arms of a workload see the same latency of the same program, which is measured
once (`benchmarks.search.ablation.remembering`): within a cell, what differs is the mechanism alone. Stops after the run
in which the time is up; started again, it continues.
"""

from __future__ import annotations

import argparse
import os
import random
import time
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.alone import threads_of_tuner
from benchmarks.code import this_code
from benchmarks.runner import Raw
from benchmarks.search.ablation.remembering import RememberingFleet
from benchmarks.search.ours import NEVER, Change, random_only, without_rules
from benchmarks.search.runs import this_machine
from benchmarks.search.teachers import DATABASE, experience, teach
from benchmarks.search.workloads import WORKLOADS as KNOWN
from benchmarks.services import offered
from tuner.budget import Budget
from tuner.codec import decode, encode
from tuner.search.config import SearchConfig
from tuner.search.request import TuneRequest
from tuner.testing.memory_ledger import MemoryLedger
from tuner.tune import tune
from tuner.types import Failure, Measured, Outcome, TaskSpec, Trial
from tuner.workload import make_workload
from workers.child.walled_search import WalledSearch, search_child
from workers.ray.cluster import Offer
from workers.ray.fleet import RayFleet
from workers.walls.levels import Policy, choose

SMOKE = ("--workloads", "GMM-128", "--seeds", "2", "--trials", "16")
WORKLOADS = ("C1D-1", "DEP-1", "GMM-128", "GRP-1", "MM-512")
"""Workloads on which random search was behind after 64 or 128 trials (docs/benchmarks/search.md). Where random programs
are as good, no mechanism can show a gain."""
REFERENCE = "reference"


@dataclass(frozen=True)
class Arm:
    """A search without a mechanism. ``relatives`` and ``base_model``: whether a warm one gets these of its database."""

    description: str
    change: Change = replace
    relatives: bool = True
    base_model: bool = True


COLD = {
    REFERENCE: Arm("nothing"),
    "twin": Arm("nothing: whatever it differs by is noise of the benchmark"),
    "surrogate": Arm(
        "no Gaussian process: the ranking selects from random programs", lambda c: replace(c, gp_warm_up=NEVER)
    ),
    "rules": Arm("no rules of Loopwright's own, TVM's sketches alone", without_rules),
    "models": Arm("random search, as a check that the benchmark finds what must be there", random_only),
}
WARM = {
    REFERENCE: Arm("nothing"),
    "relatives": Arm("no traces of related workloads", relatives=False),
    "base-model": Arm("no base model of the device class", base_model=False),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=55.0, help="when to stop")
    parser.add_argument("--workloads", nargs="+", choices=KNOWN, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--seeds", type=int, default=8, help="of each workload")
    parser.add_argument("--trials", type=int, default=40, help="of each run")
    parser.add_argument("--warm", action="store_true", help="what a warm search gets of the database, instead")
    parser.add_argument(
        "--arms", nargs="+", choices=[*COLD, *WARM], metavar="ARM", help="of further seeds (default: all)"
    )


def run(options: argparse.Namespace, raw: Raw) -> None:
    until = time.monotonic() + 60 * options.minutes
    every = WARM if options.warm else COLD
    arms = {name: arm for name, arm in every.items() if name in (options.arms or every)}
    if options.warm:
        teach()
    with offered() as offer:
        key = f"{this_code()}-{options.trials}-{'warm' if options.warm else 'cold'}"
        machine = this_machine(offer.device_class.model)
        described = {"trials": options.trials, "warm": options.warm, "machine": machine}
        mechanisms = {name: arm.description for name, arm in every.items()}
        raw.append({"kind": "plan", "key": key, **described, "mechanisms": mechanisms})
        with closing(Bench(offer, raw, key, machine, options.trials)) as bench:
            for seed in range(options.seeds):
                for workload in options.workloads:
                    for name in random.Random(f"{workload}.{seed}").sample(list(arms), len(arms)):
                        if (name, workload, seed) in bench.done:
                            continue
                        if time.monotonic() > until:
                            print("time is up; start again to continue")
                            return
                        bench.run(name, arms[name], workload, seed, warm=options.warm)
    print("complete")


class Bench:
    """Runs searches one after another in this process, and remembers what was measured on this machine."""

    def __init__(self, offer: Offer, raw: Raw, key: str, machine: str, trials: int) -> None:
        self._offer, self._raw, self._trials = offer, raw, trials
        self._line = {"key": key, "machine": machine}
        os.environ.update(threads_of_tuner(offer.device_class.threads))
        self._child = search_child(choose(Policy.PREFER))
        # Another machine's latencies are another function: runs and outcomes of one machine count together.
        here = [line for line in raw.lines() if self._line.items() <= line.items()]
        self._known = {line["program"]: _outcome(line) for line in here if line["kind"] == "outcome"}
        self.done = {(line["arm"], line["workload"], line["seed"]) for line in here if line["kind"] == "run"}

    def run(self, name: str, arm: Arm, workload: str, seed: int, *, warm: bool) -> None:
        """Search, and append the latency of the best so far after each trial."""
        device_class = self._offer.device_class
        relatives, base = experience(DATABASE, workload, device_class) if warm else ((), None)
        spec = TaskSpec(make_workload(KNOWN[workload](), workload), 1, relatives if arm.relatives else ())
        request = TuneRequest(
            [spec],
            device_class.target_json,
            None,
            Budget(self._trials),
            seed,
            base if arm.base_model else None,
            arm.change(SearchConfig()),
        )
        started, measured = time.monotonic(), len(self._known)
        fleet = RayFleet(device_class.target_json, self._offer.builders, {self._offer.measurer: "local"})
        ledger = CurveLedger()
        with closing(WalledSearch(self._child, request)) as search:
            tune(request, search, RememberingFleet(fleet, self._known, self._remember), ledger)
        self._raw.append(
            {"kind": "run", **self._line, "arm": name, "workload": workload, "seed": seed, "best": ledger.best}
        )
        new, seconds = len(self._known) - measured, time.monotonic() - started
        print(f"{workload}.{seed} {name}: {new} of {len(ledger.best)} programs new, {seconds:.0f} s", flush=True)

    def close(self) -> None:
        self._child.close()

    def _remember(self, program: str, outcome: Outcome) -> None:
        found = encode(outcome) if isinstance(outcome, Failure) else list(outcome.run_secs)
        self._raw.append({"kind": "outcome", **self._line, "program": program, "outcome": found})


def _outcome(line: dict[str, Any]) -> Outcome:
    found = line["outcome"]
    return decode(Failure, found) if isinstance(found, dict) else Measured(tuple(found), "remembered")


class CurveLedger(MemoryLedger):
    """``best``: the least latency so far after each trial of a search, in seconds; None before the first."""

    def __init__(self) -> None:
        super().__init__(1)
        self.best: list[float | None] = []

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        super().finish(*finished)
        for trial, outcome in finished:
            if trial.candidate.trace_json is not None:
                last = self.best[-1] if self.best else None
                latency = outcome.least if isinstance(outcome, Measured) else None
                self.best.append(min((value for value in (last, latency) if value is not None), default=None))
