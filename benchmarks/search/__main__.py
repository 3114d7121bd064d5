"""Runs what is missing of the comparison: every workload, arm and seed, in a random order that alternates arms.

    .venv/bin/python -m benchmarks.search [--minutes 60] [--workloads GMM-128 …]

Stops after the run in which the time is up; started again, it goes on. Then `python -m benchmarks.search.race` measures
all results anew, interleaved, and `python -m benchmarks.search.report` draws the report.
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

from benchmarks.search.arms import SEEDS, TRIALS, plan
from benchmarks.search.run_record import RUNS, Run
from benchmarks.search.teachers import DATABASE, ROOT, shuffle, teach
from benchmarks.search.workloads import WORKLOADS
from workers.cluster import Cluster, Offer, connect

SHUFFLED = f"{DATABASE.removesuffix('.db')}-shuffled.db"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search")
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workloads", nargs="*", choices=list(WORKLOADS), default=list(WORKLOADS))
    parser.add_argument("--arms", nargs="*", choices=list(SEEDS), default=list(SEEDS))
    options = parser.parse_args()
    until = time.monotonic() + 60 * options.minutes
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        connect(None, Path(scratch))
        offer = next(offer for offer in Cluster().reconcile() if offer.device == "cpu")
        if any(arm[0] in "WXS" for arm in options.arms):
            teach(DATABASE, offer.device_class, offer.builders, offer.measurer)
            shuffle(DATABASE, SHUFFLED)
        for run in plan(options.workloads, options.arms):
            if time.monotonic() > until:
                print("time is up; start again to go on")
                return
            if not (RUNS / run.file_name).exists():
                execute(run, offer)
    print("complete")


def execute(run: Run, offer: Offer) -> None:
    module = "stock" if run.arm in ("A", "A1") else "ours"
    command = [sys.executable, "-m", f"benchmarks.search.{module}", run.arm, run.workload, str(run.seed), str(TRIALS)]
    if module == "stock":
        command += [offer.device_class.target_json, str(RUNS)]
    else:
        command += [json.dumps(asdict(offer.device_class)), str(RUNS), ray.get_runtime_context().gcs_address]
        command += [json.dumps(offer.builders), offer.measurer]
        command += [SHUFFLED if run.arm == "S" else DATABASE]
    # Left to itself TVM's runtime takes half of a virtual machine's cores: all arms measure with the same threads.
    threads = {name: str(offer.device_class.threads) for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
    if module == "ours":
        threads["OMP_NUM_THREADS"] = "1"  # as Ray sets it for the actors that run the service's jobs
    started = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=os.environ | threads, capture_output=True, text=True)
    print(f"{run.file_name}: {time.monotonic() - started:.0f} s, status {done.returncode}", flush=True)
    if done.returncode != 0:
        print(done.stderr[-3000:], file=sys.stderr)


if __name__ == "__main__":
    main()
