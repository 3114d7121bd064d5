"""Computes expressions of constants alone by NumPy. TVM's ``FoldConstant`` compiles and runs functions for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    constant,
    dtype_of,
    permutation_of,
    rewrite_calls,
    shape_of,
)

_Evaluate = Callable[[tvm.ir.Call, list[Any]], Any]

_ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "abs": np.abs,
    "add": np.add,
    "divide": np.true_divide,
    "equal": np.equal,
    "exp": np.exp,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "log": np.log,
    "logical_and": np.logical_and,
    "logical_not": np.logical_not,
    "logical_or": np.logical_or,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negative": np.negative,
    "not_equal": np.not_equal,
    "sqrt": np.sqrt,
    "square": np.square,
    "subtract": np.subtract,
    "where": np.where,
}
_SHAPED: dict[str, _Evaluate] = {
    "broadcast_to": lambda call, values: np.broadcast_to(values[0], shape_of(call) or ()),
    "expand_dims": lambda call, values: values[0].reshape(shape_of(call)),
    "full": lambda call, values: np.full(shape_of(call) or (), values[-1]),
    "full_like": lambda call, values: np.full(shape_of(call) or (), values[1]),
    "nn.pad": lambda call, values: np.pad(
        values[0], np.reshape(list(map(int, call.attrs.pad_width)), (-1, 2)), constant_values=call.attrs.pad_value
    ),
    "permute_dims": lambda call, values: values[0].transpose(permutation_of(call)),
    "reshape": lambda call, values: values[0].reshape(shape_of(call)),
    "rsqrt": lambda _, values: 1 / np.sqrt(values[0]),
    "squeeze": lambda call, values: values[0].reshape(shape_of(call)),
    "take": lambda call, values: values[0].take(values[1], call.attrs.axis, mode="clip"),
    "zeros": lambda call, _: np.zeros(shape_of(call) or ()),
    "ones": lambda call, _: np.ones(shape_of(call) or ()),
    "astype": lambda _, values: values[0],
}
_MODES = {"nn.pad": ("pad_mode", "constant"), "take": ("mode", "clip")}
"""An attribute of operators that NumPy has with one of its values only."""
_TYPES = frozenset(("bool", "int8", "uint8", "int16", "int32", "int64", "uint32", "float16", "float32", "float64"))


_TRIANGLES: dict[str, Callable[..., Any]] = {"tril": np.tril, "triu": np.triu}
_MOST_ELEMENTS = 2**24
"""Of a value that is larger than its operands: a line of text must not fill the memory. Not tuned: a mask of attention
over 4,096 tokens."""


def fold_constants(mod: tvm.IRModule) -> tvm.IRModule:
    """Replace calls of constants, of operators that NumPy has under the same rules, by their values.

    Integers are not divided, and a result of another dtype than the operands is only taken of comparisons and casts.
    Values of over 2**24 elements are only made of operands that are as large.
    """
    return rewrite_calls(mod, _Folded)


def fold_vectors(mod: tvm.IRModule) -> tvm.IRModule:
    """Do so for values with at most one axis of more than one element: scales and zero points, not weights."""
    return rewrite_calls(mod, _Vectors)


class _Folding(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        # TVM writes a constant without elements to a file that it cannot read.
        if shape is None or 0 in shape or dtype_of(call) not in _TYPES:
            return call
        operands = [self.value(operand) for operand in call.args]
        values = [operand.value.numpy() for operand in operands if isinstance(operand, tvm.ir.GenericConst)]
        if math.prod(shape_of(call) or ()) > max(_MOST_ELEMENTS, *(value.size for value in values), 0):
            return call
        if name in _TRIANGLES and len(values) == 1 and isinstance(operands[1], tvm.tirx.IntImm):
            return constant(_TRIANGLES[name](values[0], int(operands[1].value)).astype(dtype_of(call)))
        if name == "arange":
            return self._range(call)
        if len(values) + sum(isinstance(operand, relax.ShapeExpr) for operand in operands) < len(operands):
            return call
        if name == "divide" and dtype_of(call).startswith(("int", "uint")):
            return call
        if name in _MODES and str(getattr(call.attrs, _MODES[name][0])) != _MODES[name][1]:
            return call
        if name in _ELEMENTWISE:
            result = _ELEMENTWISE[name](*values)
        elif name in _SHAPED:
            result = _SHAPED[name](call, values)
        else:
            return call
        return constant(np.asarray(result).astype(dtype_of(call)).reshape(shape_of(call) or ()))

    def _range(self, call: tvm.ir.Call) -> Any:
        bounds = [bound.value for bound in call.args if isinstance(bound, tvm.tirx.IntImm)]
        if len(bounds) != 3:
            return call
        return constant(np.arange(bounds[0], bounds[1], bounds[2]).astype(dtype_of(call)))


@mutator
class _Folded(_Folding):
    pass


@mutator
class _Vectors(_Folding):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        return call if shape is None or sum(extent > 1 for extent in shape) > 1 else super().rewrite(name, call)
