"""Compares the search of another commit with this checkout's, cell by cell.

In a cell (a workload with a seed) both sides tune cold, in random order, each with its own code in its own processes
and on a cluster of its own workers. Then every program that was the best of a run at some time is timed again,
interleaved with the others (`benchmarks.search.race`). Starting the clusters does not count. Stops after the run in
which the time is up; started again, it continues.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from pathlib import Path

from benchmarks.code import ROOT, this_code
from benchmarks.runner import Raw
from benchmarks.search.cells import Plan, fill
from benchmarks.search.ours import Request
from benchmarks.search.regression.sides import checkout, other_side, this_side
from benchmarks.search.runs import this_machine

SMOKE = ("--base", "HEAD", "--workloads", "GMM-128", "--trials", "8")
WORKLOADS = ("GMM-128", "C1D-1", "C2D-1", "DEP-1", "GRP-1", "MM-512")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--minutes", type=float, default=45.0, help="when to stop")
    parser.add_argument("--workloads", nargs="+", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--trials", type=int, default=128, help="fewer only to try the harness")


def run(options: argparse.Namespace, raw: Raw) -> None:
    until = time.monotonic() + 60 * options.minutes
    base = _git("rev-parse", "--verify", f"{options.base}^{{commit}}")
    # The other side starts first: it must not see what this process sets for its own cluster.
    with checkout(base) as root, other_side(root) as old, this_side() as (new, fleet):
        sides = {"base": old, "new": new}
        machine = this_machine(new.device_class.model)

        def execute(arm: str, workload: str, seed: int, folder: Path) -> None:
            cluster = (new.device_class, new.address, new.builders, new.measurer)
            request = Request(arm, "C", workload, seed, machine, options.trials, str(folder), *cluster)
            sides[arm].run(request, folder)

        plan = Plan(
            key=f"{base[:12]}-{this_code()}-{options.trials}",
            machine=machine,
            arms=list(sides),
            cells=[(workload, seed) for seed in options.seeds for workload in options.workloads],
            execute=execute,
            fleet=fleet,
            described={"base": base, "new": _git("describe", "--always", "--dirty"), "trials": options.trials},
        )
        fill(plan, raw, until)


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
