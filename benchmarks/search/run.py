"""Runs what is missing of the comparison, cell by cell: all arms on a workload with a seed, in random order.

When a cell's arms have run, every program that was the best of a run at some time is timed again, interleaved with the
others (`benchmarks.search.race`). Stops after the run in which the time is up; started again, it continues.
"""

from __future__ import annotations

import argparse
import random
import time
from functools import partial
from pathlib import Path

import ray
import tvm

from benchmarks import stock
from benchmarks.alone import threads_of_stock
from benchmarks.code import this_code
from benchmarks.runner import Raw
from benchmarks.search.cells import Plan, fill
from benchmarks.search.ours import Request, ask
from benchmarks.search.runs import Run, this_machine
from benchmarks.search.teachers import DATABASE, teach
from benchmarks.search.workloads import WORKLOADS
from benchmarks.services import offered
from workers.ray.cluster import Offer
from workers.ray.fleet import RayFleet

SMOKE = ("--workloads", "GMM-128", "--seeds", "0", "--trials", "8", "--arms", "A", "C")
SEEDS = (0, 1, 2)
ARMS = {
    "A": "stock `tune_tir` as a user calls it, but its builders get time to start, and PyTorch is hidden from them",
    "R": "random search on Loopwright's workers",
    "C": "Loopwright, cold: with an empty database",
    "T": "the same search in the space of TVM's own sketches, which A searches",
    "W": "Loopwright, warm: with a database of other workloads, among them the same functions at other shapes",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--minutes", type=float, default=60.0, help="when to stop")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS), metavar="WORKLOAD")
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS), metavar="SEED")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--trials", type=int, default=128)


def run(options: argparse.Namespace, raw: Raw) -> None:
    arms, workloads, trials = options.arms, options.workloads, options.trials
    until = time.monotonic() + 60 * options.minutes
    order = random.Random(0)
    if "W" in arms:
        teach()
    with offered() as offer:
        machine = this_machine(offer.device_class.model)
        plan = Plan(
            key=f"{this_code()}-{trials}",
            machine=machine,
            arms=arms,
            cells=[(workload, seed) for seed in options.seeds for workload in order.sample(workloads, len(workloads))],
            execute=partial(execute, offer, machine, trials),
            described={
                "trials": trials,
                "seeds": options.seeds,
                "workloads": workloads,
                "arms": {arm: ARMS[arm] for arm in arms},
            },
            fleet=RayFleet(offer.device_class.target_json, offer.builders, {offer.measurer: offer.id}),
        )
        fill(plan, raw, until)


def execute(offer: Offer, machine: str, trials: int, arm: str, workload: str, seed: int, folder: Path) -> None:
    """Run an arm in a process of its own; its record goes into the folder."""
    device_class = offer.device_class
    if arm == "A":
        record = Run(arm, workload, seed, machine)
        found = stock.tuned(
            tvm.IRModule({"main": WORKLOADS[workload]()}),
            device_class.target_json,
            trials=trials,
            seed=seed + 1,
            work_dir=folder / "records",
            environment=threads_of_stock(device_class.threads),
        )
        for trial in found.trials:
            record.observe(*trial)
        record.seconds, record.peak_mb = found.seconds, found.peak_mb
        if found.trials:
            record.save(folder)
        return
    request = Request(
        arm=arm,
        variant=arm,
        workload=workload,
        seed=seed,
        machine=machine,
        trials=trials,
        folder=str(folder),
        device_class=device_class,
        address=ray.get_runtime_context().gcs_address,
        builders=offer.builders,
        measurer=offer.measurer,
        teachers=DATABASE if arm == "W" else None,
    )
    ask(request, folder)
