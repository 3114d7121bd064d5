"""Operators that change nothing or only the shape: removed, merged, or turned into ``reshape``, which is a view."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    dtype_of,
    permutation_of,
    reshaped,
    rewrite_calls,
    shape_of,
)

_RESHAPES = ("reshape", "expand_dims", "squeeze", "flatten", "nn.batch_flatten")

_COMMUTATIVE = frozenset(("add", "maximum", "minimum", "multiply"))


def remove_identities(mod: tvm.IRModule) -> tvm.IRModule:
    """Remove operators that move no element, and merge those that follow one another.

    Importers write ``broadcast_to`` to the shape that a tensor has, and chains of ``reshape`` and ``permute_dims``.
    Operands of ``concat`` without elements are left out. A permutation that moves only axes of extent 1 is a
    ``reshape``. A matrix that is repeated for a batched product and a constant that fills a tensor for ``where`` are
    used as they are. The smaller operand of an elementwise sum, product, maximum or minimum comes second, whichever
    importer wrote it. Tensors of symbolic shape are left alone.
    """
    return rewrite_calls(mod, _Removed)


class Identities(CallRewriter):
    """The rewriter; others that move calls inherit it, to merge what they bring together."""

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        shape = shape_of(call)
        if shape is None or not call.args:
            return call
        source = call.args[0]
        if name == "concat":
            return self._joined(call)
        if name in ("broadcast_to", "astype", "strided_slice", "wrap_param"):
            unchanged = (
                shape_of(source) == shape and dtype_of(source) == dtype_of(call) and not _may_reverse(name, call)
            )
            return source if unchanged else call
        if name in _RESHAPES and shape_of(source) is not None:
            inner = self.call_of(source, "reshape")
            return reshaped(source if inner is None else inner.args[0], shape)
        if name in _COMMUTATIVE and _size(call.args[0]) < _size(call.args[1]):
            return tvm.ir.Call(call.op, [call.args[1], call.args[0]], call.attrs, call.ty_args)
        if name == "matmul":
            return self._product(call)
        if name == "where":
            return self._selection(call, shape)
        if name == "permute_dims" and shape_of(source) is not None:
            return self._permuted(source, permutation_of(call))
        return call

    def _joined(self, call: tvm.ir.Call) -> Any:
        """Leave out the operands without elements, such as the halves of a rotation that turns all channels."""
        joined = self.value(call.args[0])
        if not isinstance(joined, relax.Tuple):
            return call
        some = [field for field in joined.fields if 0 not in (shape_of(field) or ())]
        if len(some) == 1:
            return some[0]
        axis = None if call.attrs.axis is None else int(call.attrs.axis)
        return relax.op.concat(some, axis) if 1 < len(some) < len(joined.fields) else call

    def _permuted(self, source: Any, axes: tuple[int, ...]) -> Any:
        inner = self.call_of(source, "permute_dims")
        if inner is not None:
            source, axes = inner.args[0], tuple(permutation_of(inner)[axis] for axis in axes)
        else:
            between = self.call_of(source, "reshape")
            if between is not None and self.call_of(between.args[0], "permute_dims") is not None:
                through = self._through_units(between, axes)
                if through is not None:
                    return through
        shape = shape_of(source) or ()
        moved = [axis for axis in axes if shape[axis] != 1]
        if moved == sorted(moved):
            inner = self.call_of(source, "reshape")
            return reshaped(source if inner is None else inner.args[0], [shape[axis] for axis in axes])
        return relax.op.permute_dims(source, list(axes))

    def _through_units(self, reshape: tvm.ir.Call, axes: tuple[int, ...]) -> Any:
        """Return a permutation of a reshape that moves only axes of extent 1 as a reshape of a permutation."""
        before, after = shape_of(reshape.args[0]) or (), shape_of(reshape) or ()
        own = [axis for axis, extent in enumerate(before) if extent != 1]
        others = [axis for axis, extent in enumerate(after) if extent != 1]
        if [before[axis] for axis in own] != [after[axis] for axis in others]:
            return None
        units = [axis for axis, extent in enumerate(before) if extent == 1]
        order = [own[others.index(axis)] for axis in axes if axis in others]
        moved = self.emit(self._permuted(reshape.args[0], (*units, *order)))
        return reshaped(moved, [after[axis] for axis in axes])

    def _product(self, call: tvm.ir.Call) -> Any:
        """Take a matrix that ``broadcast_to`` repeats over the batch of the other operand without its batch."""
        left, right = call.args
        repeated = self.call_of(right, "broadcast_to")
        shape = shape_of(repeated.args[0]) if repeated is not None else None
        batch = (shape_of(right) or ())[:-2]
        if repeated is None or shape is None or any(extent != 1 for extent in shape[:-2]):
            return call
        if shape[-2:] != (shape_of(right) or ())[-2:] or (shape_of(left) or ())[:-2] != batch:
            return call
        matrix = self.emit(reshaped(repeated.args[0], shape[-2:]))
        return relax.op.matmul(left, matrix, call.attrs.out_dtype)

    def _selection(self, call: tvm.ir.Call, shape: tuple[int, ...]) -> Any:
        condition, *branches = call.args
        fills = [self.call_of(branch, "full", "full_like") for branch in branches]
        if all(fill is None for fill in fills) or all(fill is not None for fill in fills):
            return call
        kept = [branch if fill is None else fill.args[1] for branch, fill in zip(branches, fills, strict=True)]
        selected = relax.op.where(condition, *kept)
        same = all(dtype_of(branch) == dtype_of(call) for branch in kept)
        return selected if same and shape_of(self.builder_.normalize(selected)) == shape else call


def _may_reverse(name: str, call: tvm.ir.Call) -> bool:
    """Return whether the call is a slice with a step other than 1, which may move elements in a tensor of its shape."""
    if name != "strided_slice" or len(call.args) < 5:
        return False
    steps = getattr(call.args[4], "fields", [None])
    return any(getattr(step, "value", None) != 1 for step in steps)


def _size(tensor: Any) -> int:
    return math.prod(shape_of(tensor) or ())


@mutator
class _Removed(Identities):
    pass
