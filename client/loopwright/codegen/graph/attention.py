"""Attention as one function: scores, scale, masks, softmax and the product with the values as consecutive blocks.

Matched is ``softmax(q k^T …) v`` as importers and people write it, with scales on either side, additive masks and
``where``, and with the check for rows that are masked entirely, of which PyTorch's `scaled_dot_product_attention` makes
zeros. Scores and probabilities may be quantised and dequantised on the way, and so may queries, keys and values: these
are integers then, whose products and sums are exact in float32 below 2^24, and their scales multiply the sums.
Queries, keys and values are read where they lie (`loopwright.codegen.graph.views`), so that neither the split
into heads nor the transposition of the keys is a function of its own. Blocks of keys that a mask hides from all
queries are no part of it (`loopwright.codegen.graph.seen_keys`), whatever their values are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import tvm
from tvm import relax
from tvm.relax.expr_functor import mutator

from loopwright.codegen.graph.attention_program import Rounding, Step, compute_attention
from loopwright.codegen.graph.rewriting import (
    CallRewriter,
    dtype_of,
    is_single,
    op_name,
    reshaped,
    rewrite_calls,
    scalar_of,
    shape_of,
)
from loopwright.codegen.graph.seen_keys import block_size, seen_blocks
from loopwright.codegen.graph.views import BufferAccess, View, access, split_axes, view_of


def fuse_attention(mod: tvm.IRModule, *, pads_rows: bool) -> tvm.IRModule:
    """Make one function of every attention whose probabilities are used by nothing else.

    With ``pads_rows``, float32 has rows of padding for schedules that divide the rows.
    """
    return rewrite_calls(mod, lambda given: _Attention(given, pads_rows))


@dataclass(frozen=True)
class _Scores:
    left: Any
    right: Any
    steps: tuple[Step, ...] = field(default=())

    def then(self, *steps: Step) -> _Scores:
        return _Scores(self.left, self.right, (*self.steps, *steps))


@mutator
class _Attention(CallRewriter):
    def __init__(self, mod: tvm.IRModule, pads_rows: bool) -> None:
        super().__init__(mod)
        self.pads_rows = pads_rows

    def rewrite(self, name: str, call: tvm.ir.Call) -> Any:
        if name != "matmul" or not shape_of(call) or len(shape_of(call) or ()) < 3:
            return call
        probabilities, rounded = self._rounded(self._without_reshape(call.args[0]))
        softmax, is_safe = self._softmax(probabilities)
        if softmax is None or any(self.uses()[tensor] > 1 for tensor in (probabilities, call.args[0])):
            return call
        shape = shape_of(softmax)
        if shape is None or int(softmax.attrs.axis) % len(shape) != len(shape) - 1:
            return call
        scores = self._scores(softmax.args[0], shape)
        fused = None if scores is None else self._fused(call, scores, rounded, shape, is_safe)
        return call if fused is None else fused

    def _without_reshape(self, tensor: Any) -> Any:
        """Return the tensor before a reshape of its batch."""
        call = self.call_of(tensor, "reshape")
        source = None if call is None else call.args[0]
        same = source is not None and (shape_of(source) or ())[-2:] == (shape_of(tensor) or ())[-2:]
        return source if same else tensor

    def _rounded(self, tensor: Any) -> tuple[Any, tuple[Step, ...]]:
        """Return a tensor before it was quantised and dequantised, and the steps of that; the tensor if it was not."""
        steps: list[Step] = []
        source = tensor
        while (found := self._quantisation(source)) is not None:
            source, step = found
            source = self._without_reshape(source)
            steps.insert(0, step)
        is_once = [step.rounding is not None for step in steps] == [True] + [False] * (len(steps) - 1)
        return (source, tuple(steps)) if is_once else (tensor, ())

    def _quantisation(self, tensor: Any) -> tuple[Any, Step] | None:
        """Return a tensor before one step of quantisation or dequantisation, and the step."""
        call = self.call_of(tensor, "multiply", "subtract", "astype")
        if call is None or dtype_of(call) != "float32":
            return None
        source = call.args[0]
        if op_name(call) == "astype":
            quantised = self.call_of(self._without_reshape(source), "quantize")
            if quantised is None or not all(is_single(each) for each in quantised.args[1:]):
                return None
            source, scale, zero = quantised.args
            return source, Step(rounding=Rounding(scale, zero, dtype_of(quantised)))
        if not is_single(call.args[1]) or scalar_of(self.value(call.args[1])) is not None:
            return None
        return source, Step(scale=call.args[1]) if op_name(call) == "multiply" else Step(zero=call.args[1])

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
        if (quantisation := self._quantisation(tensor)) is not None:
            scores = self._scores(quantisation[0], shape)
            return None if scores is None else scores.then(quantisation[1])
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
                    return scores.then(self._mask(mask))
            return None
        condition, *branches = operands
        condition, is_negated = self._without_negation(condition)
        for inner, other, inverted in ((*branches, False), (*reversed(branches), True)):
            value, scores = self._fill(other), self._scores(inner, shape)
            if value is not None and scores is not None and shape_of(inner) == shape:
                return scores.then(Step(condition=condition, other=value, inverted=inverted != is_negated))
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
        return scores.then(Step(value=1.0 / factor if name == "divide" else factor))

    def _mask(self, mask: Any) -> Step:
        while (repeated := self.call_of(mask, "broadcast_to")) is not None and shape_of(repeated.args[0]) is not None:
            mask = repeated.args[0]
        selection = self.call_of(mask, "where")
        if selection is not None:
            values = [scalar_of(self.value(branch)) for branch in selection.args[1:]]
            condition, is_negated = self._without_negation(selection.args[0])
            met, otherwise = reversed(values) if is_negated else values
            if met is not None and otherwise is not None:
                return Step(value=met, condition=condition, other=otherwise, added=True)
        return Step(mask=mask)

    def _fused(
        self, call: tvm.ir.Call, scores: _Scores, rounded: Sequence[Step], shape: tuple[int, ...], is_safe: bool
    ) -> Any:
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
        first = [Step(value=scale)] if scale != 1.0 else []
        first += [Step(scale=each) for view in (query[0], key[0]) for each in view.scales]
        # What multiplies all probabilities of a row multiplies the sums instead.
        kept = [step for step in rounded if step.scale is None]
        last = [Step(scale=each.scale) for each in rounded if each.scale is not None]
        last += [Step(scale=each) for each in value[0].scales]
        seen = self._seen_blocks(scores.steps, columns)
        operands = _Operands(self)
        reads = [operands.accessed(found) for _, found in (query, key, value)]
        stages = [[operands.step(step, parts) for step in steps] for steps in ((*first, *scores.steps), kept, last)]
        flags = None if seen is None else operands.place(seen, shape_of(seen) or ())
        order = _output_order(query[0])
        dtype = dtype_of(call)
        pads_rows = self.pads_rows and dtype == "float32"
        compute = compute_attention(shape, depth[0], width[0], dtype, order, pads_rows=pads_rows)
        fused = self.builder_.call_te(
            lambda *tensors: compute(
                *(read(tensors) for read in reads),
                *([step(tensors) for step in steps] for steps in stages),
                None if flags is None else tensors[flags],
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

    def _seen_blocks(self, steps: Sequence[Step], columns: int) -> Any:
        """Return flags of the blocks of keys that some query sees; None if there are none, or no arguments decide."""
        size = block_size(columns)
        for place, step in enumerate(steps):
            mask, hides = step.condition, step.hides
            if size is None or hides is None or not all(each.is_masking for each in steps[place:]):
                continue
            if (shape_of(mask) or (1,))[-1] == columns and dtype_of(mask) == "bool" and self._is_computed(mask):
                return self.emit(
                    self.builder_.call_te(seen_blocks, mask, size, hides=hides, primfunc_name_hint="seen_keys")
                )
        return None

    def _is_computed(self, expr: Any) -> bool:
        """Return whether an expression depends on arguments of the function."""
        value = self.value(expr)
        if isinstance(value, relax.Tuple):
            return any(map(self._is_computed, value.fields))
        return isinstance(value, relax.Var) or any(map(self._is_computed, getattr(value, "args", ())))

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
        place = self.place(read.base, read.shape)
        return lambda tensors: lambda *index: read.at(tensors[place], index)

    def masked(self, mask: Any, parts: Sequence[Sequence[int]]) -> Callable[[Sequence[Any]], Any]:
        """Return what finds a mask, whose axes are split as those of the scores; those of extent 1 stay repeated."""
        if mask is None:
            return lambda tensors: None
        own = shape_of(mask) or ()
        axes = zip(own, list(parts)[len(parts) - len(own) :], strict=True)
        place = self.place(mask, tuple(1 if extent == 1 else width for extent, part in axes for width in part))
        return lambda tensors: tensors[place]

    def step(self, step: Step, parts: Sequence[Sequence[int]]) -> Callable[[Sequence[Any]], tuple[Step, list[Any]]]:
        """Return what finds a step and its tensors: a mask, a zero point or scales; None for a scale 1 or a zero 0."""
        rounding = step.rounding
        if rounding is not None:
            numbers = [scalar_of(self.rewriter.value(each)) for each in (rounding.scale, rounding.zero)]
            kept = [number != neutral for number, neutral in zip(numbers, (1.0, 0.0), strict=True)]
            tensors = [rounding.scale, rounding.zero]
            places = [self.place(each, (1,)) if is_kept else None for each, is_kept in zip(tensors, kept, strict=True)]
            return lambda given: (step, [None if place is None else given[place] for place in places])
        if step.scale is not None or step.zero is not None:
            single = self.place(step.zero if step.scale is None else step.scale, (1,))
            return lambda given: (step, [given[single]])
        mask = self.masked(step.condition if step.mask is None else step.mask, parts)
        return lambda given: (step, [mask(given)])

    def place(self, tensor: Any, shape: tuple[int, ...]) -> int:
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
