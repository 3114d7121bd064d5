"""``scripts/gpu-check``: the whole service on this machine's NVIDIA GPU, with results compared with PyTorch's.

Tunes an fp32 and an fp16 product and a softmax on cuda, and writes benchmarks/results/gpu.json. Exit status 0 if all
are certified, 1 if not, 2 without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tvm
from rich.console import Console
from tvm import te, topi

from loopwright import Client
from service.settings import Settings, ensure_token
from service.supervisor import Supervisor
from workers.child_calls import detect_devices
from workers.messages import DetectedDevice

RESULTS = Path(__file__).resolve().parent.parent / "benchmarks" / "results" / "gpu.json"
_ROUNDS = 21
_SAMPLE_SECONDS = 0.02
_NO_GPU = 2


@dataclass(frozen=True, slots=True)
class Case:
    """A workload with PyTorch's operator for it; arguments are the inputs in order, the output last."""

    name: str
    func: Callable[[], tvm.tirx.PrimFunc]
    shapes: tuple[tuple[int, ...], ...]
    dtype: str
    torch_op: str


def _matmul(size: int, dtype: str) -> tvm.tirx.PrimFunc:
    a = te.placeholder((size, size), dtype, name="A")
    b = te.placeholder((size, size), dtype, name="B")
    k = te.reduce_axis((0, size), name="k")
    c = te.compute((size, size), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return te.create_prim_func([a, b, c])


def _softmax(rows: int, columns: int) -> tvm.tirx.PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    return te.create_prim_func([x, topi.nn.softmax(x)])


CASES = (
    Case("matmul 1024x1024x1024 fp32", lambda: _matmul(1024, "float32"), ((1024, 1024),) * 3, "float32", "matmul"),
    Case("matmul 1024x1024x1024 fp16", lambda: _matmul(1024, "float16"), ((1024, 1024),) * 3, "float16", "matmul"),
    Case("softmax 4096x1024 fp32", lambda: _softmax(4096, 1024), ((4096, 1024),) * 2, "float32", "softmax"),
)


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/gpu-check", description=__doc__)
    parser.add_argument("--trials", type=int, default=128, help="trials for each workload (default 128)")
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
    with tempfile.TemporaryDirectory(prefix="loopwright-gpu-") as data_dir:
        settings = Settings(data_dir=Path(data_dir), port=options.port)
        supervisor = Supervisor(settings)
        supervisor.handle_signals()
        with supervisor.running(), Client(supervisor.url, ensure_token(settings)) as client:
            target_json = gpus[0].device_class.target_json
            results = [check(client, case, target_json, options.trials, console) for case in CASES]
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(report(gpus[0], options.trials, results), indent=2) + "\n")
    console.print(f"Written: {options.output}")
    sys.exit(0 if all(result["certified"] for result in results) else 1)


def check(client: Client, case: Case, target: str, trials: int, console: Console) -> dict[str, Any]:
    """Tune one case through the service; its figures, with PyTorch's beside them where PyTorch has CUDA."""
    job = client.submit(case.func(), target=target, max_trials=trials, name=case.name)
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
        "beside_pytorch": None,
    }
    if task.certified:
        result["beside_pytorch"] = beside_pytorch(client.compile(case.func(), target), case)
    console.print(result)
    return result


def beside_pytorch(module: Any, case: Case) -> dict[str, Any] | None:
    """Both timed here, in turn: microseconds a call (medians) and the ratio. None without PyTorch on CUDA."""
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    tensors = [torch.randn(shape, device="cuda", dtype=getattr(torch, case.dtype)) for shape in case.shapes]
    arguments = [tvm.runtime.from_dlpack(tensor) for tensor in tensors]
    operator = torch.matmul if case.torch_op == "matmul" else lambda x: torch.softmax(x, dim=-1)

    def ours() -> None:
        module["main"](*arguments)

    def theirs() -> None:
        operator(*tensors[:-1])

    def timed(call: Callable[[], None], number: int) -> float:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        begin.record()
        for _ in range(number):
            call()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e3 / number

    counts = [max(1, int(_SAMPLE_SECONDS * 1e6 / max(timed(call, 3), 1.0))) for call in (ours, theirs)]
    pairs = [(timed(ours, counts[0]), timed(theirs, counts[1])) for _ in range(_ROUNDS)]
    return {
        "loopwright_us": statistics.median(first for first, _ in pairs),
        "pytorch_us": statistics.median(second for _, second in pairs),
        "pytorch_over_loopwright": statistics.median(second / first for first, second in pairs),
        "rounds": _ROUNDS,
        "pytorch": torch.__version__,
    }


def report(gpu: DetectedDevice, trials: int, results: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "gpu": gpu.device_class.model,
        "target": json.loads(gpu.device_class.target_json),
        "tvm": importlib.metadata.version("apache-tvm"),
        "date": datetime.now(UTC).date().isoformat(),
        "trials_per_workload": trials,
        "results": results,
    }


if __name__ == "__main__":
    main()
