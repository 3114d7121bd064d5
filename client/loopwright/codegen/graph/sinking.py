"""Reshapes and permutations are moved behind operations that commute with them, where they meet others and cancel.

``gelu(reshape(x))`` becomes ``reshape(gelu(x))``, so that a product and what follows it are neighbours and fuse. A
layer that transposes its input and its output then does neither.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.identities import Identities
from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    op_name,
    permutation_of,
    reshaped,
    rewrite_calls,
    shape_of,
)
from loopwright.codegen.graph.views import split_axes

_UNARY = (
    "abs astype ceil clip cos erf exp floor isnan log logical_not negative round rsqrt sigmoid sign sin sqrt square "
    "tanh trunc nn.gelu nn.gelu_tanh nn.leakyrelu nn.relu nn.relu6 nn.selu nn.silu nn.softplus"
)
_BINARY = (
    "add divide equal greater greater_equal less less_equal logical_and logical_or maximum minimum multiply not_equal "
    "power subtract"
)
OPERANDS = dict.fromkeys(_UNARY.split(), 1) | dict.fromkeys(_BINARY.split(), 2) | {"quantize": 3, "where": 3}
"""Elementwise operators, and how many operands they have."""
_OF_ROWS = frozenset(("nn.layer_norm", "nn.rms_norm", "nn.softmax"))
"""Operators over the last axis alone, unless their attributes say otherwise; further operands are vectors."""


_REDUCTIONS = frozenset(("max", "mean", "min", "sum"))


def sink_reshapes(mod: tvm.IRModule) -> tvm.IRModule:
    """Move reshapes behind elementwise operations, and behind softmax and normalisations of the last axis."""
    return rewrite_calls(mod, _Reshapes)


def sink_permutations(mod: tvm.IRModule) -> tvm.IRModule:
    """Move permutations behind the same, and behind products with a matrix as well, unless something else uses them."""
    return rewrite_calls(mod, _Permutations)


def sink_movements(mod: tvm.IRModule) -> tvm.IRModule:
    """Move reshapes and permutations behind the same, and behind products with a matrix as well."""
    return rewrite_calls(mod, _Movements)


@mutator
class _Reshapes(Identities):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        merged = super().rewrite(name, call)
        return _sunk(self, name, call, ("reshape",)) if merged is call else merged


class _BehindProducts(Identities):
    movements: tuple[str, ...] = ()

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        merged = super().rewrite(name, call)
        if op_name(merged) != name:
            return merged
        call = self.builder_.normalize(merged)
        if name == "reshape":
            return self._through_permutation(call)
        if name == "matmul":
            return self._product(call)
        if name in _REDUCTIONS:
            return self._reduction(name, call)
        return _sunk(self, name, call, self.movements)

    def _through_permutation(self, call: tvm.ir.Call) -> Any:
        """Turn a reshape that merges neighbouring axes of a permutation into a permutation of merged axes."""
        shape, inner = shape_of(call), self.call_of(call.args[0], "permute_dims")
        if inner is None or shape is None:
            return call
        axes, source = permutation_of(inner), shape_of(inner.args[0]) or ()
        wide = [extent for extent in shape if extent != 1]
        groups = split_axes(wide, [source[axis] for axis in axes])
        if groups is None or not all(groups) or all(len(group) == 1 for group in groups):
            return call
        merged = [[axes[place] for place in group] for group in groups]
        if any(group != list(range(group[0], group[0] + len(group))) for group in merged):
            return call
        order = sorted(merged)
        flat = self.emit(reshaped(inner.args[0], [math.prod(source[axis] for axis in group) for group in order]))
        permuted = relax.op.permute_dims(flat, [order.index(group) for group in merged])
        return permuted if len(wide) == len(shape) else reshaped(self.emit(permuted), shape)

    def _reduction(self, name: str, call: tvm.ir.Call) -> Any:
        """Reduce before a permutation, over the axes that it moves to those reduced."""
        moved = self.call_of(call.args[0], "permute_dims")
        if moved is None or shape_of(call) is None or call.attrs.axis is None:
            return call
        axes, keepdims = permutation_of(moved), bool(call.attrs.keepdims)
        reduced = [axes[int(axis)] for axis in call.attrs.axis]
        result = self.emit(getattr(relax.op, name)(moved.args[0], axis=sorted(reduced), keepdims=keepdims))
        left = [axis for axis in axes if keepdims or axis not in reduced]
        order = [sorted(left).index(axis) for axis in left]
        return result if order == sorted(order) else relax.op.permute_dims(result, order)

    def _product(self, call: tvm.ir.Call) -> Any:
        """Multiply before a movement that keeps the rows of the left operand together."""
        left, right = call.args
        moved, shape = self.call_of(left, *self.movements), shape_of(call)
        if moved is None or shape is None or len(shape_of(right) or ()) != 2:
            return call
        source = moved.args[0]
        extents = shape_of(source) or ()
        if str(moved.op.name) == "relax.permute_dims":
            axes = permutation_of(moved)
            if axes[-1] != len(axes) - 1 or self.uses()[left] > 1:
                return call
            product = self.emit(relax.op.matmul(source, right, call.attrs.out_dtype))
            return relax.op.permute_dims(product, list(axes))
        depth = (shape_of(left) or ())[-1]
        rows = next((axis for axis in range(len(extents)) if math.prod(extents[axis:]) == depth), None)
        if rows is None or rows < 1:
            return call
        operand = reshaped(source, (*extents[:rows], depth))
        if (*extents[:rows], depth) == shape_of(left):
            return call
        if operand is not source:
            operand = self.emit(self.rewrite("reshape", self.builder_.normalize(operand)))
        product = self.builder_.normalize(relax.op.matmul(operand, right, call.attrs.out_dtype))
        return reshaped(self.emit(self._product(product)), shape)


@mutator
class _Permutations(_BehindProducts):
    movements = ("permute_dims",)


@mutator
class _Movements(_BehindProducts):
    movements = ("reshape", "permute_dims")


def _sunk(
    rewriter: CallRewriter, name: str, call: tvm.ir.Call, movements: Sequence[str], places: Sequence[int] = (0, 1, 2)
) -> Any:
    """Return a call with the movement of an operand, at one of ``places``, behind it; the call if none can move."""
    shape, count = shape_of(call), OPERANDS.get(name, 1)
    if shape is None or not (name in OPERANDS or (name in _OF_ROWS and _is_over_rows(call))):
        return call
    for place in places[:count]:
        moved = rewriter.call_of(call.args[place], *movements)
        if moved is None or shape_of(moved) != shape:
            continue
        if str(moved.op.name) == "relax.permute_dims" and rewriter.uses()[call.args[place]] > 1:
            continue
        kept = _kept_axes(moved)
        if name in _OF_ROWS and not kept:
            continue
        operands = list(call.args)
        operands[place] = moved.args[0]
        for other in range(count):
            if other != place:
                operands[other] = _counterpart(rewriter, call.args[other], moved, kept)
        if any(operand is None for operand in operands):
            continue
        moved_call = tvm.ir.Call(call.op, operands, call.attrs, call.ty_args)
        before = rewriter.builder_.normalize(_over_rows(call, operands) if name in _OF_ROWS else moved_call)
        if shape_of(before) != shape_of(moved.args[0]):
            continue
        before = rewriter.emit(_sunk(rewriter, name, before, movements, (place,)))  # movements may follow one another
        if str(moved.op.name) == "relax.permute_dims":
            return relax.op.permute_dims(before, list(permutation_of(moved)))
        return reshaped(before, shape)
    return call


def _is_over_rows(call: tvm.ir.Call) -> bool:
    rank = len(shape_of(call) or ())
    axes = [call.attrs.axis] if hasattr(call.attrs, "axis") else list(call.attrs.axes)
    return [int(axis) % rank for axis in axes] == [rank - 1]


def _over_rows(call: tvm.ir.Call, operands: list[Any]) -> Any:
    """Return a call over the last axis of operands that may have another number of axes."""
    name, attrs = str(call.op.name), call.attrs
    if name == "relax.nn.softmax":
        return relax.op.nn.softmax(operands[0], axis=-1)
    if name == "relax.nn.rms_norm":
        return relax.op.nn.rms_norm(*operands, axes=-1, epsilon=float(attrs.epsilon))
    return relax.op.nn.layer_norm(
        *operands, axes=-1, epsilon=float(attrs.epsilon), center=bool(attrs.center), scale=bool(attrs.scale)
    )


def _kept_axes(moved: tvm.ir.Call) -> int:
    """Return how many of the last axes a movement leaves as they are."""
    before, after = shape_of(moved.args[0]) or (), shape_of(moved) or ()
    if str(moved.op.name) == "relax.permute_dims":
        places = list(zip(reversed(permutation_of(moved)), reversed(range(len(after))), strict=True))
    else:
        places = list(zip(reversed(before), reversed(after), strict=False))
    return next((count for count, (old, new) in enumerate(places) if old != new), len(places))


def _counterpart(rewriter: CallRewriter, other: Any, moved: tvm.ir.Call, kept: int) -> Any:
    """Return the other operand as it is before the movement; None if that would be a copy."""
    shape, source = shape_of(other), moved.args[0]
    if shape is None:
        return None
    if math.prod(shape) == 1 and len(shape) <= 1:
        return other
    same = rewriter.call_of(other, str(moved.op.name).removeprefix("relax."))
    is_reshape = str(moved.op.name) == "relax.reshape"
    if is_reshape and same is not None and shape_of(same.args[0]) == shape_of(source):
        return same.args[0]  # also of one row, which is a vector as well
    wide = next((axis for axis, extent in enumerate(shape) if extent != 1), len(shape))
    if len(shape) - wide <= kept and len(shape_of(moved) or ()) >= len(shape):
        return rewriter.emit(reshaped(other, shape[wide:])) if wide else other
    if shape != shape_of(moved):
        return None
    if is_reshape:
        return rewriter.emit(reshaped(other if same is None else same.args[0], shape_of(source) or ()))
    return same.args[0] if same is not None and permutation_of(same) == permutation_of(moved) else None
