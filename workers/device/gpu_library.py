"""The yardstick of GPUs in the closing race: cuBLAS, cuDNN and PyTorch's own kernels, where the worker has PyTorch.

What a function computes is not known: the calls of `workers.device.gpu_operations` are tried, and one that reproduces
the function's result is used. A worker without PyTorch, or whose PyTorch has no CUDA or does not load, has no
yardstick.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import tvm

from loopwright.codegen.arrays import compare, tolerance
from loopwright.codegen.math_mode import FP32, TF32, MathMode
from workers.device.arguments import to_device
from workers.device.gpu_operations import Call, Tensor, candidates
from workers.device.yardstick import Array, Yardstick, only_result

_DTYPES = ("float64", "float32", "float16", "bfloat16", "int32")
"""Of results."""


def yardstick(
    inputs: Sequence[Array],
    outputs: Sequence[bool],
    expected: Sequence[Array],
    device: tvm.runtime.Device,
    *,
    math: MathMode = FP32,
) -> Yardstick | None:
    """Return the call that `find` returns as a yardstick of the closing race, or None.

    Products and convolutions of float32 are computed in float32, unless ``math`` permits TF32. cuDNN chooses its
    algorithm by trial.
    """
    torch = loaded()
    if torch is None or not torch.cuda.is_available():
        return None
    torch.cuda.set_device(device.index)
    torch.backends.cuda.matmul.allow_tf32 = math == TF32
    torch.backends.cudnn.allow_tf32 = math == TF32
    torch.backends.cudnn.benchmark = True
    call = find(torch, inputs, outputs, expected, device, math=math)
    torch.cuda.empty_cache()  # the contenders need the memory of calls that were tried
    name = library_name(torch) + (", TF32 permitted" if math == TF32 else "")
    return None if call is None else Yardstick(name, timed(torch.cuda, call))


def loaded() -> Any:
    """Return the module ``torch``, or None if there is none that loads."""
    if sys.modules.get("torch") is None:
        sys.modules.pop("torch", None)  # a warm child puts None there, so that TVM does not load it
    try:
        return import_module("torch")
    except Exception:  # an incomplete or unfit installation fails in many ways
        return None


def library_name(torch: Any) -> str:
    """Return PyTorch's version, and those of CUDA, whose cuBLAS it has, and of cuDNN as far as it has them."""
    libraries = []
    if torch.version.cuda is not None:
        libraries.append(f"cuBLAS of CUDA {torch.version.cuda}")
    number = torch.backends.cudnn.version()
    if number is not None:
        # cuDNN 9 has two digits for a minor version, its predecessors one.
        thousands = 10_000 if number >= 90_000 else 1_000
        libraries.append(f"cuDNN {number // thousands}.{number % thousands // 100}.{number % 100}")
    version = torch.__version__.partition("+")[0]
    return f"PyTorch {version} ({', '.join(libraries)})" if libraries else f"PyTorch {version}"


def find(
    torch: Any,
    inputs: Sequence[Array],
    outputs: Sequence[bool],
    expected: Sequence[Array],
    device: tvm.runtime.Device,
    *,
    math: MathMode = FP32,
) -> Call | None:
    """Return a call on the device that computes the only output among ``expected`` from ``inputs``, or None.

    ``expected`` are the values of all arguments after a call of the function. If the result of the call has a narrower
    type than the function's, it is compared with the narrower type's tolerance.
    """
    function = only_result(inputs, outputs, expected)
    if function is None or str(function[1].dtype) not in _DTYPES:
        return None
    given, result = function
    try:
        tensors = [torch.from_dlpack(array) for array in to_device(given, device)]
        for call in candidates(torch, tensors, result.shape, str(result.dtype)):
            if _computes(call, result, math):
                return call
    except (RuntimeError, TypeError, ValueError):
        return None  # no memory for it, or a type that PyTorch does not have
    return None


def _computes(call: Call, result: Array, math: MathMode) -> bool:
    try:
        found = call()
    except (RuntimeError, TypeError):
        return False  # PyTorch does not have the operator for these types, or for this device
    dtype = str(found.dtype).removeprefix("torch.")
    if tuple(found.shape) != result.shape:
        return False
    rtol = max(tolerance(dtype, math), tolerance(str(result.dtype), math))
    return compare(_on_host(found), result, rtol).close


def _on_host(tensor: Tensor) -> Array:
    """Return a copy in float64, since NumPy has no bfloat16 that PyTorch knows."""
    return tensor.cpu().double().numpy()


def timed(cuda: Any, call: Call) -> Callable[[int], float]:
    """Return a function of the number of calls: their mean by events of CUDA, as TVM times the contenders.

    One call before them does not count; for 0 it is a single call, with nothing before it.
    """

    def seconds(number: int) -> float:
        if number:
            call()
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        for _ in range(max(1, number)):
            call()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3 / max(1, number)

    return seconds
