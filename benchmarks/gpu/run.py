"""``scripts/gpu-check``: the whole service on this machine's NVIDIA GPU, compared with PyTorch and stock MetaSchedule.

Tunes the workloads of `benchmarks.gpu.workloads` on cuda, and with stock MetaSchedule; times each certified program in
turn with stock's and with PyTorch's, where that has CUDA; and writes benchmarks/results/gpu.jsonl after each of them.
Exit status 0 if all are certified, 1 if not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from benchmarks import stock
from benchmarks.gpu.pytorch import beside_pytorch
from benchmarks.gpu.workloads import CASES, Case
from benchmarks.runner import Raw
from benchmarks.services import embedded, scratch
from loopwright import Client, Job
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.workload import make_workload
from workers.child.child_calls import detect_devices
from workers.messages import DetectedDevice

SMOKE = ("--trials", "8", "--seconds", "20", "--stock-seconds", "0", "--only", "softmax")
NEAR = 0.95
"""Share of the speed of stock's best program that counts as nearly as fast."""
_NO_GPU = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--trials", type=int, default=128, help="trials for each workload (default 128)")
    parser.add_argument("--seconds", type=float, default=60, help="seconds of search for each workload (default 60)")
    parser.add_argument(
        "--stock-seconds", type=float, default=300, help="for stock MetaSchedule on each (default 300); 0: without it"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only the workloads with this in their names")
    parser.add_argument("--port", type=int, default=8080)


def run(options: argparse.Namespace, raw: Raw) -> str | int | None:
    console = Console()
    gpus = [device for device in detect_devices() if device.name != "cpu"]
    if not gpus:
        console.print("No NVIDIA GPU that TVM can use was found on this machine: nothing to check.")
        return _NO_GPU
    cases = [case for case in CASES if options.only in case.name]
    if not cases:
        return f"No workload has {options.only!r} in its name; there are: {', '.join(c.name for c in CASES)}."
    results: list[dict[str, Any]] = []
    with embedded(options.port) as client:
        for case in cases:
            results.append(check(client, case, gpus[0].device_class.target_json, options, console))
            raw.replace(record(gpus[0], options, results))
    return 0 if all(result["certified"] for result in results) else 1


def check(client: Client, case: Case, target: str, options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Tune one case through the service; its figures, with PyTorch's beside them where PyTorch has CUDA."""
    submitted = datetime.now(UTC)
    job = client.submit(
        case.func(),
        target=target,
        max_trials=options.trials,
        max_seconds=options.seconds,
        name=case.name,
        math=case.math,
    )
    job.wait(progress=True, console=console)
    task = job.tasks[0]
    result = {
        "name": case.name,
        "state": job.state,
        "certified": task.certified,
        "trials": task.trials,
        "failures": dict(task.failures),
        "baseline_us": task.baseline_us,
        "best_us": task.best_us,
        "speedup": task.speedup,
        "error": task.error,
        "library": task.library and {"name": task.library.name, "us": task.library.us},
        "sandbox": None,
        "device_state": None,
        "stock": None,
        "beside_pytorch": None,
    }
    others = {}
    if options.stock_seconds:
        found = tuned_by_stock(case, options.trials, options.stock_seconds, target)
        result["stock"] = beside_stock(found, job, submitted)
        if found.progress:
            others["stock"] = program(case, found.progress[-1][2], target)
    if task.certified:
        best = client.best(case.func(), target, math=case.math)
        result["sandbox"] = best and best.certificate.sandbox
        state = best and best.certificate.device_state
        result["device_state"] = state and state.model_dump(mode="json")
        result["beside_pytorch"] = beside_pytorch(client.compile(case.func(), target, math=case.math), case, others)
    console.print(result)
    return result


def tuned_by_stock(case: Case, trials: int, seconds: float, target_json: str) -> stock.Found:
    """Tune a case with stock MetaSchedule, and return what was found in the time."""
    mod = module_from_json(make_workload(case.func(), "main").module_json)
    with scratch() as folder:
        return stock.tuned(
            mod, target_json, trials=trials, seed=1, work_dir=folder / "records", environment={}, limit_s=seconds
        )


def program(case: Case, trace_json: str, target_json: str) -> Any:
    """Return the program of a trace that stock found, built as it was measured."""
    target = target_from(target_json)
    mod = module_from_json(make_workload(case.func(), "main").module_json)
    return compile_module(scheduled_module(mod, json.loads(trace_json), target, exact_math=True), target)


def beside_stock(found: stock.Found, job: Job, submitted: datetime) -> dict[str, Any]:
    """Return what stock MetaSchedule found, and when each side knew a program nearly as fast as stock's best.

    Times are by each side's own timings: seconds since the job was submitted, and since stock's process began.
    """
    theirs = [(seconds, latency) for seconds, latency, _ in found.trials if latency is not None]
    ours = [
        ((trial.finished_at - submitted).total_seconds(), trial.median_us / 1e6)
        for trial in job.trials()
        if trial.finished_at is not None and trial.median_us is not None
    ]
    best = min((latency for _, latency in theirs), default=None)
    near = 0.0 if best is None else best / NEAR
    return {
        "trials": len(found.trials),
        "failed": found.failed,
        "best_us": None if best is None else best * 1e6,
        "seconds_until_near": _seconds_until(theirs, near),
        "loopwright_seconds_until_near": _seconds_until(ours, near),
    }


def _seconds_until(progress: Sequence[tuple[float, float]], latency: float) -> float | None:
    """Return when a program was known that takes no longer than ``latency``, or None."""
    return min((seconds for seconds, reached in progress if reached <= latency), default=None)


def record(gpu: DetectedDevice, options: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "gpu": gpu.device_class.model,
        "target": json.loads(gpu.device_class.target_json),
        "tvm": importlib.metadata.version("apache-tvm"),
        "date": datetime.now(UTC).date().isoformat(),
        "trials_per_workload": options.trials,
        "seconds_per_workload": options.seconds,
        "results": results,
    }
