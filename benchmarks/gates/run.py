"""Races programs with themselves on a fleet, as `loopwright check` does, while the machine is disturbed."""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from benchmarks.code import ROOT
from benchmarks.gates.programs import WORKLOADS, candidates
from benchmarks.runner import Raw, conditions
from benchmarks.services import offered
from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from tuner.ports import MeasureRequest, nothing_meanwhile
from tuner.races.gate import GateProgram, compare
from tuner.types import Measured, Workload
from tuner.workload import make_workload
from workers.ray.cluster import Offer
from workers.ray.fleet import RayFleet

BOUND = 1.03
SMOKE = ("--runs", "4")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--runs", type=int, default=500, help="of all workloads together (default 500)")
    parser.add_argument("--minutes", type=float, default=50.0, help="when to begin no further run (default 50)")
    parser.add_argument("--quiet", action="store_true", help="do not disturb the machine")


def run(options: argparse.Namespace, raw: Raw) -> None:
    until = time.monotonic() + 60 * options.minutes
    with contextlib.ExitStack() as stack:
        offer = stack.enter_context(offered())
        if not options.quiet:
            stack.enter_context(noise())
        fleet = RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: offer.id})
        workloads = (make_workload(make(), name) for name, make in WORKLOADS.items())
        models = [twins(workload, fastest(fleet, workload, offer)) for workload in workloads]
        runs: list[dict[str, Any]] = []
        while len(runs) < options.runs and time.monotonic() < until:
            for reference, candidate in models:
                started = time.monotonic()
                found = compare([reference], [candidate], BOUND, fleet, meanwhile=nothing_meanwhile)
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
    noted = conditions(offer.device_class.threads)
    raw.replace({"conditions": noted, "bound": BOUND, "noise": not options.quiet, "runs": runs})


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


def twins(workload: Workload, best: tuple[str, float]) -> tuple[GateProgram, GateProgram]:
    """Return a program twice: its traces are the same, and their texts are not."""
    trace, seconds = best
    outputs = write_only(module_from_json(workload.module_json)["main"])
    return tuple(  # type: ignore[return-value]
        GateProgram(workload.name, 1, workload, outputs, json.dumps(json.loads(trace), indent=indent), seconds)
        for indent in (None, 1)
    )
