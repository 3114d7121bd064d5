"""Scripts and modules that the gate's tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.s_tir.meta_schedule.testing import te_workload

MATMUL = """\
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")):
    T.func_attr({"tirx.noalias": True})
    for i, j, k in T.grid(128, 128, 128):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""

RELAX = """\
from tvm.script import ir as I, tirx as T, relax as R

@I.ir_module
class Module:
    I.module_attrs({"name": "a (b)"})

    @T.prim_func(private=True, s_tir=True)
    def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.sblock("y"):
                vi = T.axis.spatial(n, i)
                y[vi] = T.if_then_else(x[vi] < T.float32(0), T.float32(0), x[vi] * T.float32(2))

    @R.function
    def main(input: R.Tensor(("n", "n * 2"), dtype="float32")) -> R.Tensor(("n", "n * 2"), dtype="float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            lv = R.nn.relu(input)
            gv: R.Tensor((n, n * 2), dtype="float32") = R.add(lv, R.const(1.5, "float32"))
            R.output(gv)
        return gv
"""

WORKLOADS = ("C1D", "C2D", "C3D", "CAP", "DEP", "DIL", "GMM", "GRP", "T2D", "NRM", "SFM", "CBR", "TBG")

_N = tirx.Var("n", "int64")
_OPERATORS: dict[str, tuple[Callable[..., Any], list[tuple[Any, ...]], list[str]]] = {
    "softmax": (relax.op.nn.softmax, [(4, _N)], ["float32"]),
    "gelu": (relax.op.nn.gelu, [(4, 16)], ["float32"]),
    "layer_norm": (
        lambda x, g, b: relax.op.nn.layer_norm(x, g, b, axes=[-1]),
        [(4, 16), (16,), (16,)],
        ["float32"] * 3,
    ),
    "max_pool": (lambda x: relax.op.nn.max_pool2d(x, (2, 2)), [(1, 4, 8, 8)], ["float32"]),
    "avg_pool": (lambda x: relax.op.nn.avg_pool2d(x, (3, 3), (2, 2), (1, 1)), [(1, 4, 8, 8)], ["float32"]),
    "resize": (lambda x: relax.op.image.resize2d(x, size=(16, 16)), [(1, 4, 8, 8)], ["float32"]),
    "conv_relu": (
        lambda x, w: relax.op.nn.relu(relax.op.nn.conv2d(x, w, padding=1)),
        [(1, 4, 8, 8), (8, 4, 3, 3)],
        ["float32"] * 2,
    ),
    "matmul_int8": (lambda x, w: relax.op.matmul(x, w, out_dtype="int32"), [(16, 16)] * 2, ["int8"] * 2),
    "matmul_fp16": (relax.op.matmul, [(_N, 16), (16, 16)], ["float16"] * 2),
    "matmul_bf16": (relax.op.matmul, [(16, 16)] * 2, ["bfloat16"] * 2),
    "cumsum": (lambda x: relax.op.cumsum(x, axis=1), [(4, 16)], ["float32"]),
    "argmax": (lambda x: relax.op.argmax(x, axis=1), [(4, 16)], ["float32"]),
    "isnan": (lambda x: relax.op.where(relax.op.isnan(x), relax.op.sign(x), relax.op.round(x)), [(4, 16)], ["float32"]),
    "shift": (lambda x: relax.op.left_shift(relax.op.bitwise_not(x), relax.const(2, "int32")), [(4,)], ["int32"]),
    "attention": (relax.op.nn.attention, [(1, 8, 2, 16)] * 3, ["float32"] * 3),
    "reshape": (lambda x: relax.op.reshape(x, (_N * 4,)), [(_N, 4)], ["float32"]),
    "scatter": (
        lambda d, i, u: relax.op.scatter_elements(d, i, u, 0),
        [(4, 4), (2, 4), (2, 4)],
        ["float32", "int64", "float32"],
    ),
}


def modules() -> Iterator[tuple[str, tvm.IRModule]]:
    """TVM's sample workloads, and Relax operators before and after they are lowered and fused."""
    for name in WORKLOADS:
        yield name, tvm.IRModule({"main": te_workload.create_te_workload(name, 0)})
    lower = tvm.ir.transform.Sequential(
        [
            relax.transform.LegalizeOps(),
            relax.transform.AnnotateTIROpPattern(),
            relax.transform.FuseOps(),
            relax.transform.FuseTIR(),
        ]
    )
    for name, (operator, shapes, dtypes) in _OPERATORS.items():
        params = [
            relax.Var(f"x{i}" if i else "input", relax.TensorType(shape, dtype))
            for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))
        ]
        builder = relax.BlockBuilder()
        with builder.function("main", params):
            with builder.dataflow():
                out = builder.emit_output(operator(*params))
            builder.emit_func_output(out)
        mod = builder.get()
        yield name, mod
        with tvm.target.Target("llvm"):
            yield f"{name}, lowered", lower(mod)


def prim_funcs() -> Iterator[tuple[str, tvm.tirx.PrimFunc]]:
    for name, mod in modules():
        for function in mod.functions.values():
            if isinstance(function, tvm.tirx.PrimFunc):
                yield name, function


def with_constants() -> tvm.IRModule:
    """A module with two constants, which TVM prints in `metadata`."""
    x, builder = relax.Var("x", relax.TensorType((4,), "float32")), relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            scaled = builder.emit(relax.op.multiply(x, relax.const(np.arange(4, dtype="float32"))))
            out = builder.emit_output(relax.op.add(scaled, relax.const(np.ones(4, "float32"))))
        builder.emit_func_output(out)
    return builder.get()
