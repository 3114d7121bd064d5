"""Arithmetic, comparisons and bits of PyTorch in Relax, in PyTorch's dtypes.

Operands are cast to a common dtype before an operator: that of the result, which ``torch.export`` says, or, for
comparisons, that of PyTorch's promotion. A number has a dtype of its own, so that an integer tensor times 0.5 is a
tensor of floats.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from tvm import relax, tirx

from loopwright.frontends import elementary
from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, is_tensor, wide

_OVERLOADS = ("Tensor", "Scalar")


def _operands(node: Node, dtype: str, names: tuple[str, str] = ("self", "other")) -> list[Any]:
    return [node.cast(node[name], dtype) for name in names]


def _arithmetic(operator: Any, of_bool: Any = None) -> Converter:
    def convert(node: Node) -> Any:
        if node.dtype == "bool":
            left, right = _operands(node, "bool")
            return of_bool(left, right) if node.arguments.get("alpha", 1) else left
        return _scaled(node, operator, "self", "other")

    return convert


def _scaled(node: Node, operator: Any, first: str, second: str) -> Any:
    """Return a sum or a difference, whose second operand is multiplied by ``alpha``."""
    own, alpha = node.dtype, node.arguments.get("alpha", 1)
    left, right = _operands(node, own, (first, second))
    if alpha == 1:
        is_difference = operator is relax.op.subtract
        return _zero_or_nan(node, left) if is_difference and _is_same(left, right) else operator(left, right)
    inner = wide(own)
    product = node.emit(relax.op.multiply(node.cast(right, inner), node.cast(alpha, inner)))
    return node.cast(node.emit(operator(node.cast(left, inner), product)), own)


def _product(node: Node) -> Any:
    """Convert a product, the only one of these operators that does not round numbers to float16 or bfloat16 before."""
    own, left, right = node.dtype, node["self"], node["other"]
    if own == "bool":
        return relax.op.logical_and(*_operands(node, own))
    if "float" in own and not is_tensor(right) and right == 0:
        return _zero_or_nan(node, node.cast(left, own))
    inner = own if _is_exact(left, own) and _is_exact(right, own) else wide(own)
    return node.cast(node.emit(relax.op.multiply(node.cast(left, inner), node.cast(right, inner))), own)


def _zero_or_nan(node: Node, data: Any) -> Any:
    """Return 0 times a tensor, or a tensor less itself. TVM takes them for 0, which they are not for infinities."""
    own = str(data.ty.dtype)
    if "float" not in own:
        return relax.op.zeros_like(data)
    return node.cast(elementwise(node, _nothing, node.cast(data, wide(own))), own)


def _is_same(left: Any, right: Any) -> bool:
    return bool(left.same_as(right)) and "float" in str(left.ty.dtype)


def _nothing(value: Any) -> Any:
    return tirx.Select(elementary.isfinite(value), tirx.const(0, value.ty), tirx.FloatImm(str(value.ty), math.nan))


def _is_exact(value: Any, dtype: str) -> bool:
    """Return whether an operand is one that the dtype of the result does not round."""
    if is_tensor(value):
        return str(value.ty.dtype) == dtype
    return bool(torch.tensor(value, dtype=getattr(torch, dtype)).item() == value)


def _common(node: Node) -> str:
    """Return the dtype to which PyTorch promotes the operands of a comparison."""
    operands = [_like(node[name]) for name in ("self", "other")]
    common = str(torch.result_type(*operands)).removeprefix("torch.")
    return "int8" if common == "bool" else common  # TVM compares no booleans


def _like(operand: Any) -> Any:
    """Return an operand of PyTorch that takes part in promotion as an operand of Relax does."""
    if is_tensor(operand):
        return torch.empty(
            [0] * len(operand.ty.shape) if len(operand.ty.shape) else [], dtype=getattr(torch, str(operand.ty.dtype))
        )
    return operand if isinstance(operand, bool | int | float) else 1


def _comparison(operator: Any) -> Converter:
    def convert(node: Node) -> Any:
        return operator(*_operands(node, _common(node)))

    return convert


def _equal(node: Node) -> Any:
    """TVM takes a number for equal to itself, also if it is NaN."""
    left, right = _operands(node, _common(node))
    result = node.emit(relax.op.equal(left, right))
    if "float" not in str(left.ty.dtype) or not (isinstance(left, relax.Var) and isinstance(right, relax.Var)):
        return result
    return relax.op.logical_and(result, relax.op.logical_not(node.emit(relax.op.isnan(left))))


def _differs(node: Node) -> Any:
    return node.differs(*_operands(node, _common(node)))


def _bits(operator: Any, of_bool: Any) -> Converter:
    def convert(node: Node) -> Any:
        return (of_bool if node.dtype == "bool" else operator)(*_operands(node, node.dtype))

    return convert


def _inverted_bits(node: Node) -> Any:
    return (relax.op.logical_not if node.dtype == "bool" else relax.op.bitwise_not)(node["self"])


def _logical(operator: Any) -> Converter:
    return lambda node: operator(*_operands(node, "bool"))


def _shift(is_left: bool) -> Converter:
    def convert(node: Node) -> Any:
        if "int" not in node.dtype:
            raise ValueError("shifts numbers that are no integers; multiply by a power of two")
        data, places = _operands(node, node.dtype)
        counts = node.known("other")
        if counts is not None:
            array = np.asarray(counts)
            if array.size and array.min() >= 0 and array.max() < np.iinfo(node.dtype).bits:
                return (relax.op.left_shift if is_left else relax.op.right_shift)(data, places)
        return elementwise(node, _shifted(node.dtype, is_left=is_left), data, places)

    return convert


def _shifted(dtype: str, *, is_left: bool) -> Any:
    """Return a function of integers; those that are shifted by all bits, or by less than none, lose all bits."""
    bits, zero = np.iinfo(dtype).bits, tirx.const(0, dtype)

    def element(value: Any, places: Any) -> Any:
        inside = tirx.all(places >= zero, places < tirx.const(bits, dtype))
        safe = tirx.Select(inside, places, zero)
        if is_left:
            return tirx.Select(inside, value << safe, zero)
        outside = zero if dtype.startswith("u") else tirx.Select(value < zero, tirx.const(-1, dtype), zero)
        return tirx.Select(inside, value >> safe, outside)

    return element


def _power(node: Node) -> Any:
    """PyTorch multiplies, takes a root or divides for some exponents, which also decides about infinities."""
    own, exponent = node.dtype, node["exponent"]
    if "int" in own:
        return _integer_power(node)
    inner = wide(own)
    base, one = node.cast(node["self"], inner), node.cast(1, inner)
    if is_tensor(exponent):
        result = relax.op.power(base, node.cast(exponent, inner))
    elif exponent in (1, 2, 3):
        result = _multiplied(node, base, int(exponent))
    elif exponent in (-1, -2):
        result = relax.op.divide(one, _multiplied(node, base, -int(exponent)))
    elif exponent == 0.5:
        result = relax.op.sqrt(base)
    elif exponent == -0.5:
        result = relax.op.divide(one, node.emit(relax.op.sqrt(base)))
    else:
        result = relax.op.power(base, node.cast(exponent, inner))
    return node.cast(node.emit(result), own)


def _integer_power(node: Node) -> Any:
    own, base, exponent = node.dtype, node["self"], node["exponent"]
    if not is_tensor(exponent):
        return _multiplied(node, node.cast(base, own), int(exponent))
    if base != 2:
        raise ValueError("raises to integers that are not known before; compute with floating-point numbers")
    return elementwise(node, _shifted(own, is_left=True), node.cast(1, own), node.cast(exponent, own))


def _multiplied(node: Node, base: Any, exponent: int) -> Any:
    """Return a power by repeated squaring."""
    result, square = None, base
    while exponent:
        if exponent & 1:
            result = square if result is None else node.emit(relax.op.multiply(result, square))
        exponent >>= 1
        if exponent:
            square = node.emit(relax.op.multiply(square, square))
    return relax.op.ones_like(base) if result is None else result


def _where(node: Node) -> Any:
    return relax.op.where(node["condition"], *_operands(node, node.dtype))


_COMPARISONS = {
    "ge": relax.op.greater_equal,
    "gt": relax.op.greater,
    "le": relax.op.less_equal,
    "lt": relax.op.less,
}
_BITS = {
    "and": (relax.op.bitwise_and, relax.op.logical_and),
    "or": (relax.op.bitwise_or, relax.op.logical_or),
    "xor": (relax.op.bitwise_xor, relax.op.logical_xor),
}
_SHIFTS = {"__lshift__": True, "__rshift__": False, "bitwise_left_shift": True, "bitwise_right_shift": False}


def _overloads(name: str, converter: Converter) -> dict[str, Converter]:
    return {f"{name}.{overload}": converter for overload in _OVERLOADS}


CONVERTERS: dict[str, Converter] = {
    **_overloads("add", _arithmetic(relax.op.add, relax.op.logical_or)),
    **_overloads("mul", _product),
    **_overloads("sub", _arithmetic(relax.op.subtract)),
    **_overloads("rsub", lambda node: _scaled(node, relax.op.subtract, "other", "self")),
    **_overloads("eq", _equal),
    **_overloads("ne", _differs),
    "bitwise_not.default": _inverted_bits,
    "logical_and.default": _logical(relax.op.logical_and),
    "logical_or.default": _logical(relax.op.logical_or),
    "logical_xor.default": _logical(relax.op.logical_xor),
    "logical_not.default": lambda node: relax.op.logical_not(node.cast(node["self"], "bool")),
    "pow.Scalar": _power,
    "pow.Tensor_Scalar": _power,
    "pow.Tensor_Tensor": _power,
    "where.self": _where,
}
for _name, _operator in _COMPARISONS.items():
    CONVERTERS.update(_overloads(_name, _comparison(_operator)))
for _name, _pair in _BITS.items():
    CONVERTERS.update({**_overloads(f"bitwise_{_name}", _bits(*_pair)), **_overloads(f"__{_name}__", _bits(*_pair))})
for _name, _is_left in _SHIFTS.items():
    CONVERTERS.update(
        {f"{_name}.{overload}": _shift(_is_left) for overload in ("Scalar", "Scalar_Tensor", "Tensor", "Tensor_Scalar")}
    )
