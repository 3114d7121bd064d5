"""Programs that tests submit, as TVMScript: nothing here imports TVM."""

from __future__ import annotations

from typing import Any


def product(n: int, m: int = 64, k: int = 64) -> str:
    """Return an n x m x k product as TVMScript: a workload of its own for each shape.

    The first factor is squared, so that NumPy has no call that computes the same, which a closing race would time, too.
    """
    return f"""\
@T.prim_func(s_tir=True)
def main(A: T.Buffer(({n}, {k}), "float32"), B: T.Buffer(({k}, {m}), "float32"), C: T.Buffer(({n}, {m}), "float32")):
    T.func_attr({{"tirx.noalias": True}})
    for i, j, k in T.grid({n}, {m}, {k}):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * A[vi, vk] * B[vk, vj]
"""


def product_relu(n: int, dtype: str = "float32") -> str:
    """Return an n x n x n product, then relu, as a module in TVMScript."""
    matrix = f'T.Buffer(({n}, {n}), "{dtype}")'
    return f"""\
@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: {matrix}, B: {matrix}, C: {matrix}):
        T.func_attr({{"tirx.noalias": True}})
        Y = T.sblock_alloc_buffer(({n}, {n}), dtype="{dtype}")
        for i, j, k in T.grid({n}, {n}, {n}):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.{dtype}(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid({n}, {n}):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.{dtype}(0))
"""


def renamed(script: str) -> str:
    """Return `product_relu` with other names for function and buffers, and without its promise of noalias.

    The blocks keep their names: traces refer to blocks by name.
    """
    return (
        script.replace("Y", "Accumulated")
        .replace('sblock("Accumulated")', 'sblock("Y")')
        .replace("def main", "def mm_relu")
        .replace('T.func_attr({"tirx.noalias": True})', "")
    )


MM_RELU = "from tvm.script import ir as I\nfrom tvm.script import tirx as T\n\n\n" + product_relu(64)
"""As it stands in a user's file."""
RENAMED = renamed(MM_RELU)
"""The same program."""
OTHER_BLOCKS = RENAMED.replace('sblock("Y")', 'sblock("product")').replace('sblock("C")', 'sblock("relu")')
"""The same computation, but another program: its blocks, to which traces refer, have other names."""


def schedule_mm_relu(sch: Any) -> None:
    """Tile and vectorise the product; the sizes of its row tiles are left open."""
    block = sch.get_sblock("Y")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.parallel(outer)
    j_outer, j_inner = sch.split(j, [None, 16])
    sch.reorder(outer, j_outer, inner, k, j_inner)
    sch.vectorize(j_inner)


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

TUTORIAL = """
import tvm
from tvm.script import ir as I, relax as R, tir as T

@tvm.script.ir_module
class Module:
    @T.prim_func
    def mm_relu(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"global_symbol": "mm_relu", "tir.noalias": True})  # a comment stays
        Y = T.alloc_buffer((64, 64), dtype="float32")
        for i, j, k in T.grid(64, 64, 64):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 64):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))

    @R.function
    def main(x: R.Tensor((64, 64), "float32"), w: R.Tensor((64, 64), "float32")):
        cls = Module
        with R.dataflow():
            out = R.call_tir(cls.mm_relu, (x, w), out_sinfo=R.Tensor((64, 64), dtype="float32"))
            R.output(out)
        return out
"""
"""How a tutorial of TVM 0.2x writes a product and relu, called from Relax."""


def long_chain(stages: int, n: int = 64) -> str:
    """Return row sums of row sums, ``stages`` of them, as TVMScript: each candidate takes long to make."""
    lines = [
        "@T.prim_func(s_tir=True)",
        f'def main(X0: T.Buffer(({n}, {n}), "float32"), X{stages}: T.Buffer(({n}, {n}), "float32")):',
        *(f'    X{stage} = T.sblock_alloc_buffer(({n}, {n}), "float32")' for stage in range(1, stages)),
    ]
    for stage in range(1, stages + 1):
        lines += [
            f"    for i, j, k in T.grid({n}, {n}, {n}):",
            f'        with T.sblock("X{stage}"):',
            '            vi, vj, vk = T.axis.remap("SSR", [i, j, k])',
            "            with T.init():",
            f"                X{stage}[vi, vj] = T.float32(0)",
            f"            X{stage}[vi, vj] = X{stage}[vi, vj] + X{stage - 1}[vi, vk] * T.float32(0.01)",
        ]
    return "\n".join(lines) + "\n"


def endless() -> str:
    """Return a function that does not come back, as TVMScript."""
    return """\
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            v = T.axis.spatial(4, i)
            B[v] = A[v]
            while B[v] >= A[v]:
                B[v] = A[v]
"""


NAMED_CALLS = """
@tvm.script.ir_module
class MyModule:
    @T.prim_func
    def relu0(x: T.handle, y: T.handle):
        n = T.int64()
        X = T.match_buffer(x, (1, n), "float32")
        Y = T.match_buffer(y, (1, n), "float32")
        for i, j in T.grid(1, n):
            with T.block("Y"):
                vi, vj = T.axis.remap("SS", [i, j])
                Y[vi, vj] = T.max(X[vi, vj], T.float32(0))

    @T.prim_func
    def linear0(x: T.handle, w: T.handle, b: T.handle, z: T.handle):
        m, n, k = T.int64(), T.int64(), T.int64()
        X = T.match_buffer(x, (1, m), "float32")
        W = T.match_buffer(w, (n, m), "float32")
        B = T.match_buffer(b, (n, ), "float32")
        Z = T.match_buffer(z, (1, n), "float32")
        Y = T.alloc_buffer((1, n), "float32")
        for i, j, k in T.grid(1, n, m):
            with T.block("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + X[vi, vk] * W[vj, vk]
        for i, j in T.grid(1, n):
            with T.block("Z"):
                vi, vj = T.axis.remap("SS", [i, j])
                Z[vi, vj] = Y[vi, vj] + B[vj]

    @R.function
    def main(x: R.Tensor((1, "m"), "float32"),
             w0: R.Tensor(("n", "m"), "float32"),
             b0: R.Tensor(("n", ), "float32"),
             w1: R.Tensor(("k", "n"), "float32"),
             b1: R.Tensor(("k", ), "float32")):
        m, n, k = T.int64(), T.int64(), T.int64()
        with R.dataflow():
            lv0 = R.call_dps_packed("linear0", (x, w0, b0), R.Tensor((1, n), "float32"))
            lv1 = R.call_dps_packed("relu0", (lv0, ), R.Tensor((1, n), "float32"))
            out = R.call_dps_packed("linear0", (lv1, w1, b1), R.Tensor((1, k), "float32"))
            R.output(out)
        return out
"""
"""A tutorial of TVM 0.11, which calls its own functions by their names, at two shapes."""


LIBRARY_ONLY = """
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((4, 8), "float32")):
        with R.dataflow():
            out = R.call_dps_packed("tests.double", (x,), out_ty=R.Tensor((4, 8), "float32"))
            R.output(out)
        return out
"""
"""A module with nothing to tune."""
