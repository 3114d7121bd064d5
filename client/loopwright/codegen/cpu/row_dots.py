"""A tensor intrinsic for the products of one row with some others that lie as they are: attention of few queries.

Each product is summed in a vector, and as many vectors as a vector has elements are then summed into one by a tree of
shuffles. So the rows need no transposed copy, which would be more work than the products of one query.
"""
# mypy: ignore-errors
# TVMScript is Python in its form only.

from __future__ import annotations

import re
from dataclasses import dataclass

from tvm import tirx
from tvm.script import tirx as T

from loopwright.codegen.cpu.registering import register_once

_NAME = re.compile(r"loopwright\.row_dots_(4|8|16)x(\d{1,6})")
_BLOCK = 4
"""Float32 in 128 bits: shuffles within them are cheapest."""


@dataclass(frozen=True, slots=True)
class RowDots:
    """``C[lanes] += B[lanes, depth] · A[depth]`` of float32. The depth is a multiple of ``lanes``: 4, 8 or 16."""

    lanes: int
    depth: int

    @property
    def name(self) -> str:
        """The intrinsic's name, from which `register` makes it again on another machine."""
        return f"loopwright.row_dots_{self.lanes}x{self.depth}"


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of such products."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    dots = RowDots(*map(int, match.groups()))
    if dots.depth == 0 or dots.depth % dots.lanes:
        return False
    register_once(name, lambda: (_description(dots), _implementation(dots)))
    return True


def _description(dots: RowDots):
    lanes, depth = dots.lanes, dots.depth

    @T.prim_func(s_tir=True)
    def description(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (depth,), "float32", offset_factor=1)
        B = T.match_buffer(b, (lanes, depth), "float32", offset_factor=1)
        C = T.match_buffer(c, (lanes,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
            T.writes(C[0:lanes])
            for i, k in T.grid(lanes, depth):
                with T.sblock("update"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    C[vi] = C[vi] + A[vk] * B[vi, vk]

    return description


def _implementation(dots: RowDots):
    lanes, depth, vector = dots.lanes, dots.depth, f"float32x{dots.lanes}"

    @T.prim_func(s_tir=True)
    def implementation(a: T.handle, b: T.handle, c: T.handle) -> None:
        A = T.match_buffer(a, (depth,), "float32", offset_factor=1)
        B = T.match_buffer(b, (lanes, depth), "float32", offset_factor=1, strides=[depth, 1])
        C = T.match_buffer(c, (lanes,), "float32", offset_factor=1)
        with T.sblock("root"):
            T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
            T.writes(C[0:lanes])
            with T.sblock("dots"):
                T.reads(C[0:lanes], A[0:depth], B[0:lanes, 0:depth])
                T.writes(C[0:lanes])
                P = T.sblock_alloc_buffer((lanes, lanes), "float32")
                for i in T.unroll(lanes):
                    P[i, T.ramp(0, 1, lanes)] = A.vload([0], vector) * B.vload([i, 0], vector)
                for v in T.unroll(depth // lanes - 1):
                    for i in T.unroll(lanes):
                        P[i, T.ramp(0, 1, lanes)] = P[i, T.ramp(0, 1, lanes)] + A.vload(
                            [v * lanes + lanes], vector
                        ) * B.vload([i, v * lanes + lanes], vector)
                C[T.ramp(0, 1, lanes)] = C[T.ramp(0, 1, lanes)] + _sums([P.vload([i, 0], vector) for i in range(lanes)])

    return implementation


def _sums(parts):
    """Return the vector of the sums of as many vectors as each has elements."""
    lanes, group = len(parts), 1
    while len(parts) > 1:
        parts = [_halved(*pair, lanes, group) for pair in zip(parts[::2], parts[1::2], strict=True)]
        group = 1 if len(parts) > lanes // _BLOCK else _BLOCK
    return parts[0]


def _halved(a, b, lanes, group):
    """Return the sums of neighbours in two vectors: of elements within 128 bits, or of 128 bits, as ``group`` says."""
    if group == 1:
        starts = [
            start for block in range(0, lanes, _BLOCK) for start in (block, block + 2, lanes + block, lanes + block + 2)
        ]
        even, odd = starts, [start + 1 for start in starts]
    else:
        blocks = range(0, 2 * lanes, 2 * _BLOCK)
        even = [block + place for block in blocks for place in range(_BLOCK)]
        odd = [element + _BLOCK for element in even]
    return tirx.Shuffle([a, b], even) + tirx.Shuffle([a, b], odd)
