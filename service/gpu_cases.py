"""The workloads of ``scripts/gpu-check``, each with PyTorch's operators for the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import te, topi

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """``arguments``: shape and dtype of each argument, the output last.

    ``reference`` takes the module ``torch`` and the inputs as its tensors, and returns the output.
    """

    name: str
    func: Callable[[], tvm.tirx.PrimFunc]
    arguments: tuple[tuple[Shape, str], ...]
    reference: Callable[..., Any]


def product(m: int, n: int, k: int, dtype: str, sums: str) -> tvm.tirx.PrimFunc:
    """(m, k) by (k, n), summed in ``sums``, which is the result's type."""
    a = te.placeholder((m, k), dtype, name="A")
    b = te.placeholder((k, n), dtype, name="B")
    r = te.reduce_axis((0, k), name="r")

    def element(i: tvm.tirx.Var, j: tvm.tirx.Var) -> tvm.tirx.PrimExpr:
        left, right = a[i, r], b[r, j]
        if dtype != sums:
            left, right = left.astype(sums), right.astype(sums)
        return te.sum(left * right, axis=r)

    return te.create_prim_func([a, b, te.compute((m, n), element, name="C")])


def _softmax(rows: int, columns: int) -> tvm.tirx.PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    return te.create_prim_func([x, topi.nn.softmax(x)])


def _layer_norm(rows: int, columns: int) -> tvm.tirx.PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    scale = te.placeholder((columns,), "float32", name="scale")
    shift = te.placeholder((columns,), "float32", name="shift")
    return te.create_prim_func([x, scale, shift, topi.nn.layer_norm(x, scale, shift, [1], 1e-5)])


def _bias_gelu(rows: int, columns: int) -> tvm.tirx.PrimFunc:
    x = te.placeholder((rows, columns), "float32", name="X")
    bias = te.placeholder((columns,), "float32", name="bias")
    y = topi.add(x, bias)
    half = te.compute(y.shape, lambda i, j: y[i, j] * 0.5 * (1.0 + te.erf(y[i, j] * 0.7071067811865476)), name="gelu")
    return te.create_prim_func([x, bias, half])


def _convolution(channels: int, size: int) -> tvm.tirx.PrimFunc:
    """3x3, stride 1, padding 1, NCHW, a batch of 16."""
    x = te.placeholder((16, channels, size, size), "float32", name="X")
    w = te.placeholder((channels, channels, 3, 3), "float32", name="W")
    return te.create_prim_func([x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1)])


def _matmul(torch: Any, a: Any, b: Any) -> Any:
    return torch.matmul(a, b)


def _product_case(name: str, size: int, dtype: str, sums: str, reference: Callable[..., Any]) -> Case:
    arguments = (((size, size), dtype), ((size, size), dtype), ((size, size), sums))
    return Case(name, lambda: product(size, size, size, dtype, sums), arguments, reference)


_ROWS = (16384, 1024)
_WIDE = (1024,)
_IMAGES = (16, 128, 28, 28)

CASES = (
    Case(
        "softmax 16384x1024 fp32",
        lambda: _softmax(*_ROWS),
        ((_ROWS, "float32"),) * 2,
        lambda torch, x: torch.softmax(x, dim=-1),
    ),
    _product_case("product 2048x2048x2048 fp32", 2048, "float32", "float32", _matmul),
    _product_case(
        "product 4096x4096x4096 fp16, sums fp32",
        4096,
        "float16",
        "float32",
        lambda torch, a, b: torch.mm(a, b, out_dtype=torch.float32),
    ),
    Case(
        "layer norm 16384x1024 fp32",
        lambda: _layer_norm(*_ROWS),
        ((_ROWS, "float32"), (_WIDE, "float32"), (_WIDE, "float32"), (_ROWS, "float32")),
        lambda torch, x, scale, shift: torch.nn.functional.layer_norm(x, _WIDE, scale, shift),
    ),
    Case(
        "bias and GELU 16384x1024 fp32",
        lambda: _bias_gelu(*_ROWS),
        ((_ROWS, "float32"), (_WIDE, "float32"), (_ROWS, "float32")),
        lambda torch, x, bias: torch.nn.functional.gelu(x + bias),
    ),
    _product_case("product 4096x4096x4096 fp16", 4096, "float16", "float16", _matmul),
    _product_case(
        "product 4096x4096x4096 int8, sums int32",
        4096,
        "int8",
        "int32",
        lambda torch, a, b: torch._int_mm(a, b),
    ),
    Case(
        "convolution 3x3, 16x128x28x28, fp32",
        lambda: _convolution(_IMAGES[1], _IMAGES[2]),
        ((_IMAGES, "float32"), ((_IMAGES[1], _IMAGES[1], 3, 3), "float32"), (_IMAGES, "float32")),
        lambda torch, x, w: torch.nn.functional.conv2d(x, w, padding=1),
    ),
    Case(
        "product 16x8192x8192 fp16, sums fp32",
        lambda: product(16, 8192, 8192, "float16", "float32"),
        (((16, 8192), "float16"), ((8192, 8192), "float16"), ((16, 8192), "float32")),
        lambda torch, a, b: torch.mm(a, b, out_dtype=torch.float32),
    ),
)
