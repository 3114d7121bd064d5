"""Runs what is missing of a short comparison that tells the design space and the search apart.

    .venv/bin/python -m benchmarks.search.spaces [--minutes 45]

On each workload, stock MetaSchedule (A) and Loopwright's search in TVM's space (T) and in its own (C) run in random
order. Then every program that was the best of a run at some time is timed again, interleaved with the others
(`benchmarks.search.race`). Stops after the run in which the time is up. Started again, it continues; runs of another
machine or of other code are repeated.
`python -m benchmarks.search.spaces.report --pack` writes the report.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from pathlib import Path

from benchmarks.search import race
from benchmarks.search.cells import load_all, run_missing
from benchmarks.search.execution import execute
from benchmarks.search.run_record import Run, this_machine
from benchmarks.search.spaces.plan import ARMS, FOLDER, SEED, WORKLOADS, race_of
from workers.cluster import Cluster, Offer, connect
from workers.walls.levels import Policy


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.spaces")
    parser.add_argument("--minutes", type=float, default=45.0, help="when to stop")
    return parser


def main() -> None:
    until = time.monotonic() + 60 * parser().parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        connect(None, Path(scratch))
        offer = next(offer for offer in Cluster(Policy.PREFER).reconcile() if offer.device == "cpu")
        for workload in WORKLOADS:
            if not fill(workload, offer, until):
                print("time is up; start again to continue")
                return
    print("complete")


def fill(workload: str, offer: Offer, until: float) -> bool:
    """Run what is missing of a workload's arms and race them. Returns False if the time was up before."""
    machine = this_machine(offer.device_class.model)
    runs = [Run(arm, workload, SEED, machine) for arm in random.Random(workload).sample(ARMS, len(ARMS))]
    if not run_missing(runs, FOLDER, lambda run: execute(run, offer, FOLDER), until):
        return False
    if (records := load_all(runs, FOLDER)) is not None:
        result = race.race(workload, race.programs_of(records))
        race_of(workload).parent.mkdir(parents=True, exist_ok=True)
        race_of(workload).write_text(json.dumps(result) + "\n")
    return True


if __name__ == "__main__":
    main()
