"""The greatest and the least element of a tensor, found by rows, which threads share, in one pass over its elements.

Quantisation by the range of the data takes both. TVM writes a function for each, whose single sum no thread shares.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.extremes import infinity, larger
from loopwright.codegen.graph.rewriting import (
    OUTPUT_FUSABLE,
    CallRewriter,
    dtype_of,
    reshaped,
    rewrite_calls,
    shape_of,
)

_LEAST_ROW, _MOST_ROWS = 64, 256
"""Elements of a row at least, and rows at most. Not tuned."""
_GREATEST, _LEAST = 0, 1
"""Columns of the ranges of rows; the least element has the other sign there."""


def find_ranges(mod: tvm.IRModule) -> tvm.IRModule:
    """Find the maximum and the minimum of all elements of tensors of float32 in two steps: of rows, and of these."""
    return rewrite_calls(mod, _Ranges)


@mutator
class _Ranges(CallRewriter):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.found: list[tuple[Any, Any]] = []
        """Tensors, and the ranges of their rows."""

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name not in ("max", "min") or shape_of(call) != () or dtype_of(call) != "float32":
            return call
        source = call.args[0]
        while (moved := self.call_of(source, "reshape")) is not None:
            source = moved.args[0]
        extents = shape_of(source)
        if extents is None or math.prod(extents) < 2 * _LEAST_ROW:
            return call
        ranges = next((known for tensor, known in self.found if tensor.same_as(source)), None)
        if ranges is None:
            rows = self.emit(reshaped(source, _rows(extents)))
            ranges = self.emit(self.builder_.call_te(ranges_of_rows, rows, primfunc_name_hint="ranges"))
            self.found.append((source, ranges))
        return self.builder_.call_te(
            _joined,
            ranges,
            _GREATEST if name == "max" else _LEAST,
            primfunc_name_hint=name,
            primfunc_attrs={"op_pattern": OUTPUT_FUSABLE},
        )


def _rows(extents: tuple[int, ...]) -> tuple[int, int]:
    """Return a tensor's number of rows, and their length, which is that of the last axes together."""
    total = math.prod(extents)
    lengths = (math.prod(extents[axis:]) for axis in reversed(range(len(extents))))
    length = next(each for each in lengths if each >= max(_LEAST_ROW, total // _MOST_ROWS))
    return total // length, length


def _greatest(rows: te.Tensor, name: str) -> te.Tensor:
    reduce = te.comm_reducer(larger, lambda dtype: infinity(dtype, -1), name="extreme")
    k = te.reduce_axis((0, rows.shape[1]), "k")
    return te.compute((rows.shape[0],), lambda i: reduce(rows[i, k], axis=k), name=name)


def ranges_of_rows(rows: te.Tensor) -> te.Tensor:
    """Return the greatest element of each row, and its least element times -1."""
    greatest = _greatest(rows, "greatest")
    least = _greatest(te.compute(rows.shape, lambda *i: -rows(*i), name="negative"), "least")
    return te.compute(
        (rows.shape[0], 2), lambda i, side: tirx.Select(side == _GREATEST, greatest[i], least[i]), name="ranges"
    )


def _joined(ranges: te.Tensor, side: int) -> te.Tensor:
    reduce = te.comm_reducer(larger, lambda dtype: infinity(dtype, -1), name="extreme")
    k = te.reduce_axis((0, ranges.shape[0]), "k")
    extreme = te.compute((), lambda: reduce(ranges[k, side], axis=k), name="extreme")
    return extreme if side == _GREATEST else te.compute((), lambda: -extreme(), name="negative")
