"""Elementary functions of PyTorch in Relax. Those of integers are computed in the dtype of the result.

TVM subtracts numbers that are nearly equal in several of them: near 0, ``exp(x) - 1`` and ``log(1 + x)`` have no digit
that is right. Series take their place there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from tvm import relax, tirx

from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, wide

_Element = Callable[[Any], Any]


def _unary(operator: Any) -> Converter:
    return lambda node: operator(node.cast(node["self"], node.dtype))


def _precise(element: _Element) -> Converter:
    """Return a converter of a function of scalars of TIR, which is computed in float32 or float64."""

    def convert(node: Node) -> Any:
        return node.cast(elementwise(node, element, node.cast(node["self"], wide(node.dtype))), node.dtype)

    return convert


def _polynomial(value: Any, coefficients: Sequence[float]) -> Any:
    """Return a polynomial by Horner's rule, its lowest coefficient first."""
    result = tirx.const(coefficients[-1], value.ty)
    for coefficient in reversed(coefficients[:-1]):
        result = result * value + tirx.const(coefficient, value.ty)
    return result


def _terms(value: Any, of_float32: int, of_float64: int) -> int:
    return of_float64 if str(value.ty) == "float64" else of_float32


def _log1p(value: Any) -> Any:
    """The series of 2 artanh(x / (2 + x)) between -0.25 and 0.5, where its terms fall by a factor of 25 or more."""
    one, two = tirx.const(1, value.ty), tirx.const(2, value.ty)
    small = tirx.all(value > tirx.const(-0.25, value.ty), value < tirx.const(0.5, value.ty))
    ratio = value / tirx.Select(small, two + value, one)
    series = two * ratio * _polynomial(ratio * ratio, [1 / (2 * k + 1) for k in range(_terms(value, 6, 12))])
    return tirx.Select(small, series, tirx.log(one + value))


def _expm1(value: Any) -> Any:
    """The series of exp between -0.5 and 0.5, without its first term."""
    half, one = tirx.const(0.5, value.ty), tirx.const(1, value.ty)
    small = tirx.all(value > -half, value < half)
    series = value * _polynomial(value, [1 / math.factorial(k) for k in range(1, _terms(value, 10, 17))])
    return tirx.Select(small, series, tirx.exp(value) - one)


def _sinh(value: Any) -> Any:
    one = tirx.const(1, value.ty)
    small = tirx.all(value > -one, value < one)
    square = value * value
    series = value * _polynomial(square, [1 / math.factorial(2 * k + 1) for k in range(_terms(value, 6, 10))])
    # The half comes into the exponent's place, so that only what overflows becomes infinite.
    grown = tirx.exp(tirx.Select(value < tirx.const(0, value.ty), -value, value) * tirx.const(0.5, value.ty))
    large = grown * (tirx.const(0.5, value.ty) * grown) - tirx.const(0.5, value.ty) / (grown * grown)
    return tirx.Select(small, series, tirx.Select(value < tirx.const(0, value.ty), -large, large))


def _atanh(value: Any) -> Any:
    one, two = tirx.const(1, value.ty), tirx.const(2, value.ty)
    return _log1p(two * value / (one - value)) / two


def _elu(node: Node) -> Any:
    """The negative side is scaled twice: its argument, and with the positive side the result."""
    own, (alpha, scale, input_scale) = node.dtype, (float(node[name]) for name in ("alpha", "scale", "input_scale"))

    def element(value: Any) -> Any:
        zero, of_negative, of_positive, inner = (
            tirx.const(each, value.ty) for each in (0, alpha * scale, scale, input_scale)
        )
        negative = tirx.Select(value < zero, value, zero)
        return tirx.Select(
            value > zero, value * of_positive, tirx.Select(value <= zero, _expm1(negative * inner) * of_negative, value)
        )

    return node.cast(elementwise(node, element, node.cast(node["self"], wide(own))), own)


def _atan2(node: Node) -> Any:
    return relax.op.atan2(*(node.cast(node[name], node.dtype) for name in ("self", "other")))


_UNARY = "acos acosh asin asinh atan ceil cos cosh erf exp floor log rsqrt sigmoid sin sqrt square tan tanh trunc"

CONVERTERS: dict[str, Converter] = {
    **{f"{name}.default": _unary(getattr(relax.op, name)) for name in _UNARY.split()},
    "atan2.default": _atan2,
    "atanh.default": _precise(_atanh),
    "elu.default": _elu,
    "exp2.default": lambda node: relax.op.power(node.cast(2, node.dtype), node.cast(node["self"], node.dtype)),
    "expm1.default": _precise(_expm1),
    "log1p.default": _precise(_log1p),
    "sinh.default": _precise(_sinh),
}
