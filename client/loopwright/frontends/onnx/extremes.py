"""Operators that select by size. In ONNX, NaN stays NaN, and the largest of elements -inf is -inf.

TVM's results for NaN depend on an operand's place, and its reductions begin with the least finite number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, constant, dtype_of

_LARGEST = float(np.finfo("float32").max)


def keeping_nan(convert: Converter) -> Converter:
    """Return a converter of an elementwise operator whose result is NaN where its first input is."""

    def converted(node: Node) -> Any:
        result = convert(node)
        return _or_nan(node, node.inputs[0], result) if "float" in dtype_of(node.inputs[0]) else result

    return converted


def _or_nan(node: Node, data: Any, result: Any) -> Any:
    return relax.op.where(node.emit(relax.op.isnan(data)), data, node.emit(result))


def _extreme(node: Node) -> Any:
    """Convert Min or Max of several tensors."""
    result = node.as_usual()
    if "float" not in dtype_of(result):
        return result
    for operand in node.inputs:
        if operand is not None and constant(operand) is None:
            result = node.emit(_or_nan(node, operand, result))
    return result


def _clip(node: Node) -> Any:
    data, low, high = (*node.inputs[:3], None, None)[:3]
    dtype = dtype_of(data)
    if node.opset < 11:
        # Without a bound, infinities become the largest numbers of float32.
        bounds = (node.attributes.get("min", -_LARGEST), node.attributes.get("max", _LARGEST))
        with np.errstate(over="ignore"):
            low, high = (relax.const(np.array(bound).astype(dtype), dtype) for bound in bounds)
    result = data
    for bound, limit, unlimited in ((low, relax.op.maximum, -np.inf), (high, relax.op.minimum, np.inf)):
        if bound is None:
            continue
        if "float" in dtype and constant(bound) is None:
            bound = node.emit(relax.op.where(relax.op.isnan(bound), relax.const(unlimited, dtype), bound))
        result = node.emit(limit(result, bound))
    return result


def extreme_of(node: Node, data: Any, reduce: Callable[[Any], Any], *, is_least: bool = False) -> Any:
    """Return the largest or the least elements of parts of a tensor: NaN if one is, and infinite if all are.

    Args:
        node: the node.
        data: the tensor.
        reduce: TVM's reduction, for any dtype.
        is_least: whether it is that to the least elements.
    """
    result = node.emit(reduce(data))
    dtype = dtype_of(data)
    if "float" not in dtype:
        return result
    infinite = relax.const(np.inf if is_least else -np.inf, dtype)
    # By size: elements that lose against every other, those that do not, and NaN, which wins.
    loses, usual, wins = (relax.const(rank, "int8") for rank in ((2, 1, 0) if is_least else (0, 1, 2)))
    kind = node.emit(relax.op.where(node.emit(relax.op.equal(data, infinite)), loses, usual))
    kind = node.emit(relax.op.where(node.emit(relax.op.isnan(data)), wins, kind))
    reduced = node.emit(reduce(kind))
    result = node.emit(relax.op.where(node.emit(relax.op.equal(reduced, loses)), infinite, result))
    return relax.op.where(node.emit(relax.op.equal(reduced, wins)), relax.const(np.nan, dtype), result)


def reduction(convert: Converter) -> Converter:
    """Return a converter of ReduceMax or ReduceMin, from one that is right for finite numbers."""

    def converted(node: Node) -> Any:
        others = list(node.inputs)[1:]
        is_least = node.operator == "ReduceMin"
        return extreme_of(node, node.inputs[0], lambda data: convert(node.of(data, *others)), is_least=is_least)

    return converted


def _global_max_pool(node: Node) -> Any:
    axes = list(range(2, len(node.inputs[0].ty.shape)))
    return extreme_of(node, node.inputs[0], lambda data: relax.op.max(data, axes, keepdims=True))


def _place(node: Node) -> Any:
    """Convert ArgMax or ArgMin: the first place of an element that equals the extreme, or of NaN; or the last one."""
    data, is_least = node.inputs[0], node.operator == "ArgMin"
    axis = node.attributes.get("axis", 0) % len(data.ty.shape)
    keepdims, is_last = bool(node.attributes.get("keepdims", 1)), bool(node.attributes.get("select_last_index", 0))
    reduce = relax.op.min if is_least else relax.op.max
    found = node.emit(extreme_of(node, data, lambda each: reduce(each, axis, keepdims=True), is_least=is_least))
    matches = node.emit(relax.op.equal(data, found))
    if "float" in dtype_of(data):
        matches = node.emit(relax.op.logical_or(matches, node.emit(relax.op.isnan(data))))
    matches = node.emit(relax.op.astype(matches, "int8"))
    if not is_last:
        return relax.op.argmax(matches, axis, keepdims)
    behind = node.emit(relax.op.argmax(node.emit(relax.op.flip(matches, axis)), axis, keepdims))
    return relax.op.subtract(relax.const(node.extents(0)[axis] - 1, "int64"), behind)


CONVERTERS: dict[str, Converter] = {
    "ArgMax": _place,
    "ArgMin": _place,
    "Clip": keeping_nan(_clip),
    "GlobalMaxPool": _global_max_pool,
    "HardSigmoid": keeping_nan(Node.as_usual),
    "Max": _extreme,
    "Min": _extreme,
    "Relu": keeping_nan(Node.as_usual),
    "Sign": keeping_nan(Node.as_usual),
}
