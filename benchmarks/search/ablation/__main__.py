"""Runs what is missing of the ablation, cell by cell.

    .venv/bin/python -m benchmarks.search.ablation [--minutes 60] [--warm]

In a cell, the references and every mechanism's arm run in random order. When all have run, every program that was the
best of a run at some time is timed again, interleaved with the others, in several processes (`benchmarks.search.race`).
Stops after the run in which the time is up. Started again, it continues with the cells that are neither complete nor
among the kept results of the same code; a cell that was begun on another machine or before a reboot begins again.
`python -m benchmarks.search.ablation.report --pack` writes the report.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import ray

from benchmarks.search import race
from benchmarks.search.ablation import report
from benchmarks.search.ablation.plan import TRIALS, WORKLOADS, Cell, cells
from benchmarks.search.cells import load_all, run_missing
from benchmarks.search.ours import Request
from benchmarks.search.processes import run_request
from benchmarks.search.run_record import Run, this_machine
from benchmarks.search.teachers import DATABASE, teach
from workers.cluster import Cluster, Offer, connect
from workers.walls.levels import Policy


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.ablation")
    parser.add_argument("--minutes", type=float, default=60.0, help="when to stop")
    parser.add_argument("--warm", action="store_true", help="also what a warm search gets of the database")
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--trials", type=int, default=TRIALS, help="fewer only to try the harness")
    return parser


def main() -> None:
    options = parser().parse_args()
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        connect(None, Path(scratch))
        offer = next(offer for offer in Cluster(Policy.PREFER).reconcile() if offer.device == "cpu")
        if options.warm:
            teach(DATABASE, offer.device_class, offer.builders, offer.measurer)
        kept = set(map(report.key, report.kept_runs()))
        for cell in cells(warm=options.warm, workloads=options.workloads, trials=options.trials):
            is_complete = cell.race.exists() or (cell.workload, cell.seed, cell.warm) in kept
            if not is_complete and not fill(cell, offer, until):
                print("time is up; start again to continue")
                return
    print("complete")


def fill(cell: Cell, offer: Offer, until: float) -> bool:
    """Run what is missing of a cell and race it. Returns False if the time was up before."""
    machine = this_machine(offer.device_class.model)
    runs = [Run(arm, cell.workload, cell.seed, machine) for arm in cell.variants]

    def execute(run: Run) -> None:
        request = Request(
            arm=run.arm,
            variant=cell.variants[run.arm],
            workload=cell.workload,
            seed=cell.seed,
            machine=machine,
            trials=cell.trials,
            folder=str(cell.folder),
            device_class=offer.device_class,
            address=ray.get_runtime_context().gcs_address,
            builders=offer.builders,
            measurer=offer.measurer,
            teachers=DATABASE if cell.warm else None,
        )
        run_request(request, name=f"{cell.name} {run.arm}")

    if not run_missing(runs, cell.folder, execute, until):
        return False
    if (records := load_all(runs, cell.folder)) is not None:
        started = time.monotonic()
        programs = race.programs_of(records)
        result = race.race(cell.workload, programs, pytorch=False)
        cell.race.parent.mkdir(parents=True, exist_ok=True)
        cell.race.write_text(json.dumps(result) + "\n")
        print(f"{cell.name}: {len(programs)} programs raced, {time.monotonic() - started:.0f} s", flush=True)
    return True


if __name__ == "__main__":
    main()
