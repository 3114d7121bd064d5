"""Races programs with themselves on a fleet, as `loopwright check` does, while the machine is disturbed.

.venv/bin/python -m benchmarks.gates [--runs 500]

The result goes to benchmarks/results/gates.json; `python -m benchmarks.gates.report --pack` packs it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from benchmarks.gates.report import NAME, text
from benchmarks.quality.conditions import conditions
from benchmarks.results import ROOT, write_raw
from benchmarks.walls.programs import SUBJECTS, candidates
from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from tuner.gate import Program, compare
from tuner.ports import MeasureRequest, nothing_meanwhile
from tuner.types import Measured, Workload
from workers.cluster import Cluster, Offer, connect
from workers.fleet import RayFleet
from workers.walls.levels import Policy

BOUND = 1.03
WORKLOADS = ("product of 128", "softmax of 256 x 256")
"""Short ones: what disturbs the machine changes them most."""


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gates")
    parser.add_argument("--runs", type=int, default=500, help="of all workloads together (default 500)")
    parser.add_argument("--minutes", type=float, default=50.0, help="when to begin no further run (default 50)")
    parser.add_argument("--quiet", action="store_true", help="do not disturb the machine")
    return parser


def main() -> None:
    options = parser().parse_args()
    until = time.monotonic() + 60 * options.minutes
    with contextlib.ExitStack() as stack:
        offer = stack.enter_context(cluster())
        if not options.quiet:
            stack.enter_context(noise())
        fleet = RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: offer.id})
        workloads = (subject.workload() for subject in SUBJECTS if subject.name in WORKLOADS)
        models = [twins(workload, fastest(fleet, workload, offer)) for workload in workloads]
        runs: list[dict[str, Any]] = []
        while len(runs) < options.runs and time.monotonic() < until:
            for reference, candidate in models:
                started = time.monotonic()
                found = compare([reference], [candidate], BOUND, fleet, seed=len(runs), meanwhile=nothing_meanwhile)
                runs.append(
                    {
                        "workload": reference.name,
                        "verdict": found.verdict.value,
                        "rounds": found.rounds,
                        "slowdown": [found.slowdown.value, found.slowdown.low, found.slowdown.high],
                        "seconds": time.monotonic() - started,
                    }
                )
            print(f"{len(runs)} runs", flush=True)
    cores = offer.device_class.threads
    figures = {"conditions": conditions(cores), "bound": BOUND, "noise": not options.quiet, "runs": runs}
    print(text(figures))
    print(write_raw(NAME, figures))


@contextlib.contextmanager
def cluster() -> Iterator[Offer]:
    """The fleet of an embedded service on this machine."""
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as folder:
        connect(None, Path(folder))
        try:
            yield Cluster(Policy.PREFER).reconcile()[0]
        finally:
            ray.shutdown()


@contextlib.contextmanager
def noise() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-m", "benchmarks.gates.noise", "0"], cwd=ROOT)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def fastest(fleet: RayFleet, workload: Workload, offer: Offer) -> tuple[str, float]:
    """Return the fastest of some candidates with its seconds a call."""
    for trace in candidates(workload, offer.device_class.target_json, 8):
        fleet.submit(MeasureRequest(trace, workload.module_json, workload.args, trace, None))
    found: dict[str, float] = {}
    while outcomes := fleet.collect(60.0):
        found |= {key: outcome.median for key, outcome in outcomes if isinstance(outcome, Measured)}
    best = min(found, key=found.__getitem__)
    return best, found[best]


def twins(workload: Workload, best: tuple[str, float]) -> tuple[Program, Program]:
    """Return a program twice: its traces are the same, and their texts are not."""
    trace, seconds = best
    outputs = write_only(module_from_json(workload.module_json)["main"])
    return tuple(  # type: ignore[return-value]
        Program(workload.name, 1, workload, outputs, json.dumps(json.loads(trace), indent=indent), seconds)
        for indent in (None, 1)
    )


if __name__ == "__main__":
    main()
