"""``scripts/gpu-check``: the whole service on this machine's NVIDIA GPU, compared with PyTorch and stock MetaSchedule.

Tunes the workloads of `benchmarks.gpu.workloads` on cuda, and with stock MetaSchedule; times each certified program in
turn with stock's and with PyTorch's, where that has CUDA; and writes benchmarks/results/gpu.json after each of them.
Exit status 0 if all are certified, 1 if not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.gpu import stock
from benchmarks.gpu.pytorch import beside_pytorch
from benchmarks.gpu.workloads import CASES, Case
from benchmarks.results import RAW
from loopwright import Client, Job
from service.settings import Settings, ensure_token
from service.supervisor import Supervisor
from workers.child_calls import detect_devices
from workers.messages import DetectedDevice

RESULTS = RAW / "gpu.json"
_NO_GPU = 2


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/gpu-check", description=__doc__)
    parser.add_argument("--trials", type=int, default=128, help="trials for each workload (default 128)")
    parser.add_argument("--seconds", type=float, default=60, help="seconds of search for each workload (default 60)")
    parser.add_argument(
        "--stock-seconds", type=float, default=300, help="for stock MetaSchedule on each (default 300); 0: without it"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="only the workloads with this in their names")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--output", type=Path, default=RESULTS)
    return parser


def main() -> None:
    options = parser().parse_args()
    console = Console()
    gpus = [device for device in detect_devices() if device.name != "cpu"]
    if not gpus:
        console.print("No NVIDIA GPU that TVM can use was found on this machine: nothing to check.")
        sys.exit(_NO_GPU)
    cases = [case for case in CASES if options.only in case.name]
    if not cases:
        console.print(f"No workload has {options.only!r} in its name; there are: {', '.join(c.name for c in CASES)}.")
        sys.exit(1)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="loopwright-gpu-") as data_dir:
        settings = Settings(data_dir=Path(data_dir), port=options.port)
        supervisor = Supervisor(settings)
        supervisor.handle_signals()
        with supervisor.running(), Client(supervisor.url, ensure_token(settings)) as client:
            for case in cases:
                results.append(check(client, case, gpus[0].device_class.target_json, options, console))
                options.output.write_text(json.dumps(report(gpus[0], options, results), indent=2) + "\n")
    console.print(f"Written: {options.output}")
    sys.exit(0 if all(result["certified"] for result in results) else 1)


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
        found = stock.tuned(case.name, options.trials, options.stock_seconds, target)
        result["stock"] = beside_stock(found, job, submitted)
        if found.trace_json is not None:
            others["stock"] = stock.program(case.func(), found.trace_json, target)
    if task.certified:
        best = client.best(case.func(), target, math=case.math)
        result["sandbox"] = best and best.certificate.sandbox
        state = best and best.certificate.device_state
        result["device_state"] = state and state.model_dump(mode="json")
        result["beside_pytorch"] = beside_pytorch(client.compile(case.func(), target, math=case.math), case, others)
    console.print(result)
    return result


def beside_stock(found: stock.Found, job: Job, submitted: datetime) -> dict[str, Any]:
    """Return what stock MetaSchedule found, and when each side knew a program nearly as fast as stock's best.

    Times are by each side's own timings: seconds since the job was submitted, and since stock's process began.
    """
    ours = [
        ((trial.finished_at - submitted).total_seconds(), trial.median_us / 1e6)
        for trial in job.trials()
        if trial.finished_at is not None and trial.median_us is not None
    ]
    near = found.best / stock.NEAR
    return {
        "trials": found.trials,
        "failed": found.failed,
        "best_us": found.best * 1e6 if found.progress else None,
        "seconds_until_near": stock.seconds_until(found.progress, near),
        "loopwright_seconds_until_near": stock.seconds_until(ours, near) if found.progress else None,
    }


def report(gpu: DetectedDevice, options: argparse.Namespace, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "gpu": gpu.device_class.model,
        "target": json.loads(gpu.device_class.target_json),
        "tvm": importlib.metadata.version("apache-tvm"),
        "date": datetime.now(UTC).date().isoformat(),
        "trials_per_workload": options.trials,
        "seconds_per_workload": options.seconds,
        "results": results,
    }


if __name__ == "__main__":
    main()
