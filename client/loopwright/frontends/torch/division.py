"""Quotients and remainders of PyTorch in Relax.

Integers divided by 0 give 0, for which PyTorch raises an error: the instruction would end the process. So it would for
the least integer divided by -1, whose negation is that integer itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax, tirx

from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, is_tensor, wide

_Element = Callable[[Any, Any], Any]


def _guarded(quotient: _Element, of_minus: _Element) -> _Element:
    """Return a function of integers that is 0 for divisors of 0, and ``of_minus`` for divisors of -1."""

    def element(left: Any, right: Any) -> Any:
        dtype = str(left.ty)
        zero, one = tirx.const(0, dtype), tirx.const(1, dtype)
        is_zero = right == zero
        if dtype.startswith("u"):
            return tirx.Select(is_zero, zero, quotient(left, tirx.Select(is_zero, one, right)))
        is_minus = right == tirx.const(-1, dtype)
        divisor = tirx.Select(tirx.any(is_zero, is_minus), one, right)
        return tirx.Select(is_zero, zero, tirx.Select(is_minus, of_minus(left, zero), quotient(left, divisor)))

    return element


def _floored(left: Any, right: Any) -> Any:
    """The greatest integer not above the quotient of floats, of the exact remainder and so without rounding up."""
    zero = tirx.const(0, str(left.ty))
    one, half = tirx.const(1, str(left.ty)), tirx.const(0.5, str(left.ty))
    rest = tirx.truncmod(left, right)
    quotient = (left - rest) / right
    quotient = tirx.Select(_signs_differ(rest, right), quotient - one, quotient)
    whole = tirx.floor(quotient)
    whole = tirx.Select(quotient - whole > half, whole + one, whole)
    return tirx.Select(right == zero, left / right, whole)


def _truncated(own: str) -> _Element:
    """Return the truncation of a quotient that is rounded to the dtype of the result before, as PyTorch does."""

    def element(left: Any, right: Any) -> Any:
        quotient = left / right
        if own == "bfloat16":  # TVM leaves out a cast to it and back
            bits = tirx.reinterpret("uint32", quotient)
            one, sixteen = tirx.const(1, "uint32"), tirx.const(16, "uint32")
            rounded = bits + tirx.const(0x7FFF, "uint32") + ((bits >> sixteen) & one)
            quotient = tirx.reinterpret("float32", (rounded >> sixteen) << sixteen)
        elif own != str(left.ty):
            quotient = tirx.Cast(str(left.ty), tirx.Cast(own, quotient))
        return tirx.trunc(quotient)

    return element


def _float_remainder(left: Any, right: Any) -> Any:
    """The remainder that has the sign of the divisor."""
    rest = tirx.truncmod(left, right)
    return tirx.Select(_signs_differ(rest, right), rest + right, rest)


def _signs_differ(left: Any, right: Any) -> Any:
    zero = tirx.const(0, str(left.ty))
    return tirx.any(tirx.all(left < zero, right > zero), tirx.all(left > zero, right < zero))


_INTEGERS: dict[str, _Element] = {
    "floor": _guarded(tirx.floordiv, lambda left, zero: zero - left),
    "trunc": _guarded(tirx.truncdiv, lambda left, zero: zero - left),
    "remainder": _guarded(tirx.floormod, lambda left, zero: zero),
    "fmod": _guarded(tirx.truncmod, lambda left, zero: zero),
}
_FLOATS: dict[str, _Element] = {
    "floor": _floored,
    "remainder": _float_remainder,
    "fmod": tirx.truncmod,
}
_OF_CONSTANTS = {"floor": relax.op.floor_divide, "remainder": relax.op.floor_mod}


def _whole(kind: str) -> Converter:
    """Return a converter of whole quotients or of remainders."""

    def convert(node: Node) -> Any:
        own = node.dtype
        if "float" in own:
            operands = [node.cast(node.cast(node[name], own), wide(own)) for name in ("self", "other")]
            element = _truncated(own) if kind == "trunc" else _FLOATS[kind]
            return node.cast(elementwise(node, element, *operands), own)
        left, right = (node.cast(node[name], own) for name in ("self", "other"))
        number = node["other"]
        if not is_tensor(number) and number not in (0, -1) and kind in _OF_CONSTANTS:
            return _OF_CONSTANTS[kind](left, right)
        return elementwise(node, _INTEGERS[kind], left, right)

    return convert


def _quotient(node: Node) -> Any:
    """Convert a division in the dtype of the result, which is never an integer; the mode is ``rounding_mode``."""
    mode = node.arguments.get("rounding_mode")
    if mode is not None:
        return _whole(mode)(node)
    own = node.dtype
    operands = [node.cast(node[name], wide(own)) for name in ("self", "other")]
    return node.cast(node.emit(relax.op.divide(*operands)), own)


def _reciprocal(node: Node) -> Any:
    inner = wide(node.dtype)
    return node.cast(node.emit(relax.op.divide(node.cast(1, inner), node.cast(node["self"], inner))), node.dtype)


CONVERTERS: dict[str, Converter] = {
    **dict.fromkeys(("div.Scalar", "div.Scalar_mode", "div.Tensor", "div.Tensor_mode"), _quotient),
    "floor_divide.default": _whole("floor"),
    **dict.fromkeys(("fmod.Scalar", "fmod.Tensor"), _whole("fmod")),
    "reciprocal.default": _reciprocal,
    **dict.fromkeys(("remainder.Scalar", "remainder.Scalar_Tensor", "remainder.Tensor"), _whole("remainder")),
}
