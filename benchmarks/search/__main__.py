"""Runs what is missing of the comparison, cell by cell: all arms on a workload with a seed, in random order.

    .venv/bin/python -m benchmarks.search [--minutes 60] [--workloads GMM-128 …]

When a cell's arms have run, all that they found is measured anew, interleaved (`benchmarks.search.race`). Stops after
the run in which the time is up; started again, it goes on, but a cell that was begun on another machine, before this
one was started, or with other code, begins anew. Where no cell is missing, those that other code ran begin anew, too.
`python -m benchmarks.search.report --pack` packs the results and draws the report.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import ray

from benchmarks.search import race
from benchmarks.search.arms import TRIALS, Cell, plan
from benchmarks.search.run_record import ROOT, RUNS, Run, load, this_code, this_machine
from benchmarks.search.teachers import DATABASE, shuffle, teach
from benchmarks.search.workloads import WORKLOADS
from workers.cluster import Cluster, Offer, connect

SHUFFLED = f"{DATABASE.removesuffix('.db')}-shuffled.db"


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
        offer = next(offer for offer in Cluster().reconcile() if offer.device == "cpu")
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
    """Whether all of a cell was run with the code as it is."""
    runs = [RUNS / Run(arm, cell.workload, cell.seed, "").file_name for arm in cell.arms]
    return race.path_of(cell).exists() and all(path.exists() and load(path).code == this_code() for path in runs)


def fill(cell: Cell, offer: Offer, machine: str, until: float) -> bool:
    """Run what is missing of a cell, and race it if all is there; says whether there was time."""
    if time.monotonic() > until:
        return False
    runs = [Run(arm, cell.workload, cell.seed, machine) for arm in cell.arms]
    race.path_of(cell).unlink(missing_ok=True)
    for run in runs:
        path = RUNS / run.file_name
        if path.exists() and (load(path).machine, load(path).code) != (machine, run.code):
            path.unlink()
    for run in runs:
        if not (RUNS / run.file_name).exists():
            if time.monotonic() > until:
                return False
            execute(run, offer)
    if all((RUNS / run.file_name).exists() for run in runs):
        started = time.monotonic()
        programs = race.close(cell, [load(RUNS / run.file_name) for run in runs])
        print(f"{cell.name}: {programs} programs raced, {time.monotonic() - started:.0f} s", flush=True)
    return True


def execute(run: Run, offer: Offer) -> None:
    module = "stock" if run.arm in ("A", "A1") else "ours"
    command = [sys.executable, "-m", f"benchmarks.search.{module}", run.arm, run.workload, str(run.seed), run.machine]
    command += [str(TRIALS), str(RUNS)]
    if module == "stock":
        command += [offer.device_class.target_json]
    else:
        command += [json.dumps(asdict(offer.device_class)), ray.get_runtime_context().gcs_address]
        command += [json.dumps(offer.builders), offer.measurer]
        command += [SHUFFLED if run.arm == "S" else DATABASE]
    # Left to itself TVM's runtime takes half of a virtual machine's cores: all arms measure with the same threads.
    threads = {name: str(offer.device_class.threads) for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
    if module == "ours":
        threads["OMP_NUM_THREADS"] = "1"  # as Ray sets it for the actors that run the service's jobs
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as hiding:
        # TVM imports PyTorch where it is installed, as it is here for the closing session: each of stock's builders
        # would take half a minute longer to start. Loopwright's workers keep it out.
        Path(hiding, "torch.py").write_text('raise ModuleNotFoundError("kept out of the comparison", name="torch")\n')
        environment = os.environ | threads | {"PYTHONPATH": hiding}
        started = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(f"{run.file_name}: {time.monotonic() - started:.0f} s, status {done.returncode}", flush=True)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)


if __name__ == "__main__":
    main()
