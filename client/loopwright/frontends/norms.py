"""Normalisations of groups of channels as one function, which reads a group while it is in a near cache. Needs TVM.

Of operators, TVM makes one function for the mean, one for the distances from it, and one for their mean square.
"""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import relax, te, tirx


def group_norm(builder: Any, data: Any, groups: Any, epsilon: float, scale: Any, bias: Any) -> Any:
    """Return the data with mean 0 and deviation 1 in each group, times the scale of each channel plus its bias.

    Args:
        builder: emits what the function is called with.
        data: a tensor (batch, channels, ...) of a floating-point dtype.
        groups: the number of groups of neighbouring channels, an integer or an extent of the data with symbols.
        epsilon: is added to the variance.
        scale: a tensor of one element for each channel, of the dtype of the data; None for 1.
        bias: the same; None for 0.
    """
    shape, dtype = list(data.ty.shape), str(data.ty.dtype)
    size = math.prod(shape[2:])
    # An extent with symbols is not known to be above 0, so that its quotient by itself is not simplified.
    channels = 1 if tvm.sym.Analyzer().can_prove_equal(shape[1], groups) else shape[1] // groups
    flat = builder.emit(relax.op.reshape(data, [shape[0], groups, channels * size]))
    factors = [
        None if each is None else builder.emit(relax.op.reshape(each, [groups, channels])) for each in (scale, bias)
    ]

    def norm(x: te.Tensor, *given: te.Tensor) -> te.Tensor:
        count = tirx.Cast(dtype, x.shape[2])
        k = te.reduce_axis((0, x.shape[2]), "k")
        total = te.compute(x.shape[:2], lambda n, g: te.sum(x(n, g, k), axis=k), name="total")
        mean = te.compute(x.shape[:2], lambda n, g: total(n, g) / count, name="mean")
        j = te.reduce_axis((0, x.shape[2]), "j")

        def square(n: Any, g: Any) -> Any:
            return (x(n, g, j) - mean(n, g)) * (x(n, g, j) - mean(n, g))

        squares = te.compute(x.shape[:2], lambda n, g: te.sum(square(n, g), axis=j), name="squares")
        remaining = list(given)
        by_channel = [None if each is None else remaining.pop(0) for each in factors]

        def element(n: Any, g: Any, c: Any, s: Any) -> Any:
            deviation = tirx.sqrt(squares(n, g) / count + tirx.const(epsilon, dtype))
            value = (x(n, g, c * size + s) - mean(n, g)) / deviation
            value = value if by_channel[0] is None else value * by_channel[0](g, c)
            return value if by_channel[1] is None else value + by_channel[1](g, c)

        return te.compute((shape[0], groups, channels, size), element, name="group_norm")

    given = [each for each in factors if each is not None]
    result = builder.emit_te(norm, flat, *given, primfunc_name_hint="group_norm")
    return builder.emit(relax.op.reshape(result, shape))
