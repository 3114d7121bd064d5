"""Runs both arms in alternating order, then times both results interleaved, and writes the figures.

.venv/bin/python -m benchmarks.main_job [--rounds 2]

Figures go to benchmarks/results/main-job.json. `python -m benchmarks.main_job.report --pack` packs them and writes the
report.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import tvm
from tvm.s_tir import meta_schedule as ms

from benchmarks.main_job.report import NAME, text
from benchmarks.main_job.workload import SIZE, TRIALS, product
from benchmarks.results import ROOT, write_raw
from loopwright import Client
from loopwright.codegen.threads import environment
from service.settings import Settings, ensure_token
from service.supervisor import Supervisor

_RACE_ROUNDS = 25
_SAMPLE_SECONDS = 0.02


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.main_job")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--port", type=int, default=8097)
    return parser


def main() -> None:
    options = parser().parse_args()
    rounds = []
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        settings = Settings(data_dir=Path(scratch) / "service", port=options.port)
        supervisor = Supervisor(settings)
        with supervisor.running(), Client(supervisor.url, ensure_token(settings)) as client:
            target = next(offer.target for offer in client.targets() if offer.target["kind"] == "llvm")
            for seed in range(options.rounds):
                work_dir = Path(scratch) / f"stock{seed}"
                order = ["loopwright", "stock"] if seed % 2 == 0 else ["stock", "loopwright"]
                found = {
                    arm: ours(client, target, seed) if arm == "loopwright" else stock(target, work_dir, seed)
                    for arm in order
                }
                rounds.append({"seed": seed, "first": order[0], **found})
                print(json.dumps(rounds[-1]), flush=True)
            race_result = race(client, target, Path(scratch) / "stock0")
    figures = {"size": SIZE, "trials": TRIALS, "target": target, "rounds": rounds, "race": race_result}
    print(text(figures))
    print(write_raw(NAME, figures))


def ours(client: Client, target: dict[str, Any], seed: int) -> dict[str, Any]:
    """One job through REST: seconds from the submission to the certified end, and of the same job once more."""
    started = time.monotonic()
    job = client.submit(product(), target=target, max_trials=TRIALS, seed=seed, force=True)
    job.wait(progress=False)
    seconds = time.monotonic() - started
    task = job.tasks[0]
    assert job.state == "succeeded", job.error
    assert task.trials == TRIALS, task
    started = time.monotonic()
    again = client.submit(product(), target=target, max_trials=TRIALS, seed=seed).wait(progress=False)
    again_seconds = time.monotonic() - started
    assert again.tasks[0].answered_from == "database", again.tasks[0]
    return {
        "seconds": seconds,
        "again_seconds": again_seconds,
        "trials": task.trials,
        "baseline_us": task.baseline_us,
        "best_us": task.best_us,
        "failures": dict(task.failures),
    }


def stock(target: dict[str, Any], work_dir: Path, seed: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.main_job.stock", json.dumps(target), str(work_dir), str(seed)]
    # Left to itself TVM's runtime takes half of a virtual machine's cores: both arms measure with the same threads.
    threads = {name: str(target["num-cores"]) for name in ("TVM_NUM_THREADS", "OMP_NUM_THREADS")}
    done = subprocess.run(command, cwd=ROOT, env=os.environ | threads, capture_output=True, text=True, check=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def race(client: Client, target: dict[str, Any], work_dir: Path) -> dict[str, Any]:
    """Loopwright's best and that of stock's first round, interleaved in this process; microseconds a call."""
    os.environ.update(environment(target["num-cores"]))  # before the first call starts the threads
    real_target = tvm.target.Target(target)
    database = ms.database.JSONDatabase(work_dir=str(work_dir))
    tuned = ms.tir_integration.compile_tir(database, product(), real_target)
    modules = {
        "loopwright": client.compile(product(), target)["main"],
        "stock": tvm.compile(tuned.mod, target=real_target)["main"],
    }
    rng = np.random.default_rng(0)
    arguments = [tvm.runtime.tensor(rng.standard_normal((SIZE, SIZE), dtype=np.float32)) for _ in range(3)]

    def timed(name: str, number: int) -> float:
        begin = time.perf_counter()
        for _ in range(number):
            modules[name](*arguments)
        return (time.perf_counter() - begin) / number

    numbers = {name: max(1, int(_SAMPLE_SECONDS / timed(name, 50))) for name in modules}
    samples: dict[str, list[float]] = {name: [] for name in modules}
    for _ in range(_RACE_ROUNDS):
        for name in rng.permutation(list(modules)):
            samples[str(name)].append(timed(str(name), numbers[str(name)]) * 1e6)
    ratios = [b / a for a, b in zip(samples["loopwright"], samples["stock"], strict=True)]
    return {
        "loopwright_us": statistics.median(samples["loopwright"]),
        "stock_us": statistics.median(samples["stock"]),
        "stock_over_loopwright": statistics.median(ratios),
        "spread": [min(ratios), max(ratios)],
    }


if __name__ == "__main__":
    main()
