"""Runs both arms in alternating order, times both results interleaved, and then tunes some small functions."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tvm
from tvm.s_tir import meta_schedule as ms

from benchmarks import stock
from benchmarks.alone import threads_of_stock
from benchmarks.runner import Raw, conditions
from benchmarks.search.workloads import WORKLOADS, product
from benchmarks.services import embedded, scratch
from loopwright import Client
from loopwright.codegen.host.threads import environment

SMOKE = ("--rounds", "1", "--trials", "8")
SIZE = 128
SMALL = ("GMM-128", "C1D-1", "C2D-1", "DEP-1", "SFM-1")
"""Functions that take tens of microseconds: what a trial costs is not their calls."""
_RACE_ROUNDS = 25
_SAMPLE_SECONDS = 0.02


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--port", type=int, default=8097)


def run(options: argparse.Namespace, raw: Raw) -> None:
    rounds, noted = [], conditions()
    with scratch() as folder, embedded(options.port) as client:
        target = next(offer.target for offer in client.targets() if offer.target["kind"] == "llvm")

        def stocks(seed: int) -> dict[str, Any]:
            found = stock.tuned(
                tvm.IRModule({"main": product(SIZE, SIZE, SIZE)}),
                json.dumps(target),
                trials=options.trials,
                seed=seed,
                work_dir=folder / f"stock{seed}",
                environment=threads_of_stock(target["num-cores"]),
            )
            return {"seconds": found.seconds}

        arms = {"loopwright": lambda seed: ours(client, target, seed, options.trials), "stock": stocks}
        for seed in range(options.rounds):
            order = list(arms) if seed % 2 == 0 else list(arms)[::-1]
            rounds.append({"seed": seed, "first": order[0], **{arm: arms[arm](seed) for arm in order}})
            print(json.dumps(rounds[-1]), flush=True)
        raced = race(client, target, folder / "stock0")
        small = [tuned(client, target, name, options.trials) for name in SMALL]
    sizes = {"size": SIZE, "trials": options.trials}
    raw.replace({**sizes, "conditions": noted, "target": target, "rounds": rounds, "race": raced, "small": small})


def ours(client: Client, target: dict[str, Any], seed: int, trials: int) -> dict[str, Any]:
    """One job through REST: seconds from the submission to the certified end, and of the same job once more."""
    started = time.monotonic()
    job = client.submit(product(SIZE, SIZE, SIZE), target=target, max_trials=trials, seed=seed, force=True)
    job.wait(progress=False)
    seconds = time.monotonic() - started
    task = job.tasks[0]
    assert job.state == "succeeded", job.error
    assert task.trials == trials, task
    started = time.monotonic()
    again = client.submit(product(SIZE, SIZE, SIZE), target=target, max_trials=trials, seed=seed).wait(progress=False)
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


def tuned(client: Client, target: dict[str, Any], name: str, trials: int) -> dict[str, Any]:
    """One job of a small function: its seconds, the processor time of the whole service, and the certified time."""
    started, before = time.monotonic(), processor_seconds()
    job = client.submit(WORKLOADS[name](), target=target, max_trials=trials, name=name, force=True).wait(progress=False)
    task = job.tasks[0]
    assert job.state == "succeeded", job.error
    line = {
        "function": name,
        "trials": task.trials,
        "seconds": time.monotonic() - started,
        "processor_seconds": processor_seconds() - before,
        "best_us": task.best_us,
    }
    print(json.dumps(line), flush=True)
    return line


def processor_seconds() -> float:
    """Return what this process's descendants have used so far, those that have ended among them."""
    used = 0.0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            used += times.user + times.system + times.children_user + times.children_system
    return used


def race(client: Client, target: dict[str, Any], work_dir: Path) -> dict[str, Any]:
    """Loopwright's best and that of stock's first round, interleaved in this process; microseconds a call."""
    os.environ.update(environment(target["num-cores"]))  # before the first call starts the threads
    real_target = tvm.target.Target(target)
    database = ms.database.JSONDatabase(work_dir=str(work_dir))
    tuned = ms.tir_integration.compile_tir(database, product(SIZE, SIZE, SIZE), real_target)
    modules = {
        "loopwright": client.compile(product(SIZE, SIZE, SIZE), target)["main"],
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
