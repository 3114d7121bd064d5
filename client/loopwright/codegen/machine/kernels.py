"""Kernels of known work in TVMScript, all float32: multiply-adds in registers and copies, for CPUs and GPUs."""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import tvm
from tvm.script import tirx as T

CHAINS = 12
"""Enough to hide the latency of a multiply-add, few enough for sixteen vector registers."""
_CHUNKS = 64
SWEPT_AT_ONCE = 4
"""Vectors in one step of a sweep, so that its loop takes little of the time. Not tuned."""


def cpu_chains(threads: int, rounds: int, width: int) -> tvm.tirx.PrimFunc:
    """Each thread keeps `CHAINS` vectors of ``width`` and multiplies and adds to each ``rounds`` times."""
    lanes = CHAINS * width

    @T.prim_func(s_tir=True)
    def chains(x: T.Buffer((threads, lanes), "float32"), y: T.Buffer((threads, lanes), "float32")):
        for b in T.parallel(threads):
            acc = T.alloc_buffer((lanes,), "float32", scope="local")
            for c in T.unroll(CHAINS):
                for lane in T.vectorized(width):
                    acc[c * width + lane] = x[b, c * width + lane]
            for _ in T.serial(rounds):
                for c in T.unroll(CHAINS):
                    for lane in T.vectorized(width):
                        acc[c * width + lane] = acc[c * width + lane] * T.float32(0.999) + T.float32(0.001)
            for c in T.unroll(CHAINS):
                for lane in T.vectorized(width):
                    y[b, c * width + lane] = acc[c * width + lane]

    return chains


def cpu_copy(elements: int, width: int) -> tvm.tirx.PrimFunc:
    """Copies ``elements``, a multiple of 64 widths, on all threads."""
    steps = elements // _CHUNKS // width

    @T.prim_func(s_tir=True)
    def copy(x: T.Buffer((elements,), "float32"), y: T.Buffer((elements,), "float32")):
        for chunk in T.parallel(_CHUNKS):
            for step in T.serial(steps):
                for lane in T.vectorized(width):
                    y[(chunk * steps + step) * width + lane] = x[(chunk * steps + step) * width + lane]

    return copy


def cpu_sweeps(threads: int, width: int) -> tvm.tirx.PrimFunc:
    """Each thread reads a row of ``x`` and writes one of ``y`` so many times; `SWEPT_AT_ONCE` widths divide a row.

    It adds the number of the round, so that no round is the same as the one before.
    """
    lanes = SWEPT_AT_ONCE * width

    @T.prim_func(s_tir=True)
    def sweeps(a: T.handle, b: T.handle, rounds: T.int64):
        n = T.int64()
        x = T.match_buffer(a, (threads, n), "float32")
        y = T.match_buffer(b, (threads, n), "float32")
        for t in T.parallel(threads):
            for number in T.serial(rounds):
                for step in T.serial(n // lanes):
                    for c in T.unroll(SWEPT_AT_ONCE):
                        for lane in T.vectorized(width):
                            y[t, step * lanes + c * width + lane] = x[t, step * lanes + c * width + lane] + T.Cast(
                                "float32", number
                            )

    return sweeps


def gpu_chains(blocks: int, threads: int, rounds: int) -> tvm.tirx.PrimFunc:
    """Each thread keeps `CHAINS` numbers and multiplies and adds to each ``rounds`` times."""

    @T.prim_func(s_tir=True)
    def chains(x: T.Buffer((blocks, threads), "float32"), y: T.Buffer((blocks, threads), "float32")):
        for b in T.thread_binding(blocks, thread="blockIdx.x"):
            for t in T.thread_binding(threads, thread="threadIdx.x"):
                acc = T.alloc_buffer((CHAINS,), "float32", scope="local")
                for c in T.unroll(CHAINS):
                    acc[c] = x[b, t] + T.cast(c, "float32")
                for _ in T.serial(rounds):
                    for c in T.unroll(CHAINS):
                        acc[c] = acc[c] * T.float32(0.999) + T.float32(0.001)
                y[b, t] = T.float32(0)
                for c in T.unroll(CHAINS):
                    y[b, t] = y[b, t] + acc[c]

    return chains


def gpu_copy(elements: int, threads: int) -> tvm.tirx.PrimFunc:
    """Copies ``elements``, a multiple of four times the threads of a block."""

    @T.prim_func(s_tir=True)
    def copy(x: T.Buffer((elements,), "float32"), y: T.Buffer((elements,), "float32")):
        for b in T.thread_binding(elements // threads // 4, thread="blockIdx.x"):
            for t in T.thread_binding(threads, thread="threadIdx.x"):
                for lane in T.vectorized(4):
                    y[(b * threads + t) * 4 + lane] = x[(b * threads + t) * 4 + lane]

    return copy
