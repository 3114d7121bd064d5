"""Compares the search of another commit with this checkout's, cell by cell.

    .venv/bin/python -m benchmarks.search.regression --base COMMIT [--minutes 45]

In a cell (a workload with a seed) both sides tune cold, in random order, each with its own code in its own processes
and on a cluster of its own workers. Then every program that was the best of a run at some time is timed again,
interleaved with the others (`benchmarks.search.race`). Starting the clusters does not count. Stops after the run in
which the time is up. Started again, it continues; a cell that was begun on another machine or before a reboot begins
again.
`python -m benchmarks.search.regression.report --pack` writes the report.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import time
from pathlib import Path

from benchmarks.results import RAW
from benchmarks.search import race
from benchmarks.search.cells import load_all
from benchmarks.search.regression.sides import Side, checkout, side
from benchmarks.search.run_record import ROOT, Run, load, this_code, this_machine

WORKLOADS = ("GMM-128", "C1D-1", "C2D-1", "DEP-1", "GRP-1", "MM-512")
SEEDS = (0, 1)
TRIALS = 128
FOLDER = RAW / "regression"
SIDES = ("base", "new")


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.regression")
    parser.add_argument("--base", required=True, help="the commit to compare with")
    parser.add_argument("--minutes", type=float, default=45.0, help="when to stop")
    parser.add_argument("--workloads", nargs="*", choices=WORKLOADS, default=list(WORKLOADS))
    parser.add_argument("--trials", type=int, default=TRIALS, help="fewer only to try the harness")
    return parser


def main() -> None:
    options = parser().parse_args()
    until = time.monotonic() + 60 * options.minutes
    base = _git("rev-parse", "--verify", f"{options.base}^{{commit}}")
    folder = FOLDER / f"{base[:12]}-{this_code()}-{options.trials}"
    cells = [(workload, seed) for seed in SEEDS for workload in options.workloads]
    missing = [cell for cell in cells if not race_of(folder, *cell).exists()]
    if missing:
        with checkout(base) as root, side("base", root) as old, side("new", ROOT) as new:
            for workload, seed in missing:
                if not fill((old, new), workload, seed, trials=options.trials, folder=folder, until=until):
                    print("time is up; start again to continue")
                    return
    what = {"base": base, "new": _git("describe", "--always", "--dirty"), "trials": options.trials}
    FOLDER.joinpath("last.json").write_text(json.dumps(what | {"folder": folder.name}) + "\n")
    print("complete")


def race_of(folder: Path, workload: str, seed: int) -> Path:
    return folder / "races" / f"{workload}.{seed}.json"


def fill(sides: tuple[Side, Side], workload: str, seed: int, *, trials: int, folder: Path, until: float) -> bool:
    """Run what is missing of a cell and race it. Returns False if the time was up before."""
    machine = this_machine(sides[1].device_class.model)
    order = random.Random(f"{workload}.{seed}").sample(sides, len(sides))
    runs = [Run(one.name, workload, seed, machine) for one in order]
    for one, run in zip(order, runs, strict=True):
        path = folder / run.file_name
        if path.exists() and load(path).machine != machine:
            path.unlink()
        if not path.exists():
            if time.monotonic() > until:
                return False
            one.run(workload, seed, trials=trials, machine=machine, folder=folder)
    if (records := load_all(runs, folder)) is not None:
        started = time.monotonic()
        programs = race.programs_of(records)
        result = race.race(workload, programs, pytorch=False)
        path = race_of(folder, workload, seed)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result) + "\n")
        print(f"{workload}.{seed}: {len(programs)} programs raced, {time.monotonic() - started:.0f} s", flush=True)
    return True


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
