"""A tensor intrinsic that reduces some rows of float32 into one row, with vectors: sums, or maxima.

Its loops are over vectors and, within, over the rows, so that a vector of results is loaded and stored once for all.
TVM's `loop_partition`, its way to take the rest of a row in a shorter vector, does not apply to reductions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tvm import tirx
from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once
from loopwright.codegen.cpu.row_reduction import combine

_NAME = re.compile(r"loopwright\.columns_(sum|max)_(\d+)x(\d+)_(4|8|16)")


@dataclass(frozen=True, slots=True)
class ColumnReduction:
    """The reduction of ``rows`` x ``columns`` elements in vectors of ``lanes``, which are 4, 8 or 16."""

    operation: str
    rows: int
    columns: int
    lanes: int

    @property
    def name(self) -> str:
        """The intrinsic's name, from which `register` makes it again on another machine."""
        return f"loopwright.columns_{self.operation}_{self.rows}x{self.columns}_{self.lanes}"


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of a reduction of columns."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    reduction = ColumnReduction(match[1], *map(int, match.groups()[1:]))
    register_once(name, lambda: (_description(reduction), _implementation(reduction)))
    return True


def _description(reduction: ColumnReduction) -> tirx.PrimFunc:
    rows, columns, op = reduction.rows, reduction.columns, combine(reduction.operation)

    @T.prim_func(s_tir=True)
    def description(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (rows, columns), "float32", strides=[T.int32(), 1], offset_factor=1)
        C = T.match_buffer(c, (columns,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:columns], A[0:rows, 0:columns])
            T.writes(C[0:columns])
            for j, k in T.grid(columns, rows):
                with T.sblock("reduce"):
                    v_j, v_k = T.axis.remap("SR", [j, k])
                    C[v_j] = op(C[v_j], A[v_k, v_j])

    return description


def _implementation(reduction: ColumnReduction) -> tirx.PrimFunc:
    rows, columns, op = reduction.rows, reduction.columns, combine(reduction.operation)
    lanes = min(reduction.lanes, columns)
    whole = columns // lanes
    rest = columns - whole * lanes

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (rows, columns), "float32", strides=[T.int32(), 1], offset_factor=1)
        C = T.match_buffer(c, (columns,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:columns], A[0:rows, 0:columns])
            T.writes(C[0:columns])
            for v in range(whole):
                for k in T.unroll(rows):
                    for i in T.vectorized(lanes):
                        C[v * lanes + i] = op(C[v * lanes + i], A[k, v * lanes + i])
            if rest > 1:
                for k in T.unroll(rows):
                    for i in T.vectorized(rest):
                        C[whole * lanes + i] = op(C[whole * lanes + i], A[k, whole * lanes + i])
            if rest == 1:
                for k in T.unroll(rows):
                    C[columns - 1] = op(C[columns - 1], A[k, columns - 1])

    return implementation
