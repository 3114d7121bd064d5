"""What attention computes, as consecutive blocks: scores, masks, softmax, and the product with the values.

A row of scores is a whole number of vectors, so that all its stages are in vectors: what is added is masked. There are
more rows of scores than the result has: the last row is repeated, so that schedules may divide them into equal parts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from tvm import te, tirx

from loopwright.codegen.rounding import whole

_LANES = 16
"""Elements of float32 in the longest vector."""
_LEAST_PART, _MOST_PARTS = 8, 16
"""Rows that a part has at least, and parts of equal size into which the rows can be divided, whatever their number."""
_LEAST_SUM = 1e-30
"""A sum of exponentials is at least 1, unless its row is masked entirely: then it is 0, and so is what it divides."""


@dataclass(frozen=True)
class Rounding:
    """Quantisation, by a scale and a zero point of one element."""

    scale: Any
    zero: Any
    dtype: str


@dataclass(frozen=True)
class Step:
    """One operation on the scores: multiplied by ``value``, a mask added, or replaced where a condition is (not) met.

    Or they are multiplied by a tensor of one element, ``scale``, quantised, or less a zero point, ``zero``.

    With a condition, the scores become ``other`` where it is false (or true, if ``inverted``), or ``value`` is added
    where it is true and ``other`` where it is false (if ``added``).
    """

    value: float = 1.0
    mask: Any = None
    condition: Any = None
    other: float = 0.0
    inverted: bool = False
    added: bool = False
    scale: Any = None
    rounding: Rounding | None = None
    zero: Any = None

    @property
    def is_masking(self) -> bool:
        return self.mask is not None or self.condition is not None

    @property
    def factor(self) -> float | None:
        """The constant that multiplies the scores, if the step does nothing else."""
        others = (self.mask, self.condition, self.scale, self.rounding, self.zero)
        return self.value if all(each is None for each in others) else None

    @property
    def hides(self) -> bool | None:
        """For which value of the condition a score becomes -inf; None if it does for neither."""
        if self.condition is None:
            return None
        met = self.value if self.added else self.other if self.inverted else 0.0
        otherwise = self.other if self.added or not self.inverted else 0.0
        hidden = [each == -math.inf for each in (otherwise, met)]
        return hidden[1] if any(hidden) else None


Found = Sequence[tuple[Step, list[Any]]]
"""Steps with their tensors."""


def compute_attention(
    shape: tuple[int, ...], depth: int, width: int, dtype: str, order: Sequence[int], *, pads_rows: bool
) -> Callable[..., te.Tensor]:
    """Return what computes attention: blocks over (batch …, row, column or element of the values)."""
    batch, (result_rows, columns) = shape[:-2], shape[-2:]
    padded = -(-columns // _LANES) * _LANES
    rows = _padded_rows(result_rows) if pads_rows else result_rows

    def constant(value: float) -> Any:
        return tirx.const(value, dtype)

    def compute(
        query: Any, key: Any, value: Any, steps: Found, rounded: Found, last: Found, seen: Any, is_safe: bool
    ) -> te.Tensor:
        def padded_key(*index: Any) -> Any:
            return key(*index) if padded == columns else te.if_then_else(index[-1] < columns, key(*index), constant(0))

        def seen_value(*index: Any) -> Any:
            return tirx.Select(_is_seen(seen, index[-2], columns), value(*index), constant(0))

        def repeated_query(*index: Any) -> Any:
            return query(*_within(index, result_rows))

        # Rows of a copy are at constant distances, those that are repeated, too.
        queries = query
        if rows > result_rows:
            queries = te.compute((*batch, rows, depth), repeated_query, name="attention_queries")
        # Every fast schedule copies the keys, and queries, keys and values may be parts of one tensor.
        keys = te.compute((*batch, depth, padded), padded_key, name="attention_keys")
        k = te.reduce_axis((0, depth), "k")
        scores = te.compute(
            (*batch, rows, padded),
            lambda *i: te.sum(queries(*i[:-1], k) * keys(*i[:-2], k, i[-1]), axis=k),
            name="attention_scores",
        )
        scale = _positive_scale(steps)
        weighted = _stepped(scores, [] if scale is not None else steps, (result_rows, columns), seen, constant)
        j = te.reduce_axis((0, padded), "j")
        maximum = te.compute((*batch, rows), lambda *i: te.max(weighted(*i, j), axis=j), name="attention_max")

        def exponential(*i: Any) -> Any:
            difference = weighted(*i) - maximum(*i[:-1])
            return te.exp(difference if scale is None else difference * constant(scale))

        exponentials = te.compute(scores.shape, exponential, name="attention_exp")
        j = te.reduce_axis((0, padded), "j")
        total = te.compute((*batch, rows), lambda *i: te.sum(exponentials(*i, j), axis=j), name="attention_sum")

        def normalised(element: Any, row: Sequence[Any]) -> Any:
            return element / (tirx.max(total(*row), constant(_LEAST_SUM)) if is_safe else total(*row))

        probabilities = exponentials
        if rounded:

            def probability(*i: Any) -> Any:
                return _applied(normalised(exponentials(*i), i[:-1]), rounded, i, constant)

            probabilities = te.compute(scores.shape, probability, name="attention_probabilities")
        j = te.reduce_axis((0, columns), "j")
        read = value if seen is None else te.compute((*batch, columns, width), seen_value, name="attention_seen_values")
        values = te.compute(
            (*batch, rows, width),
            lambda *i: te.sum(probabilities(*i[:-1], j) * read(*i[:-2], j, i[-1]), axis=j),
            name="attention_values",
        )

        def element(*place: Any) -> Any:
            i = [place[order.index(axis)] for axis in range(len(order))]
            return _applied(values(*i) if rounded else normalised(values(*i), i[:-1]), last, i, constant)

        extents = (*batch, result_rows, width)
        return te.compute([extents[axis] for axis in order], element, name="attention")

    return compute


def _positive_scale(steps: Found) -> float | None:
    """Return the factor of the scores if they are multiplied by positive constants alone.

    It multiplies their distances from the maximum, which is exact: a schedule that multiplied scores and maximum would
    not compute the product twice with the same rounding, as a processor multiplies and subtracts at once.
    """
    factors = [step.factor or 0.0 for step, _ in steps]
    scale = math.prod(factors)
    return scale if factors and min(factors) > 0 and 0 < scale < math.inf else None


def _padded_rows(rows: int) -> int:
    """Return the rows of scores with those that equal parts need, the more parts the more."""
    return rows + max(0, min(rows // _LEAST_PART, _MOST_PARTS) - 1)


def _stepped(
    scores: te.Tensor,
    steps: Found,
    shape: tuple[int, int],
    seen: te.Tensor | None,
    constant: Callable[[float], Any],
) -> te.Tensor:
    """Return the scores after scales and masks, which are one block; those of no column, or one not seen, are -inf.

    ``shape`` is that of the masks: rows and columns without padding.
    """
    rows, columns = shape
    is_padded = int(scores.shape[-1]) > columns
    if not steps and not is_padded:
        return scores
    if is_padded:
        steps = [
            (step, [_padded(mask, scores, columns) for mask in tensors] if step.is_masking else tensors)
            for step, tensors in steps
        ]

    def element(*index: Any) -> Any:
        masked = _within(index, rows) if int(scores.shape[-2]) > rows else index
        value = _applied(scores(*index), steps, masked, constant)
        if seen is not None:
            return tirx.Select(_is_seen(seen, index[-1], columns), value, constant(-math.inf))
        return tirx.Select(index[-1] < columns, value, constant(-math.inf)) if is_padded else value

    return te.compute(scores.shape, element, name="attention_weights")


def _within(index: Sequence[Any], rows: int) -> tuple[Any, ...]:
    """Return a place, which may be in a row of the padding, in the last row if it is."""
    *batch, row, element = index
    return *batch, te.min(row, rows - 1), element


def _is_seen(seen: te.Tensor, column: Any, columns: int) -> Any:
    """Return whether the block of a column is seen. There is no padding then: blocks are whole vectors."""
    return seen(column // (columns // int(seen.shape[0])))


def _applied(value: Any, steps: Found, index: Sequence[Any], constant: Callable[[float], Any]) -> Any:
    """Return an element after steps."""
    for step, tensors in steps:
        if step.rounding is not None:
            scale, zero = (None if each is None else each(0).astype("float32") for each in tensors)
            value = whole(value if scale is None else value / scale, zero, step.rounding.dtype)
        elif step.scale is not None:
            value = value * tensors[0](0)
        elif step.zero is not None:
            value = value - tensors[0](0)
        elif step.mask is not None:
            value = value + _broadcast(tensors[0], index)
        elif step.condition is None:
            value = value * constant(step.value)
        else:
            met = _broadcast(tensors[0], index)
            if step.added:
                value = value + tirx.Select(met, constant(step.value), constant(step.other))
            elif step.inverted:
                value = tirx.Select(met, constant(step.other), value)
            else:
                value = tirx.Select(met, value, constant(step.other))
    return value


def _padded(mask: te.Tensor, scores: te.Tensor, columns: int) -> te.Tensor:
    """Return a copy of a mask in rows as long as those of the scores; what is not a column's is not used.

    A vector of masks would be read beyond the end of the last row otherwise.
    """
    if not len(mask.shape) or int(mask.shape[-1]) == 1:
        return mask
    shape = (*mask.shape[:-1], scores.shape[-1])
    return te.compute(shape, lambda *i: mask(*i[:-1], te.min(i[-1], columns - 1)), name="attention_mask")


def _broadcast(tensor: te.Tensor, index: Sequence[Any]) -> Any:
    """Return the element of a tensor that is broadcast to a larger shape."""
    own = index[len(index) - len(tensor.shape) :]
    places = [0 if int(extent) == 1 else place for extent, place in zip(tensor.shape, own, strict=True)]
    element = tensor(*places)
    return element if str(tensor.dtype) != "int8" else element != 0
