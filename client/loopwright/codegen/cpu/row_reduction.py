"""A tensor intrinsic that reduces a contiguous row of float32 with vectors: a sum, a sum of exponentials, or a maximum.

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
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from loopwright.codegen.cpu.registering import register_once
from loopwright.codegen.extremes import larger

_NAME = re.compile(r"loopwright\.row_(sum|expsum|max|largest)_(\d+)_(\d+)x(4|8|16)")
_IDENTITIES = {"sum": 0.0, "expsum": 0.0, "max": -3.4028234663852886e38, "largest": -math.inf}


@dataclass(frozen=True, slots=True)
class RowReduction:
    """The reduction of ``length`` elements, two or more, with ``vectors`` vectors of partial results.

    The operation "expsum" adds up exponentials of the elements less a number of the row, without storing them.
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
    register_once(name, lambda: (_description(reduction), _implementation(reduction)))
    return True


def combine(operation: str) -> Callable[[Any, Any], Any]:
    """Return what combines two elements in a "sum", in a "max", which may lose NaN, or in the "largest"."""
    return {"max": tirx.max, "largest": larger}.get(operation, lambda a, b: a + b)


def _description(reduction: RowReduction) -> tirx.PrimFunc:
    length, op = reduction.length, combine(reduction.operation)
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("description")
        operands = _operands(reduction)
        *_, result = operands
        with T.sblock("root"):
            _accesses(operands)
            with T.serial(length) as k, T.sblock("reduce"):
                place = T.axis.reduce(length, k)
                T.buffer_store(result, op(result[0], _term(operands, place)), [0])
    return builder.get()


def _implementation(reduction: RowReduction) -> tirx.PrimFunc:
    length, lanes, op = reduction.length, reduction.lanes, combine(reduction.operation)
    vectors = min(reduction.vectors, max(1, length // lanes))
    step = vectors * lanes
    rounds = length // step
    whole = (length - rounds * step) // lanes
    rest = length - rounds * step - whole * lanes
    start = rounds * step
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name("implementation")
        operands = _operands(reduction)
        *_, result = operands
        with T.sblock("root"):
            _accesses(operands)
            with T.sblock("rows"):
                _accesses(operands)
                part = T.sblock_alloc_buffer((step,), "float32")

                def take(place: Any, element: Any) -> None:
                    T.buffer_store(part, op(part[place], _term(operands, element)), [place])

                def join(count: int, distance: int) -> None:
                    with T.vectorized(count) as i:
                        T.buffer_store(part, op(part[i], part[distance + i]), [i])

                with T.unroll(vectors) as v, T.vectorized(lanes) as i:
                    T.buffer_store(part, T.float32(_IDENTITIES[reduction.operation]), [v * lanes + i])
                with T.serial(rounds) as k, T.unroll(vectors) as v, T.vectorized(lanes) as i:
                    take(v * lanes + i, k * step + v * lanes + i)
                for v in range(whole):
                    with T.vectorized(lanes) as i:
                        take(v * lanes + i, start + v * lanes + i)
                if rest > 1:
                    with T.vectorized(rest) as i:
                        take(i, start + whole * lanes + i)
                elif rest == 1:
                    take(0, length - 1)
                for v in range(1, vectors):
                    join(lanes, v * lanes)
                for count in (8, 4):
                    if lanes > count:
                        join(count, count)
                total = op(op(part[0], part[1]), op(part[2], part[3]))
                T.buffer_store(result, op(result[0], total), [0])
    return builder.get()


def _operands(reduction: RowReduction) -> list[Any]:
    """Declare the row, what is subtracted from its elements in a sum of exponentials, and the result."""
    extents = (reduction.length, *((1,) if reduction.operation == "expsum" else ()), 1)
    handles = [T.arg(f"operand{place}", T.handle()) for place in range(len(extents))]
    return [
        T.match_buffer(handle, (extent,), "float32", offset_factor=1)
        for handle, extent in zip(handles, extents, strict=True)
    ]


def _accesses(operands: list[Any]) -> None:
    *read, result = operands
    T.reads(result[0:1], *(each[0 : each.shape[0]] for each in read))
    T.writes(result[0:1])


def _term(operands: list[Any], place: Any) -> Any:
    row, *less, _ = operands
    return tirx.exp(row[place] - less[0][0]) if less else row[place]
