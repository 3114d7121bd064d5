"""A tensor intrinsic that reduces a contiguous row of float32 with vectors: a sum, or a maximum.

A reduction of TVM adds one element after another, and `rfactor`, its way to partial sums, takes only rows whose length
is a multiple of the number of parts. This intrinsic keeps some vectors of partial results for rows of any length. A sum
is reordered, as by any vectorised sum.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.s_tir import TensorIntrin
from tvm.script import tirx as T

from loopwright.codegen.extremes import larger

_NAME = re.compile(r"loopwright\.row_(sum|max|largest)_(\d+)_(\d+)x(4|8|16)")
_IDENTITIES = {"sum": 0.0, "max": -3.4028234663852886e38, "largest": -math.inf}


@dataclass(frozen=True, slots=True)
class RowReduction:
    """The reduction of ``length`` elements, two or more, with ``vectors`` vectors of partial results.

    ``lanes``, the elements of a vector, are 4, 8 or 16.
    """

    operation: str
    length: int
    vectors: int
    lanes: int

    @property
    def name(self) -> str:
        """The intrinsic's name, from which `register` makes it again on another machine."""
        return f"loopwright.row_{self.operation}_{self.length}_{self.vectors}x{self.lanes}"


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of a row reduction."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    operation, length, vectors, lanes = match[1], *map(int, match.groups()[1:])
    reduction = RowReduction(operation, length, vectors, lanes)
    if TensorIntrin.get(name, allow_missing=True) is None:
        TensorIntrin.register(name, _description(reduction), _implementation(reduction))
    return True


def combine(operation: str) -> Callable[[Any, Any], Any]:
    """Return what combines two elements in a "sum", in a "max", which may lose NaN, or in the "largest"."""
    return {"sum": lambda a, b: a + b, "max": tirx.max, "largest": larger}[operation]


def _description(reduction: RowReduction) -> tirx.PrimFunc:
    length, op = reduction.length, combine(reduction.operation)

    @T.prim_func(s_tir=True)
    def description(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (length,), "float32", offset_factor=1)
        C = T.match_buffer(c, (1,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:1], A[0:length])
            T.writes(C[0:1])
            for k in range(length):
                with T.sblock("reduce"):
                    v_k = T.axis.remap("R", [k])
                    C[0] = op(C[0], A[v_k])

    return description


def _implementation(reduction: RowReduction) -> tirx.PrimFunc:
    length, lanes, op = reduction.length, reduction.lanes, combine(reduction.operation)
    vectors = min(reduction.vectors, max(1, length // lanes))
    step = vectors * lanes
    rounds = length // step
    whole = (length - rounds * step) // lanes
    rest = length - rounds * step - whole * lanes
    start = rounds * step
    identity = _IDENTITIES[reduction.operation]

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (length,), "float32", offset_factor=1)
        C = T.match_buffer(c, (1,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:1], A[0:length])
            T.writes(C[0:1])
            with T.sblock("rows"):
                T.reads(C[0:1], A[0:length])
                T.writes(C[0:1])
                part = T.sblock_alloc_buffer((step,), "float32")
                for v in T.unroll(vectors):
                    for i in T.vectorized(lanes):
                        part[v * lanes + i] = T.float32(identity)
                for k in range(rounds):
                    for v in T.unroll(vectors):
                        for i in T.vectorized(lanes):
                            part[v * lanes + i] = op(part[v * lanes + i], A[k * step + v * lanes + i])
                for v in T.unroll(whole):
                    for i in T.vectorized(lanes):
                        part[v * lanes + i] = op(part[v * lanes + i], A[start + v * lanes + i])
                if rest > 1:
                    for i in T.vectorized(rest):
                        part[i] = op(part[i], A[start + whole * lanes + i])
                if rest == 1:
                    part[0] = op(part[0], A[length - 1])
                for v in T.unroll(vectors - 1):
                    for i in T.vectorized(lanes):
                        part[i] = op(part[i], part[(v + 1) * lanes + i])
                if lanes > 8:
                    for i in T.vectorized(8):
                        part[i] = op(part[i], part[8 + i])
                if lanes > 4:
                    for i in T.vectorized(4):
                        part[i] = op(part[i], part[4 + i])
                C[0] = op(C[0], op(op(part[0], part[1]), op(part[2], part[3])))

    return implementation
