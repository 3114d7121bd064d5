"""The logarithm of a sum of exponentials as one function, as softmax is one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx

from loopwright.codegen.extremes import infinity, larger
from loopwright.codegen.program.extremes import reducer


def log_sum_exp(builder: relax.BlockBuilder, data: Any, axes: Sequence[int] | None, keepdims: bool) -> Any:
    """Return log(sum(exp(x))) along axes, None for all of them, of a tensor of floating-point numbers.

    It is log(sum(exp(x - m))) + m for the maximum m, and m itself if that is infinite; NaN if an element is.

    Args:
        builder: emits into the block that is open.
        data: a tensor with one axis or more, each of one element or more.
        axes: from 0 on.
        keepdims: whether axes stay as extents of 1.
    """
    shape = list(data.ty.shape)
    rank = len(shape)
    reduced = sorted(range(rank) if axes is None else axes)
    kept = [axis for axis in range(rank) if axis not in reduced]
    result = [1 if axis in reduced else extent for axis, extent in enumerate(shape) if keepdims or axis in kept]
    first = reduced[0]
    if reduced != list(range(first, first + len(reduced))):
        data, first = builder.emit(relax.op.permute_dims(data, [*kept, *reduced])), len(kept)
        shape = [shape[axis] for axis in (*kept, *reduced)]
    # Axes of vectors are one, and those that are reduced another one.
    last = first + len(reduced)
    parts = [math.prod(shape[:first]), math.prod(shape[first:last]), math.prod(shape[last:])]
    data = builder.emit(relax.op.reshape(data, parts[:2] if last == rank else parts))
    found = builder.emit_te(_along_second_axis, data, primfunc_name_hint="logsumexp")
    return relax.op.reshape(found, result)


def _along_second_axis(data: te.Tensor) -> te.Tensor:
    before, length, *behind = data.shape
    shape = (before, *behind)
    first, second = (te.reduce_axis((0, length), name) for name in ("k", "k_sum"))
    greatest, limit = reducer(larger, -1), infinity(data.dtype, 1)
    maximum = te.compute(shape, lambda i, *j: greatest(data(i, first, *j), axis=first), name="maximum")
    total = te.compute(
        shape, lambda i, *j: te.sum(te.exp(data(i, second, *j) - maximum(i, *j)), axis=second), name="total"
    )

    def result(*place: Any) -> Any:
        most = maximum(*place)
        return tirx.Select(tirx.abs(most) == limit, most, te.log(total(*place)) + most)

    return te.compute(shape, result, name="logsumexp")
