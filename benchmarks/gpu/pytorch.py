"""A certified program beside PyTorch, eager and compiled, and others, on one GPU, in one process, in turn."""

from __future__ import annotations

import functools
import importlib.util
import statistics
from collections.abc import Callable, Mapping
from typing import Any

import tvm

from benchmarks.gpu.workloads import Case
from loopwright.codegen.math_mode import TF32
from tuner.workload import make_workload

_ROUNDS = 21
_SAMPLE_SECONDS = 0.02


def beside_pytorch(module: Any, case: Case, others: Mapping[str, Any]) -> dict[str, Any] | None:
    """Time a program beside PyTorch and ``others``, programs by name. Returns None where PyTorch has no CUDA.

    Returns:
        ``us``: microseconds a call, medians of interleaved rounds; ``over_loopwright``: of PyTorch, eager and compiled
        (``max-autotune`` without CUDA graphs), and the others, the quartiles of the ratios to ours within a round;
        ``not_compiled``:
        why there is no compiled PyTorch, or None; ``error``: the norm of the difference to PyTorch's result, relative
        to the norm of that.
    """
    if importlib.util.find_spec("torch") is None:
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    permits_tf32 = case.math == TF32
    torch.backends.cuda.matmul.allow_tf32 = permits_tf32
    # cuDNN's default is TF32, also for convolutions that nobody permitted to use it.
    torch.backends.cudnn.allow_tf32 = permits_tf32
    tensors = [_random(torch, arg.shape, arg.dtype) for arg in make_workload(case.func(), case.name).args]
    *inputs, output = tensors
    arguments = [tvm.runtime.from_dlpack(tensor) for tensor in tensors]

    def eager(*tensors: Any) -> Any:
        return case.reference(torch, *tensors)

    calls: dict[str, Callable[[], object]] = {
        name: functools.partial(program["main"], *arguments)
        for name, program in {"loopwright": module, **others}.items()
    }
    calls["eager"] = lambda: eager(*inputs)
    refused = None
    with torch.inference_mode():
        compiled = torch.compile(eager, mode="max-autotune-no-cudagraphs")
        try:
            compiled(*inputs)
            calls["compiled"] = lambda: compiled(*inputs)
        except Exception as failure:
            refused = f"{type(failure).__name__}: {failure}"[:500]
        module["main"](*arguments)
        expected = eager(*inputs)
        torch.cuda.synchronize()
        norm = torch.linalg.vector_norm
        error = norm(output.double() - expected.double()) / norm(expected.double())
        counts = {
            name: max(1, int(_SAMPLE_SECONDS * 1e6 / max(_timed(torch, call, 3), 1.0))) for name, call in calls.items()
        }
        rounds = [{name: _timed(torch, call, counts[name]) for name, call in calls.items()} for _ in range(_ROUNDS)]
    return {
        "us": {name: statistics.median(row[name] for row in rounds) for name in calls},
        "over_loopwright": {
            name: statistics.quantiles((row[name] / row["loopwright"] for row in rounds), n=4)
            for name in calls
            if name != "loopwright"
        },
        "not_compiled": refused,
        "error": float(error),
        "rounds": _ROUNDS,
        "pytorch": torch.__version__,
        "math": case.math,
    }


def _random(torch: Any, shape: tuple[int, ...], dtype: str) -> Any:
    if dtype.startswith("int"):
        return torch.randint(-128, 128, shape, device="cuda").to(getattr(torch, dtype))
    return torch.randn(shape, device="cuda", dtype=getattr(torch, dtype))


def _timed(torch: Any, call: Callable[[], object], number: int) -> float:
    """Return microseconds a call, by CUDA's events. The first call of all also compiles."""
    call()
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    begin.record()
    for _ in range(number):
        call()
    end.record()
    torch.cuda.synchronize()
    return float(begin.elapsed_time(end)) * 1e3 / number
