"""Runs what is missing of the comparison, cell by cell: all arms on a workload with a seed, in random order.

    .venv/bin/python -m benchmarks.search [--minutes 60] [--workloads GMM-128 …]

When a cell's arms have run, every program that was the best of a run at some time is timed again, interleaved with the
others (`benchmarks.search.race`). Stops after the run in which the time is up. Started again, it continues; a cell that
was begun on another machine, before a reboot or with other code begins again. If no cell is missing, those that other
code ran begin again, too.
`python -m benchmarks.search.report --pack` packs the results and draws the report.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

from benchmarks.search import race
from benchmarks.search.arms import Cell, plan
from benchmarks.search.cells import load_all, run_missing
from benchmarks.search.execution import SHUFFLED, execute
from benchmarks.search.run_record import RUNS, Run, load, this_code, this_machine
from benchmarks.search.teachers import DATABASE, shuffle, teach
from benchmarks.search.workloads import WORKLOADS
from workers.cluster import Cluster, Offer, connect
from workers.walls.levels import Policy


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workloads", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    return parser


def main() -> None:
    options = parser().parse_args()
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        connect(None, Path(scratch))
        offer = next(offer for offer in Cluster(Policy.PREFER).reconcile() if offer.device == "cpu")
        teach(DATABASE, offer.device_class, offer.builders, offer.measurer)
        shuffle(DATABASE, SHUFFLED)
        machine = this_machine(offer.device_class.model)
        for cell in sorted(plan(options.workloads), key=lambda cell: race.path_of(cell).exists()):
            if is_complete(cell):
                continue
            if not fill(cell, offer, machine, until):
                print("time is up; start again to go on")
                return
    print("complete")


def is_complete(cell: Cell) -> bool:
    """Return whether all of a cell was run with the present code."""
    runs = [RUNS / Run(arm, cell.workload, cell.seed, "").file_name for arm in cell.arms]
    return race.path_of(cell).exists() and all(path.exists() and load(path).code == this_code() for path in runs)


def fill(cell: Cell, offer: Offer, machine: str, until: float) -> bool:
    """Run what is missing of a cell, and race it if all has run. Returns False if the time was up before."""
    if time.monotonic() > until:
        return False
    runs = [Run(arm, cell.workload, cell.seed, machine) for arm in cell.arms]
    race.path_of(cell).unlink(missing_ok=True)
    if not run_missing(runs, RUNS, lambda run: execute(run, offer, RUNS), until):
        return False
    if (records := load_all(runs, RUNS)) is not None:
        started = time.monotonic()
        programs = race.close(cell, records)
        print(f"{cell.name}: {programs} programs raced, {time.monotonic() - started:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    main()
