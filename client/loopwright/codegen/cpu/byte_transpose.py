"""Tensor intrinsics that turn a tile of bytes: neighbours in a row of the source become neighbours in a column.

Rounds of interleaving rotate the bits of an element's place, one bit each. TVM and LLVM would move a byte at a time.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import re

from tvm import tirx
from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once

WIDTH = 16
"""Bytes in a row of the result."""

_NAME = re.compile(r"loopwright\.transpose_(u|)int8_(8|16)x16")
_LOW, _HIGH = ([place + half for i in range(8) for place in (i, WIDTH + i)] for half in (0, 8))
_BOTH = [place for i in range(8) for place in (i, 8 + i)]


def intrinsic(dtype: str, rows: int) -> str | None:
    """Return the name of the intrinsic ``B[rows, 16] = A[16, rows]``; None if there is none for this dtype or tile."""
    name = f"loopwright.transpose_{dtype}_{rows}x{WIDTH}"
    return name if _NAME.fullmatch(name) else None


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of one of these."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    dtype, rows = f"{match[1]}int8", int(match[2])
    register_once(name, lambda: (_description(dtype, rows), _implementation(dtype, rows)))
    return True


def _description(dtype: str, rows: int):
    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle) -> None:
        A = T.match_buffer(a, (16, rows), dtype, offset_factor=1)
        B = T.match_buffer(b, (rows, 16), dtype, offset_factor=1)
        with T.sblock("root"):
            T.reads(A[0:16, 0:rows])
            T.writes(B[0:rows, 0:16])
            for i, j in T.grid(rows, 16):
                with T.sblock("turned"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = A[vj, vi]

    return description


def _implementation(dtype: str, rows: int):
    vector, half = f"{dtype}x16", rows // 2

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle) -> None:
        below, right = T.int64(), T.int64()
        A = T.match_buffer(a, (16, rows), dtype, offset_factor=1, strides=[below, 1])
        B = T.match_buffer(b, (rows, 16), dtype, offset_factor=1, strides=[right, 1])
        with T.sblock("root"):
            T.reads(A[0:16, 0:rows])
            T.writes(B[0:rows, 0:16])
            with T.sblock("rounds"):
                T.reads(A[0:16, 0:rows])
                T.writes(B[0:rows, 0:16])
                P = T.sblock_alloc_buffer((4, rows, 16), dtype)
                for i in T.unroll(8):
                    if rows == 8:
                        P[0, i, T.ramp(0, 1, 16)] = tirx.Shuffle(
                            [A.vload([i, 0], f"{dtype}x8"), A.vload([i + 8, 0], f"{dtype}x8")], _BOTH
                        )
                    else:
                        P[0, 2 * i, T.ramp(0, 1, 16)] = tirx.Shuffle(
                            [A.vload([i, 0], vector), A.vload([i + 8, 0], vector)], _LOW
                        )
                        P[0, 2 * i + 1, T.ramp(0, 1, 16)] = tirx.Shuffle(
                            [A.vload([i, 0], vector), A.vload([i + 8, 0], vector)], _HIGH
                        )
                for stage in T.unroll(3):
                    for i in T.unroll(half):
                        P[stage + 1, 2 * i, T.ramp(0, 1, 16)] = tirx.Shuffle(
                            [P.vload([stage, i, 0], vector), P.vload([stage, i + half, 0], vector)], _LOW
                        )
                        P[stage + 1, 2 * i + 1, T.ramp(0, 1, 16)] = tirx.Shuffle(
                            [P.vload([stage, i, 0], vector), P.vload([stage, i + half, 0], vector)], _HIGH
                        )
                for i in T.unroll(rows):
                    B[i, T.ramp(0, 1, 16)] = P.vload([3, i, 0], vector)

    return implementation
