"""Attention as one function: scores, scale, masks, softmax and the product with the values as consecutive blocks.

Matched is ``softmax(q k^T …) v`` as importers and people write it, with scales on either side, additive masks and
``where``, and with the check for rows that are masked entirely, of which PyTorch's `scaled_dot_product_attention` makes
zeros. A row of scores is a whole number of vectors, so that all its stages are in vectors: what is added is masked.
Queries, keys and values are read where they lie (`loopwright.codegen.graph.views`), so that neither the split
into heads nor the transposition of the keys is a function of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax, te, tirx
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    dtype_of,
    reshaped,
    rewrite_calls,
    scalar_of,
    shape_of,
)
from loopwright.codegen.graph.views import BufferAccess, View, access, split_axes, view_of

_LANES = 16
"""Elements of float32 in the longest vector."""
_LEAST_SUM = 1e-30
"""A sum of exponentials is at least 1, unless its row is masked entirely: then it is 0, and so is what it divides."""


def fuse_attention(mod: tvm.IRModule) -> tvm.IRModule:
    """Make one function of every attention whose probabilities are used by nothing else."""
    return rewrite_calls(mod, _Attention)


@dataclass(frozen=True)
class _Step:
    """One operation on the scores: multiplied by ``value``, a mask added, or replaced where a condition is (not) met.

    With a condition, the scores become ``other`` where it is false (or true, if ``inverted``), or ``value`` is added
    where it is true and ``other`` where it is false (if ``added``).
    """

    value: float = 1.0
    mask: Any = None
    condition: Any = None
    other: float = 0.0
    inverted: bool = False
    added: bool = False


@dataclass(frozen=True)
class _Scores:
    left: Any
    right: Any
    steps: tuple[_Step, ...] = field(default=())


@mutator
class _Attention(CallRewriter):
    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "matmul" or not shape_of(call) or len(shape_of(call) or ()) < 3:
            return call
        probabilities = self._without_reshape(call.args[0])
        softmax, is_safe = self._softmax(probabilities)
        if softmax is None or any(self.uses[tensor] > 1 for tensor in (probabilities, call.args[0])):
            return call
        shape = shape_of(softmax)
        if shape is None or int(softmax.attrs.axis) % len(shape) != len(shape) - 1:
            return call
        scores = self._scores(softmax.args[0], shape)
        fused = None if scores is None else self._fused(call, scores, shape, is_safe)
        return call if fused is None else fused

    def _without_reshape(self, tensor: Any) -> Any:
        """Return the tensor before a reshape of its batch."""
        call = self.call_of(tensor, "reshape")
        source = None if call is None else call.args[0]
        same = source is not None and (shape_of(source) or ())[-2:] == (shape_of(tensor) or ())[-2:]
        return source if same else tensor

    def _softmax(self, tensor: Any) -> tuple[tvm.ir.Call | None, bool]:
        """Return the softmax that a tensor is, and whether rows that are masked entirely become 0."""
        selection = self.call_of(tensor, "where")
        if selection is None:
            return self.call_of(tensor, "nn.softmax"), False
        condition, filled, kept = selection.args
        softmax = self.call_of(kept, "nn.softmax")
        if softmax is None or self._fill(filled) != 0.0 or not self._is_masked(condition, softmax.args[0]):
            return None, False
        return softmax, True

    def _fill(self, tensor: Any) -> float | None:
        call = self.call_of(tensor, "full", "full_like")
        return scalar_of(self.value(tensor if call is None else call.args[1]))

    def _is_masked(self, condition: Any, scores: Any) -> bool:
        """Return whether a condition is: all scores of a row are -inf, as ``not any(not (scores == -inf))``."""
        negations, reductions = 0, 0
        while (call := self.call_of(condition, "logical_not", "astype", "max", "reshape")) is not None:
            name = str(call.op.name)
            negations += name == "relax.logical_not"
            if name == "relax.max":
                axes, rank = call.attrs.axis, len(shape_of(call.args[0]) or ())
                reductions += axes is not None and [int(axis) % rank for axis in axes] == [rank - 1]
            condition = call.args[0]
        equal = self.call_of(condition, "equal")
        if equal is None or (negations, reductions) != (2, 1):
            return False
        return equal.args[0].same_as(scores) and scalar_of(self.value(equal.args[1])) == -math.inf

    def _scores(self, tensor: Any, shape: tuple[int, ...]) -> _Scores | None:
        """Return the product that scores begin with, and what is done to it after."""
        tensor = self._without_reshape(tensor)
        call = self.call_of(tensor, "matmul", "multiply", "divide", "add", "where")
        if call is None:
            return None
        name, operands = str(call.op.name).removeprefix("relax."), list(call.args)
        if name == "matmul":
            return _Scores(*operands)
        if name in ("multiply", "divide"):
            return self._scaled(name, operands, shape)
        if shape_of(tensor) != shape:
            return None
        if name == "add":
            for inner, mask in (operands, reversed(operands)):
                scores = self._scores(inner, shape)
                if scores is not None and shape_of(inner) == shape and shape_of(mask) is not None:
                    return _Scores(scores.left, scores.right, (*scores.steps, self._mask(mask)))
            return None
        condition, *branches = operands
        condition, is_negated = self._without_negation(condition)
        for inner, other, inverted in ((*branches, False), (*reversed(branches), True)):
            value, scores = self._fill(other), self._scores(inner, shape)
            if value is not None and scores is not None and shape_of(inner) == shape:
                step = _Step(condition=condition, other=value, inverted=inverted != is_negated)
                return _Scores(scores.left, scores.right, (*scores.steps, step))
        return None

    def _without_negation(self, condition: Any) -> tuple[Any, bool]:
        """Return a condition before its negations, and whether they are odd in number."""
        is_negated = False
        while (call := self.call_of(condition, "logical_not", "bitwise_not")) is not None:
            if dtype_of(call.args[0]) != "bool":
                break
            condition, is_negated = call.args[0], not is_negated
        return condition, is_negated

    def _scaled(self, name: str, operands: Sequence[Any], shape: tuple[int, ...]) -> _Scores | None:
        factors = [scalar_of(self.value(operand)) for operand in operands]
        place = 0 if factors[1] is not None else 1
        factor = factors[1 - place]
        scores = self._scores(operands[place], shape)
        if not factor or scores is None or (name == "divide" and place == 1):
            return None
        step = _Step(value=1.0 / factor if name == "divide" else factor)
        return _Scores(scores.left, scores.right, (*scores.steps, step))

    def _mask(self, mask: Any) -> _Step:
        while (repeated := self.call_of(mask, "broadcast_to")) is not None and shape_of(repeated.args[0]) is not None:
            mask = repeated.args[0]
        selection = self.call_of(mask, "where")
        if selection is not None:
            values = [scalar_of(self.value(branch)) for branch in selection.args[1:]]
            condition, is_negated = self._without_negation(selection.args[0])
            met, otherwise = reversed(values) if is_negated else values
            if met is not None and otherwise is not None:
                return _Step(value=met, condition=condition, other=otherwise, added=True)
        return _Step(mask=mask)

    def _fused(self, call: tvm.ir.Call, scores: _Scores, shape: tuple[int, ...], is_safe: bool) -> Any:
        parts = self._parts(shape, scores.right, call.args[1])
        shape = tuple(extent for part in parts for extent in part)
        batch, (rows, columns) = shape[:-2], shape[-2:]
        depth, width = (shape_of(scores.left) or ())[-1:], (shape_of(call) or ())[-1:]
        query = self._read(scores.left, (*batch, rows, *depth))
        key = self._read(scores.right, (*batch, *depth, columns))
        value = self._read(call.args[1], (*batch, columns, *width))
        if query is None or key is None or value is None:
            return None
        scale = query[0].factor * key[0].factor * value[0].factor
        if value[0].factor != 1.0 or (scale != 1.0 and not math.isfinite(scale)):
            return None
        steps = scores.steps if scale == 1.0 else (_Step(value=scale), *scores.steps)
        operands = _Operands(self)
        reads = [operands.accessed(found) for _, found in (query, key, value)]
        masks = [operands.masked(step.condition if step.mask is None else step.mask, parts) for step in steps]
        order = _output_order(query[0])
        compute = _compute(shape, depth[0], width[0], dtype_of(call), order)
        fused = self.builder_.call_te(
            lambda *tensors: compute(
                *(read(tensors) for read in reads),
                [(step, mask(tensors)) for step, mask in zip(steps, masks, strict=True)],
                is_safe,
            ),
            *operands.tensors,
            primfunc_name_hint="attention",
        )
        inverse = [order.index(axis) for axis in range(len(order))]
        result = self.emit(fused)
        if inverse != sorted(inverse):
            result = self.emit(relax.op.permute_dims(result, inverse))
        return reshaped(result, shape_of(call) or ())

    def _parts(self, shape: tuple[int, ...], *repeated: Any) -> list[tuple[int, ...]]:
        """Return the extents into which each axis of the scores is split.

        Axes of the batch with extent 1 are left out. Heads of queries that share keys and values, which are repeated
        for them, are split into groups, for then the repeated tensor is a view.
        """
        batch: list[tuple[int, ...]] = [(extent,) if extent > 1 else () for extent in shape[:-2]]
        wide = [extent for part in batch for extent in part]
        for tensor in repeated:
            source = tensor
            while (call := self.call_of(source, "reshape", "permute_dims", "multiply", "divide")) is not None:
                source = call.args[0]
            call = self.call_of(source, "broadcast_to")
            finer = [extent for extent in (shape_of(call) or ())[:-2] if extent > 1]
            groups = split_axes(wide, finer)
            if call is not None and groups is not None and len(finer) > len(wide):
                extents = iter([tuple(finer[axis] for axis in group) for group in groups])
                batch = [next(extents) if part else () for part in batch]
                break
        return [*batch, (shape[-2],), (shape[-1],)]

    def _read(self, tensor: Any, shape: tuple[int, ...]) -> tuple[View, BufferAccess] | None:
        """Return a tensor as a view of another shape, which may have more of a batch, and how to read it."""
        own = shape_of(tensor) or ()
        same_size = math.prod(own) == math.prod(shape)
        wanted = shape if same_size else own
        for candidate in (view_of(self, tensor, wanted), View.of(tensor, wanted)):
            view = candidate if same_size else candidate.broadcast(shape)
            found = None if view is None else access(view)
            if view is not None and found is not None:
                return view, found
        return None


class _Operands:
    """The tensors that a fused function takes, each once."""

    def __init__(self, rewriter: CallRewriter) -> None:
        self.rewriter = rewriter
        self.tensors: list[Any] = []
        self.keys: list[tuple[Any, tuple[int, ...]]] = []

    def accessed(self, read: BufferAccess) -> Callable[[Sequence[Any]], Callable[..., Any]]:
        place = self._place(read.base, read.shape)
        return lambda tensors: lambda *index: read.at(tensors[place], index)

    def masked(self, mask: Any, parts: Sequence[Sequence[int]]) -> Callable[[Sequence[Any]], Any]:
        """Return what finds a mask, whose axes are split as those of the scores; those of extent 1 stay repeated."""
        if mask is None:
            return lambda tensors: None
        own = shape_of(mask) or ()
        axes = zip(own, list(parts)[len(parts) - len(own) :], strict=True)
        place = self._place(mask, tuple(1 if extent == 1 else width for extent, part in axes for width in part))
        return lambda tensors: tensors[place]

    def _place(self, tensor: Any, shape: tuple[int, ...]) -> int:
        for place, (known, extents) in enumerate(self.keys):
            if known.same_as(tensor) and extents == shape:
                return place
        self.keys.append((tensor, shape))
        self.tensors.append(self.rewriter.emit(reshaped(tensor, shape)))
        return len(self.tensors) - 1


def _output_order(query: View) -> list[int]:
    """Return the axes of the result as they lie in memory, the outermost first: as those of the queries do."""
    last = len(query.shape) - 1
    walked = [axis for axis in range(last) if query.shape[axis] > 1 and query.strides[axis]]
    by_stride = iter(sorted(walked, key=lambda axis: -query.strides[axis]))
    return [next(by_stride) if axis in walked else axis for axis in range(last)] + [last]


def _compute(
    shape: tuple[int, ...], depth: int, width: int, dtype: str, order: Sequence[int]
) -> Callable[..., te.Tensor]:
    """Return what computes attention: blocks over (batch …, row, column or element of the values)."""
    batch, (rows, columns) = shape[:-2], shape[-2:]
    padded = -(-columns // _LANES) * _LANES

    def constant(value: float) -> Any:
        return tirx.const(value, dtype)

    def compute(query: Any, key: Any, value: Any, steps: Sequence[tuple[_Step, Any]], is_safe: bool) -> te.Tensor:
        def padded_key(*index: Any) -> Any:
            return key(*index) if padded == columns else te.if_then_else(index[-1] < columns, key(*index), constant(0))

        # Every fast schedule copies the keys, and queries, keys and values may be parts of one tensor.
        keys = te.compute((*batch, depth, padded), padded_key, name="attention_keys")
        k = te.reduce_axis((0, depth), "k")
        scores = te.compute(
            (*batch, rows, padded),
            lambda *i: te.sum(query(*i[:-1], k) * keys(*i[:-2], k, i[-1]), axis=k),
            name="attention_scores",
        )
        weighted = _stepped(scores, steps, columns, constant)
        j = te.reduce_axis((0, padded), "j")
        maximum = te.compute((*batch, rows), lambda *i: te.max(weighted(*i, j), axis=j), name="attention_max")
        exponentials = te.compute(
            scores.shape, lambda *i: te.exp(weighted(*i) - maximum(*i[:-1])), name="attention_exp"
        )
        j = te.reduce_axis((0, padded), "j")
        total = te.compute((*batch, rows), lambda *i: te.sum(exponentials(*i, j), axis=j), name="attention_sum")
        j = te.reduce_axis((0, columns), "j")
        values = te.compute(
            (*batch, rows, width),
            lambda *i: te.sum(exponentials(*i[:-1], j) * value(*i[:-2], j, i[-1]), axis=j),
            name="attention_values",
        )

        def normalised(*place: Any) -> Any:
            i = [place[order.index(axis)] for axis in range(len(order))]
            divisor = total(*i[:-1])
            return values(*i) / (tirx.max(divisor, constant(_LEAST_SUM)) if is_safe else divisor)

        extents = (*batch, rows, width)
        return te.compute([extents[axis] for axis in order], normalised, name="attention")

    return compute


def _stepped(
    scores: te.Tensor, steps: Sequence[tuple[_Step, Any]], columns: int, constant: Callable[[float], Any]
) -> te.Tensor:
    """Return the scores after scales and masks, which are one block; those beyond the last column are -inf."""
    is_padded = int(scores.shape[-1]) > columns
    if not steps and not is_padded:
        return scores

    masks = [mask if mask is None or not is_padded else _padded(mask, scores, columns) for _, mask in steps]

    def element(*index: Any) -> Any:
        value = scores(*index)
        for (step, _), mask in zip(steps, masks, strict=True):
            met = None if mask is None else _broadcast(mask, index)
            if step.mask is not None:
                value = value + met
            elif met is None:
                value = value * constant(step.value)
            elif step.added:
                value = value + tirx.Select(met, constant(step.value), constant(step.other))
            elif step.inverted:
                value = tirx.Select(met, constant(step.other), value)
            else:
                value = tirx.Select(met, value, constant(step.other))
        return tirx.Select(index[-1] < columns, value, constant(-math.inf)) if is_padded else value

    return te.compute(scores.shape, element, name="attention_weights")


def _padded(mask: te.Tensor, scores: te.Tensor, columns: int) -> te.Tensor:
    """Return a copy of a mask in rows as long as those of the scores; what is not a column's is not used.

    A vector of masks would be read beyond the end of the last row otherwise.
    """
    if int(mask.shape[-1]) == 1:
        return mask
    shape = (*mask.shape[:-1], scores.shape[-1])
    return te.compute(shape, lambda *i: mask(*i[:-1], te.min(i[-1], columns - 1)), name="attention_mask")


def _broadcast(tensor: te.Tensor, index: Sequence[Any]) -> Any:
    """Return the element of a tensor that is broadcast to a larger shape."""
    own = index[len(index) - len(tensor.shape) :]
    places = [0 if int(extent) == 1 else place for extent, place in zip(tensor.shape, own, strict=True)]
    element = tensor(*places)
    return element if str(tensor.dtype) != "int8" else element != 0
