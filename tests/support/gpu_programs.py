"""Fourteen workloads of GPUs: products of fp32 and of what tensor cores take, and what models have beside them."""

from __future__ import annotations

from collections.abc import Callable

import tvm
from tvm import te, topi

from benchmarks.gpu.workloads import product

SIZE = 1024
_HEADS, _TOKENS, _CHANNELS = 8, 256, 64


def _convolution(dtype: str, sums: str) -> tvm.tirx.PrimFunc:
    x = te.placeholder((1, 64, 28, 28), dtype, name="X")
    w = te.placeholder((64, 64, 3, 3), dtype, name="W")
    return te.create_prim_func([x, w, topi.nn.conv2d_nchw(x, w, 1, 1, 1, out_dtype=sums)])


def _convolution_nhwc(dtype: str, sums: str) -> tvm.tirx.PrimFunc:
    x = te.placeholder((1, 28, 28, 64), dtype, name="X")
    w = te.placeholder((3, 3, 64, 64), dtype, name="W")
    return te.create_prim_func([x, w, topi.nn.conv2d_nhwc(x, w, 1, 1, 1, out_dtype=sums)])


def _softmax() -> tvm.tirx.PrimFunc:
    x = te.placeholder((SIZE, SIZE), "float32", name="X")
    return te.create_prim_func([x, topi.nn.softmax(x)])


def _layer_norm() -> tvm.tirx.PrimFunc:
    x = te.placeholder((SIZE, SIZE), "float32", name="X")
    scale, shift = (te.placeholder((SIZE,), "float32", name=name) for name in ("scale", "shift"))
    return te.create_prim_func([x, scale, shift, topi.nn.layer_norm(x, scale, shift, [1], 1e-5)])


def _attention() -> tvm.tirx.PrimFunc:
    q, k, v = (te.placeholder((_HEADS, _TOKENS, _CHANNELS), "float32", name=name) for name in "QKV")
    scores = topi.nn.batch_matmul(q, k, transpose_a=False, transpose_b=True)
    weights = topi.nn.softmax(scores * _CHANNELS**-0.5)
    return te.create_prim_func([q, k, v, topi.nn.batch_matmul(weights, v, transpose_a=False, transpose_b=False)])


PROGRAMS: dict[str, Callable[[], tvm.tirx.PrimFunc]] = {
    "product fp32": lambda: product(SIZE, SIZE, SIZE, "float32", "float32"),
    "product fp16, sums fp32": lambda: product(SIZE, SIZE, SIZE, "float16", "float32"),
    "product fp16, sums fp16": lambda: product(SIZE, SIZE, SIZE, "float16", "float16"),
    "product bf16, sums fp32": lambda: product(SIZE, SIZE, SIZE, "bfloat16", "float32"),
    "product int8, sums int32": lambda: product(SIZE, SIZE, SIZE, "int8", "int32"),
    "convolution fp32": lambda: _convolution("float32", "float32"),
    "convolution fp16, sums fp32": lambda: _convolution("float16", "float32"),
    "convolution bf16, sums fp32": lambda: _convolution("bfloat16", "float32"),
    "convolution int8, sums int32": lambda: _convolution("int8", "int32"),
    "convolution NHWC fp16, sums fp32": lambda: _convolution_nhwc("float16", "float32"),
    "softmax fp32": _softmax,
    "layer norm fp32": _layer_norm,
    "attention fp32": _attention,
    "GEMV fp16, sums fp32": lambda: product(1, 2 * SIZE, 2 * SIZE, "float16", "float32"),
}
