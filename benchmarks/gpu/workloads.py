"""What ``scripts/gpu-check`` tunes, each with PyTorch's operators for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import te, topi

from loopwright.codegen.math_mode import MathMode

ROWS = (16384, 1024)


@dataclass(frozen=True, slots=True)
class Case:
    """``func``: its output is the last argument. ``reference`` takes the module ``torch`` and the inputs as tensors.

    ``math`` is the precision of products of float32, of the service's programs and of PyTorch's.
    """

    name: str
    func: Callable[[], tvm.tirx.PrimFunc]
    reference: Callable[..., Any]
    math: MathMode = "fp32"


def product(m: int, n: int, k: int, dtype: str, sums: str) -> tvm.tirx.PrimFunc:
    """(m, k) by (k, n), summed in ``sums``, which is the result's type."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    return te.create_prim_func([a, b, topi.nn.matmul(a, b, out_dtype=sums)])


def _softmax() -> tvm.tirx.PrimFunc:
    x = te.placeholder(ROWS, "float32", name="X")
    return te.create_prim_func([x, topi.nn.softmax(x)])


def _layer_norm() -> tvm.tirx.PrimFunc:
    x = te.placeholder(ROWS, "float32", name="X")
    scale = te.placeholder(ROWS[1:], "float32", name="scale")
    shift = te.placeholder(ROWS[1:], "float32", name="shift")
    return te.create_prim_func([x, scale, shift, topi.nn.layer_norm(x, scale, shift, [1], 1e-5)])


def _bias_gelu() -> tvm.tirx.PrimFunc:
    x = te.placeholder(ROWS, "float32", name="X")
    bias = te.placeholder(ROWS[1:], "float32", name="bias")
    y = topi.add(x, bias)
    gelu = te.compute(ROWS, lambda i, j: y[i, j] * 0.5 * (1.0 + te.erf(y[i, j] * 0.5**0.5)), name="gelu")
    return te.create_prim_func([x, bias, gelu])


def _convolution() -> tvm.tirx.PrimFunc:
    x = te.placeholder((16, 128, 28, 28), "float32", name="X")
    w = te.placeholder((128, 128, 3, 3), "float32", name="W")
    return te.create_prim_func([x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1)])


def _mm_in_fp32(torch: Any, a: Any, b: Any) -> Any:
    return torch.mm(a, b, out_dtype=torch.float32)


# The first ones are those that a short run should not do without.
CASES = (
    Case("softmax 16384x1024 fp32", _softmax, lambda torch, x: torch.softmax(x, dim=-1)),
    Case(
        "product 2048x2048x2048 fp32",
        lambda: product(2048, 2048, 2048, "float32", "float32"),
        lambda torch, a, b: torch.matmul(a, b),
    ),
    Case(
        "product 4096x4096x4096 fp16, sums fp32", lambda: product(4096, 4096, 4096, "float16", "float32"), _mm_in_fp32
    ),
    Case(
        "layer norm 16384x1024 fp32",
        _layer_norm,
        lambda torch, x, scale, shift: torch.nn.functional.layer_norm(x, ROWS[1:], scale, shift),
    ),
    Case("bias and GELU 16384x1024 fp32", _bias_gelu, lambda torch, x, bias: torch.nn.functional.gelu(x + bias)),
    Case(
        "product 4096x4096x4096 fp16",
        lambda: product(4096, 4096, 4096, "float16", "float16"),
        lambda torch, a, b: torch.matmul(a, b),
    ),
    Case(
        "convolution 3x3, 16x128x28x28, fp32",
        _convolution,
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
    ),
    Case("product 16x8192x8192 fp16, sums fp32", lambda: product(16, 8192, 8192, "float16", "float32"), _mm_in_fp32),
    Case(
        "product 2048x2048x2048 tf32",
        lambda: product(2048, 2048, 2048, "float32", "float32"),
        lambda torch, a, b: torch.matmul(a, b),
        "tf32",
    ),
)
