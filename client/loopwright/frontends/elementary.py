"""Elementary functions that are right near 0 and far from it, for the front ends.

TVM's importers subtract numbers that are nearly equal: near 0, ``exp(x) - 1`` and ``log(1 + x)`` have no digit that is
right. Series take their place there.

`expm1` and `elu` are made of Relax's operators, which are fused with those before and behind them. The others are
functions of scalars in TIR (`loopwright.codegen.program.broadcasting.elementwise`): what they read several times would
be computed several times if it were fused with them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import relax, tirx

Emit = Callable[[Any], Any]


def expm1(emit: Emit, data: Any) -> Any:
    """Return exp(x) - 1 of a tensor of float32 or float64: between -0.5 and 0.5 by the series, less its first term."""
    dtype = str(data.ty.dtype)
    coefficients = [1 / math.factorial(k) for k in range(1, _terms(dtype, 10, 17))]
    series: Any = relax.const(coefficients[-1], dtype)
    for coefficient in reversed(coefficients[:-1]):
        series = relax.op.add(relax.op.multiply(series, data), relax.const(coefficient, dtype))
    is_near = relax.op.less(relax.op.abs(data), relax.const(0.5, dtype))
    far = relax.op.subtract(relax.op.exp(data), relax.const(1, dtype))
    return emit(relax.op.where(is_near, relax.op.multiply(data, series), far))


def elu(emit: Emit, data: Any, *, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Any:
    """Return scale * x above 0, and alpha * scale * (exp(input_scale * x) - 1) below."""
    dtype = str(data.ty.dtype)
    scaled = data if input_scale == 1 else emit(relax.op.multiply(data, relax.const(input_scale, dtype)))
    below = relax.op.multiply(expm1(emit, scaled), relax.const(alpha * scale, dtype))
    above = data if scale == 1 else relax.op.multiply(data, relax.const(scale, dtype))
    return emit(relax.op.where(relax.op.less(data, relax.const(0, dtype)), below, above))


def isfinite(value: Any) -> Any:
    """Return whether a number is neither infinite nor NaN, which TVM's own function takes for finite."""
    return tirx.abs(value) < tirx.FloatImm(str(value.ty), math.inf)


def log1p(value: Any) -> Any:
    """Return log(1 + x): between -0.25 and 0.5 by that of 2 artanh(x / (2 + x)), whose terms fall by a factor of 25."""
    one, two = tirx.const(1, value.ty), tirx.const(2, value.ty)
    small = tirx.all(value > tirx.const(-0.25, value.ty), value < tirx.const(0.5, value.ty))
    ratio = value / tirx.Select(small, two + value, one)
    series = two * ratio * _polynomial(ratio * ratio, [1 / (2 * k + 1) for k in range(_terms(value.ty, 6, 12))])
    return tirx.Select(small, series, tirx.log(one + value))


def softplus(value: Any) -> Any:
    """Return log(1 + exp(x))."""
    zero = tirx.const(0, value.ty)
    size = tirx.Select(value < zero, -value, value)
    return tirx.Select(value > zero, value, zero) + log1p(tirx.exp(-size))


def sinh(value: Any) -> Any:
    """Return the hyperbolic sine: between -1 and 1 by its series; only what overflows is infinite."""
    zero, one, half = (tirx.const(each, value.ty) for each in (0, 1, 0.5))
    small = tirx.all(value > -one, value < one)
    coefficients = [1 / math.factorial(2 * k + 1) for k in range(_terms(value.ty, 6, 10))]
    series = value * _polynomial(value * value, coefficients)
    grown = tirx.exp(tirx.Select(value < zero, -value, value) * half)  # the root of exp, which may overflow
    large = grown * (half * grown) - half / (grown * grown)
    return tirx.Select(small, series, tirx.Select(value < zero, -large, large))


def atanh(value: Any) -> Any:
    """Return the inverse hyperbolic tangent, by log(1 + 2x / (1 - x))."""
    one, two = tirx.const(1, value.ty), tirx.const(2, value.ty)
    return log1p(two * value / (one - value)) / two


def _polynomial(value: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial by Horner's rule, its lowest coefficient first."""
    result = tirx.const(coefficients[-1], value.ty)
    for coefficient in reversed(coefficients[:-1]):
        result = result * value + tirx.const(coefficient, value.ty)
    return result


def _terms(dtype: Any, of_float32: int, of_float64: int) -> int:
    return of_float64 if str(dtype) == "float64" else of_float32
