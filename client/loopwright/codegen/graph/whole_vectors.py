"""Weights with a scale for each block of the depth get as many columns as vectors have lanes, some of them zero.

A vector of a weight that is decoded where it is read has one column in each lane. TVM computes a vector of which some
lanes are missing one element after another, and of columns without whole vectors every element of a product.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.packed import BINARY, PANEL, RESHAPES, stored_tables
from loopwright.codegen.graph.rewriting import CallRewriter, constant, op_name, permutation_of, rewrite_calls, shape_of
from loopwright.codegen.graph.views import numbers


def fill_vectors(mod: tvm.IRModule) -> tvm.IRModule:
    """Pad the columns of constant weights in blocks to a multiple of `PANEL`, and cut them off their products.

    Weights of another form than `loopwright.codegen.graph.packed` reads stay as they are.
    """
    return rewrite_calls(mod, _Filled)


@mutator
class _Filled(CallRewriter):
    def __init__(self, mod: tvm.IRModule) -> None:
        super().__init__(mod)
        self.padded: list[tuple[tvm.ir.GenericConst, int, tvm.ir.GenericConst]] = []
        """Constants, which several products may have, the axis along which each is padded, and what it became."""

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if name != "matmul" or shape is None or shape[-1] % PANEL == 0 or not self._has_blocks(call.args[1], shape[-1]):
            return call
        weight = self._padded(call.args[1], 1, -shape[-1] % PANEL)
        if weight is None:
            return call
        product = self.emit(relax.op.matmul(call.args[0], weight, call.attrs.out_dtype))
        return relax.op.strided_slice(product, [len(shape) - 1], [0], [shape[-1]])

    def _has_blocks(self, weight: Any, columns: int) -> bool:
        """Return whether a matrix is decoded of constants, with several scales for each column."""
        tables = stored_tables(weight, self.value)
        if len(shape_of(weight) or ()) != 2 or tables is None:
            return False
        sizes = sorted(math.prod(shape_of(table) or ()) for table in tables)
        return len(sizes) > 1 and sizes[-2] > columns and all(isinstance(each, tvm.ir.GenericConst) for each in tables)

    def _padded(self, expr: Any, axis: int, count: int) -> Any:
        """Return a tensor that is longer along an axis, decoded of constants with zeros behind it, or None."""
        value, shape = self.value(expr), shape_of(expr)
        if shape is None:
            return None
        if isinstance(value, tvm.ir.GenericConst):
            return self._constant(value, axis, count)
        name = str(op_name(value))
        if name in BINARY or name == "astype":
            return self._elementwise(value, axis, count)
        if name in RESHAPES:
            source = shape_of(value.args[0]) or ()
            outer = math.prod(shape[:axis])
            places = [n for n, extent in enumerate(source) if (math.prod(source[:n]), extent) == (outer, shape[axis])]
            operand = self._padded(value.args[0], places[0], count) if places else None
            extents = [*shape[:axis], shape[axis] + count, *shape[axis + 1 :]]
            return None if operand is None else self.emit(relax.op.reshape(operand, extents))
        if name == "permute_dims":
            axis = permutation_of(value)[axis]
        elif name == "strided_slice":
            if axis in [place % len(shape) for place in numbers(value.args[1]) or (axis,)]:
                return None
        elif name != "take" or value.attrs.axis is None or int(value.attrs.axis) % len(shape) == axis:
            return None
        operand = self._padded(value.args[0], axis, count)
        return None if operand is None else self.emit(tvm.ir.Call(value.op, [operand, *value.args[1:]], value.attrs))

    def _elementwise(self, call: tvm.ir.Call, axis: int, count: int) -> Any:
        shape, operands = shape_of(call) or (), []
        for operand in call.args:
            own = shape_of(operand) or ()
            place = axis - len(shape) + len(own)
            if place >= 0 and own[place] == shape[axis]:  # else it is broadcast
                operand = self._padded(operand, place, count)
            if operand is None:
                return None
            operands.append(operand)
        return self.emit(tvm.ir.Call(call.op, operands, call.attrs))

    def _constant(self, value: tvm.ir.GenericConst, axis: int, count: int) -> tvm.ir.GenericConst:
        for known, place, padded in self.padded:
            if known.same_as(value) and place == axis:
                return padded
        array = value.value.numpy()
        padded = constant(np.pad(array, [(0, count if n == axis else 0) for n in range(array.ndim)]))
        self.padded.append((value, axis, padded))
        return padded
