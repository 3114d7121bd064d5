"""Programs that the acceptance tests submit, and short ways to variants of them."""

from __future__ import annotations

MM_RELU = """\
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(
        A: T.Buffer((128, 128), "float32"), B: T.Buffer((128, 128), "float32"), C: T.Buffer((128, 128), "float32")
    ):
        T.func_attr({"tirx.noalias": True})
        Y = T.sblock_alloc_buffer((128, 128), dtype="float32")
        for i, j, k in T.grid(128, 128, 128):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(128, 128):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""
"""A 128x128x128 product, then relu."""

MM_RELU_RENAMED = """\
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module
class Other:
    @T.prim_func(s_tir=True)
    def main(
        left: T.Buffer((128, 128), "float32"),
        right: T.Buffer((128, 128), "float32"),
        out: T.Buffer((128, 128), "float32"),
    ):
        T.func_attr({"tirx.noalias": True})
        product = T.sblock_alloc_buffer((128, 128), dtype="float32")
        for row, column, depth in T.grid(128, 128, 128):
            with T.sblock("Y"):
                r, c, d = T.axis.remap("SSR", [row, column, depth])
                with T.init():
                    product[r, c] = T.float32(0)
                product[r, c] = product[r, c] + left[r, d] * right[d, c]
        for row, column in T.grid(128, 128):
            with T.sblock("C"):
                r, c = T.axis.remap("SS", [row, column])
                out[r, c] = T.max(product[r, c], T.float32(0))
"""
"""`MM_RELU` with other names for its variables."""

PERCEPTRON = """\
@I.ir_module
class Perceptron:
    @R.function
    def main(
        x: R.Tensor((4, 64), "float32"),
        w0: R.Tensor((64, 32), "float32"),
        b0: R.Tensor((32,), "float32"),
        w1: R.Tensor((32, 10), "float32"),
        b1: R.Tensor((10,), "float32"),
    ) -> R.Tensor((4, 10), "float32"):
        with R.dataflow():
            hidden = R.nn.relu(R.add(R.matmul(x, w0), b0))
            scores = R.add(R.matmul(hidden, w1), b1)
            R.output(scores)
        return scores
"""
"""A two-layer perceptron in Relax: two functions to tune."""

SYMBOLIC = """\
@T.prim_func(s_tir=True)
def main(a: T.handle, b: T.handle):
    n = T.int64()
    A = T.match_buffer(a, (n, 64), "float32")
    B = T.match_buffer(b, (n, 64), "float32")
    for i, j in T.grid(n, 64):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

NO_BLOCK = """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = T.float32(0)
"""

ATTACK = """\
from tvm.script import tirx as T

@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32")):
    for i in range(T.__loader__.get_data.__globals__["sys"].modules["os"].system("touch {marker}") + 4):
        with T.sblock("A"):
            vi = T.axis.spatial(4, i)
            A[vi] = T.float32(0)
"""
"""Runs a command where it is parsed without a gate; ``{marker}`` is a file to touch."""

CALLS_OUT = """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = T.call_extern("float32", "system", A[vi])
"""


def product(n: int, m: int = 64, k: int = 64) -> str:
    """An n x m x k product as TVMScript: a workload of its own for each shape."""
    return f"""\
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({n}, {k}), "float32"), B: T.Buffer(({k}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
