"""Programs that the client's tests apply schedules to."""

from __future__ import annotations

from typing import Any

MM_RELU = """
from tvm.script import ir as I
from tvm.script import tirx as T


@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((64, 64), "float32"), B: T.Buffer((64, 64), "float32"), C: T.Buffer((64, 64), "float32")):
        T.func_attr({"tirx.noalias": True})
        Y = T.sblock_alloc_buffer((64, 64), dtype="float32")
        for i, j, k in T.grid(64, 64, 64):
            with T.sblock("Y"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    Y[vi, vj] = T.float32(0)
                Y[vi, vj] = Y[vi, vj] + A[vi, vk] * B[vk, vj]
        for i, j in T.grid(64, 64):
            with T.sblock("C"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = T.max(Y[vi, vj], T.float32(0))
"""

RENAMED = (
    MM_RELU.replace("Y", "Accumulated")
    .replace('sblock("Accumulated")', 'sblock("Y")')
    .replace("def main", "def mm_relu")
    .replace('T.func_attr({"tirx.noalias": True})', "")
)
"""The same program: function and buffer are called differently, and it promises less."""

OTHER_BLOCKS = RENAMED.replace('sblock("Y")', 'sblock("product")').replace('sblock("C")', 'sblock("relu")')
"""The same computation, but another program: its blocks, to which traces refer, are called differently."""


def schedule_mm_relu(sch: Any) -> None:
    block = sch.get_sblock("Y")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(i, sch.sample_perfect_tile(i, 2))
    sch.parallel(outer)
    j_outer, j_inner = sch.split(j, [None, 16])
    sch.reorder(outer, j_outer, inner, k, j_inner)
    sch.vectorize(j_inner)
