"""Operators of ONNX whose NaN, whose integers or whose sums TVM's importer treats otherwise than ONNX does."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, constant, extents


def _dtype(value: Any) -> str:
    return str(value.ty.dtype) if isinstance(getattr(value, "ty", None), relax.TensorType) else ""


def _extreme(node: Node) -> Any:
    """Convert Min or Max, which is NaN wherever an operand is: TVM's depends on the place of the operand."""
    result = node.as_usual()
    if "float" not in _dtype(result):
        return result
    for operand in node.inputs:
        if operand is not None and constant(operand) is None:
            result = node.emit(relax.op.where(node.emit(relax.op.isnan(operand)), operand, result))
    return result


def _integer_quotient(node: Node) -> Any:
    """Convert a division. Integers divided by 0 give 0 (undefined in ONNX): the instruction would end the process.

    So would the least integer divided by -1, whose negation is the integer itself.
    """
    left, right = node.inputs
    dtype = _dtype(left)
    if "int" not in dtype or "int" not in _dtype(right) or constant(right) is not None:
        return node.as_usual()
    zero, one = relax.const(0, dtype), relax.const(1, dtype)
    is_zero = node.emit(relax.op.equal(right, zero))
    if dtype.startswith("u"):
        quotient = node.emit(node.as_usual(left, node.emit(relax.op.where(is_zero, one, right))))
        return relax.op.where(is_zero, zero, quotient)
    is_minus = node.emit(relax.op.equal(right, relax.const(-1, dtype)))
    divisor = node.emit(relax.op.where(node.emit(relax.op.logical_or(is_zero, is_minus)), one, right))
    quotient = node.emit(node.as_usual(left, divisor))
    negated = node.emit(relax.op.subtract(zero, left))
    return relax.op.where(is_zero, zero, node.emit(relax.op.where(is_minus, negated, quotient)))


def widened(convert: Converter) -> Converter:
    """Return a converter that sums float16 in float32, and takes means of integers in float64, cut off to integers."""

    def converted(node: Node) -> Any:
        data = node.inputs[0]
        dtype = _dtype(data)
        is_mean = node.operator == "ReduceMean" and "int" in dtype
        if dtype != "float16" and not is_mean:
            return convert(node)
        wide = node.emit(relax.op.astype(data, "float64" if is_mean else "float32"))
        inner = replace(node, inputs=type(node.inputs)([wide, *list(node.inputs)[1:]]))
        return relax.op.astype(node.emit(convert(inner)), dtype)

    return converted


def _slice_of_attributes(node: Node) -> Any:
    """Convert Slice as opsets 1 to 9 have it, with places in attributes."""
    starts, ends = (list(node.attributes[name]) for name in ("starts", "ends"))
    axes = list(node.attributes.get("axes", range(len(starts))))
    given = [node.inputs[0], *(relax.const(each, "int64") for each in (starts, ends, axes))]
    others = {"tvm_custom": node.attributes["tvm_custom"]}
    return node.importer._convert_operator("Slice", type(node.inputs)(given), others, 13)


def slice_of(convert: Converter) -> Converter:
    """Return a converter of Slice that also takes the form with attributes."""
    return lambda node: _slice_of_attributes(node) if "starts" in node.attributes else convert(node)


def _max_pool(node: Node) -> Any:
    if node.outputs > 1:
        raise ValueError("whose second output, the places of the maxima, is used; compute them outside of the model")
    return node.as_usual()


def _size(node: Node) -> Any:
    """Convert the number of elements, to a constant if the shape is known."""
    (data,) = node.inputs
    try:
        known = extents(node.importer.tensor(data))
    except (AttributeError, ValueError):
        return node.as_usual()
    count = 1
    for extent in known:
        count *= extent
    return relax.const(count, "int64")


CONVERTERS: dict[str, Converter] = {
    "Div": _integer_quotient,
    "Max": _extreme,
    "MaxPool": _max_pool,
    "Min": _extreme,
    "Size": _size,
    "Softmax": widened(Node.as_usual),
    "LogSoftmax": widened(Node.as_usual),
}
