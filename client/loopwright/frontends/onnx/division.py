"""Quotients and remainders: those of integers by 0 do not end the process, and signs are those of ONNX."""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, constant, dtype_of


def _quotient(node: Node) -> Any:
    """Convert a division. Integers divided by 0 give 0 (undefined in ONNX): the instruction would end the process.

    So would the least integer divided by -1, whose negation is the integer itself.
    """
    left, right = node.inputs
    dtype = dtype_of(left)
    if "int" not in dtype or constant(right) is not None:
        return node.as_usual()
    zero = relax.const(0, dtype)
    is_zero = node.emit(relax.op.equal(right, zero))
    if dtype.startswith("u"):
        quotient = node.emit(node.as_usual(left, _unless(node, is_zero, right, dtype)))
        return relax.op.where(is_zero, zero, quotient)
    is_minus = node.emit(relax.op.equal(right, relax.const(-1, dtype)))
    divisor = _unless(node, node.emit(relax.op.logical_or(is_zero, is_minus)), right, dtype)
    quotient = node.emit(node.as_usual(left, divisor))
    negated = node.emit(relax.op.subtract(zero, left))
    return relax.op.where(is_zero, zero, node.emit(relax.op.where(is_minus, negated, quotient)))


def _unless(node: Node, is_special: Any, divisor: Any, dtype: str) -> Any:
    return node.emit(relax.op.where(is_special, relax.const(1, dtype), divisor))


def _remainder(node: Node) -> Any:
    """Convert a remainder, whose sign is that of the divisor, even if that is infinite; with fmod, of the dividend.

    Integers divided by 0 or -1 leave 0.
    """
    left, right = node.inputs
    dtype = dtype_of(left)
    if "int" in dtype:
        known = constant(right)
        if known is not None and known.all():
            return node.as_usual()
        special = node.emit(relax.op.equal(right, relax.const(0, dtype)))
        if not dtype.startswith("u"):
            is_minus = node.emit(relax.op.equal(right, relax.const(-1, dtype)))
            special = node.emit(relax.op.logical_or(special, is_minus))
        rest = node.emit(node.as_usual(left, _unless(node, special, right, dtype)))
        return relax.op.where(special, relax.const(0, dtype), rest)
    rest = node.emit(node.as_usual(fmod=1))
    if node.attributes.get("fmod", 0):
        return rest
    zero = relax.const(0, dtype)
    crosses = relax.op.logical_xor(relax.op.less(rest, zero), relax.op.less(right, zero))
    wrong = relax.op.logical_and(relax.op.not_equal(rest, zero), crosses)
    return relax.op.where(node.emit(wrong), relax.op.add(rest, right), rest)


CONVERTERS: dict[str, Converter] = {"Div": _quotient, "Mod": _remainder}
