"""Certifies programs three times: at first, after a new start of the workers, and under load.

Each run of this benchmark is one sitting: the first one that is not complete.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import time
from typing import Any

import tvm

from benchmarks.alone import threads_of_tuner
from benchmarks.busy import busy
from benchmarks.certificates.functions import FUNCTIONS, SITTINGS
from benchmarks.gates.run import fastest
from benchmarks.runner import Raw, conditions
from benchmarks.services import offered, scratch
from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from tuner.ports import RaceRequest, nothing_meanwhile
from tuner.races.grade import graded
from tuner.types import Failure, Workload
from tuner.workload import make_workload
from workers.device.arguments import draw, to_device
from workers.device.build import artifact_of, load, with_packed_weight
from workers.device.programs import Calls
from workers.messages import BuildRequest
from workers.ray.cluster import Offer
from workers.ray.fleet import RayFleet

LONG_SECONDS = 0.3
"""Of a sample of a plain timing. A race's are 0.01 s."""
SMOKE = ("--only", "addition of 16", "GMM-0")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=FUNCTIONS, default=list(FUNCTIONS), metavar="FUNCTION")


def run(options: argparse.Namespace, raw: Raw) -> None:
    done = raw.latest("function", "sitting")
    missing = {sitting: [name for name in options.only if (name, sitting) not in done] for sitting in SITTINGS}
    sitting = next((sitting for sitting, names in missing.items() if names), None)
    if sitting is None:
        print("complete")
        return
    traces = {name: line["trace"] for (name, other), line in done.items() if other == "first"}
    with offered() as offer, busy(SITTINGS[sitting]):
        os.environ.update(threads_of_tuner(offer.device_class.threads))
        fleet = RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: offer.id})
        for name in missing[sitting]:
            workload = make_workload(FUNCTIONS[name](), name)
            trace = traces[name] if name in traces else fastest(fleet, workload, offer)[0]
            line = {"function": name, "sitting": sitting, "conditions": conditions(offer.device_class.threads)}
            line |= certified(fleet, workload, trace)
            if sitting == "first":
                line |= {"trace": trace, "plain_s": plain(workload, trace, offer)}
            raw.append(line)
            print(
                f"{name}: {line['speedup']:.3g} ({line['low']:.3g} to {line['high']:.3g}), {line['grade']}", flush=True
            )
    print(f"{sitting} is complete; start again for the next sitting" if sitting != list(SITTINGS)[-1] else "complete")


def certified(fleet: RayFleet, workload: Workload, trace: str) -> dict[str, Any]:
    """Return what a certificate says of a program: its speedup with the interval, its grade and its seconds a call."""
    outputs = write_only(module_from_json(workload.module_json)["main"])
    started = time.monotonic()
    race = fleet.race(RaceRequest(workload.module_json, workload.args, outputs, {"best": trace}), nothing_meanwhile)
    raced = race.contenders["best"]
    if isinstance(raced, Failure):
        raise SystemExit(f"{workload.name}: {raced.message}")
    interval, grade = graded(race.baseline.run_secs, raced.run_secs)
    return {
        "speedup": interval.value,
        "low": interval.low,
        "high": interval.high,
        "grade": grade,
        "best_s": statistics.median(raced.run_secs),
        "baseline_s": statistics.median(race.baseline.run_secs),
        "samples": [race.baseline.run_secs, raced.run_secs],
        "seconds": time.monotonic() - started,
    }


def plain(workload: Workload, trace: str, offer: Offer) -> float:
    """Return the seconds a call by TVM's own timing, in this process, over many more calls than a race makes."""
    with scratch() as folder, contextlib.chdir(folder):
        artifact = artifact_of(BuildRequest(workload.module_json, trace, offer.device_class.target_json))
    module, device = load(artifact), tvm.cpu()
    inputs = to_device(draw(workload.args, [False] * len(workload.args), "normal", 0), device)
    calls = Calls(module, device, with_packed_weight(module, artifact, inputs, device))
    number = max(1, round(LONG_SECONDS / calls.mean(100)))
    return statistics.median(calls.mean(number) for _ in range(5))
