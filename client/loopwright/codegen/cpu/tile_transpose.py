"""A tensor intrinsic that turns a square tile of float32 in registers: rows of the source become columns.

LLVM would gather each row of the result, one element after another. Here each round interleaves pairs of vectors: first
single elements and pairs within 128 bits, which is cheapest, and then blocks of 128 bits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from loopwright.codegen.cpu.registering import register_once

_NAME = re.compile(r"loopwright\.transpose_float32_(4|8|16)(?:_across_([1-4]))?")
_BLOCK = 4
"""Float32 in 128 bits."""


def intrinsic(lanes: int, across: int = 0) -> str:
    """Return the name of the intrinsic ``B[lanes, lanes] = A[lanes, …, lanes]``, turned; ``lanes`` are 4, 8 or 16.

    ``across`` are the axes of the source between both, of one element each: at most 4.
    """
    return f"loopwright.transpose_float32_{lanes}" + (f"_across_{across}" if across else "")


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of one of these."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    lanes, across = int(match[1]), int(match[2] or 0)
    register_once(name, lambda: (_description(lanes, across), _implementation(lanes, across)))
    return True


def _description(lanes: int, across: int) -> tirx.PrimFunc:
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("description")
        source, result = _operands(lanes, across)
        with T.sblock("root"):
            _accesses(lanes, across, source, result)
            with T.serial(lanes) as i, T.serial(lanes) as j, T.sblock("turned"):
                row, column = T.axis.spatial(lanes, i), T.axis.spatial(lanes, j)
                T.buffer_store(result, source[(column, *[0] * across, row)], [row, column])
    return builder.get()


def _implementation(lanes: int, across: int) -> tirx.PrimFunc:
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("implementation")
        source, result = _operands(lanes, across, [[T.int64() for _ in range(1 + across)], [T.int64()]])
        with T.sblock("root"):
            _accesses(lanes, across, source, result)
            with T.sblock("rounds"):
                _accesses(lanes, across, source, result)
                vectors = [T.Bind(source.vload([row, *[0] * across, 0], f"float32x{lanes}")) for row in range(lanes)]
                distance = 1
                while distance < lanes:
                    vectors = _interleaved(vectors, distance)
                    distance *= 2
                for row in range(lanes):
                    # The first two rounds leave the last two bits of a row's number in the other order.
                    place = row // _BLOCK * _BLOCK + row % 2 * 2 + row // 2 % 2
                    T.buffer_store(result, vectors[place], [row, T.ramp(0, 1, lanes)])
    return builder.get()


def _interleaved(vectors: Sequence[Any], distance: int) -> list[Any]:
    """Return the vectors after a round, in which those at a distance are interleaved."""
    lanes, result = len(vectors), list(vectors)
    for first, (low, high) in ((i, _halves(lanes, distance)) for i in range(lanes) if not i & distance):
        pair = [vectors[first], vectors[first + distance]]
        result[first] = T.Bind(tirx.Shuffle(pair, low))
        result[first + distance] = T.Bind(tirx.Shuffle(pair, high))
    return result


def _halves(lanes: int, distance: int) -> tuple[list[int], list[int]]:
    """Return which elements of a pair of vectors make the first vector of the result, and which the second one."""
    if distance >= _BLOCK:
        blocks = range(0, 2 * lanes, 2 * _BLOCK)
        low = [block + place for block in blocks for place in range(_BLOCK)]
        return low, [place + _BLOCK for place in low]
    order = (0, lanes, 1, lanes + 1) if distance == 1 else (0, 1, lanes, lanes + 1)
    low = [block + place for block in range(0, lanes, _BLOCK) for place in order]
    return low, [place + 2 for place in low]


def _operands(lanes: int, across: int, strides: Sequence[Sequence[Any]] = ()) -> list[Any]:
    """Declare the source and the result, whose axes but the last have these distances."""
    handles = [T.arg(name, T.handle()) for name in ("source", "result")]
    shapes = [(lanes, *[1] * across, lanes), (lanes, lanes)]
    given = [{"strides": [*each, 1]} for each in strides] or [{}, {}]
    return [
        T.match_buffer(handle, shape, "float32", offset_factor=1, **more)
        for handle, shape, more in zip(handles, shapes, given, strict=True)
    ]


def _accesses(lanes: int, across: int, source: Any, result: Any) -> None:
    T.reads(source[(slice(0, lanes), *[slice(0, 1)] * across, slice(0, lanes))])
    T.writes(result[0:lanes, 0:lanes])
