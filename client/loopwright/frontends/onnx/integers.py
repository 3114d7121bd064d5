"""Operators of integers: those of ONNX and ONNX Runtime, written as numbers that are quantised before and after.

`loopwright.codegen.graph.integers` makes products of integers of them, whatever operator a model has them from.
"""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, dtype_of
from loopwright.frontends.onnx.quantisation import dequantised, quantised

_Triple = tuple[Any, Any, Any]
"""A tensor of integers, its scale and its zero point."""


def _through_numbers(count: int, operator: str | None = None, *, others: int = 0) -> Converter:
    """Return the converter of an operator whose data are followed by scale and zero point, and at last the result's.

    Args:
        count: how many inputs are such data.
        operator: the operator of the numbers; the node's own without ``QLinear`` if it is None.
        others: how many inputs are in front.
    """

    def convert(node: Node) -> Any:
        first = [node.inputs[place] for place in range(others)]
        data = [dequantised(node, *_triple(node, others + 3 * place)) for place in range(count)]
        result = node.convert(operator or node.operator.removeprefix("QLinear"), [*first, *data], node.attributes)
        scale, zero = (node.inputs[others + 3 * count + place] for place in (0, 1))
        return quantised(node, node.emit(result), scale, zero, dtype=dtype_of(node.inputs[others]))

    return convert


def _triple(node: Node, first: int) -> _Triple:
    return node.inputs[first], node.inputs[first + 1], node.inputs[first + 2]


def _channels_first(convert: Converter) -> Converter:
    """Return the converter of a pooling that refuses channels last."""

    def converted(node: Node) -> Any:
        if node.attributes.get("channels_last", 0):
            raise ValueError("with channels last; write it for channels first, as QuantFormat.QDQ does")
        return convert(node)

    return converted


def _concatenation(node: Node) -> Any:
    scale, zero = node.inputs[0], node.inputs[1]
    parts = [dequantised(node, *_triple(node, first)) for first in range(2, len(node.inputs), 3)]
    joined = node.emit(relax.op.concat(parts, node.attributes["axis"]))
    return quantised(node, joined, scale, zero)


def _softmax(node: Node) -> Any:
    """Convert a softmax, which is that of an opset of its own; before 13 over all axes from one on."""
    data = dequantised(node, *_triple(node, 0))
    attributes = {"axis": node.attributes.get("axis", -1)}
    result = node.convert("Softmax", [data], attributes, opset=node.attributes.get("opset", node.opset))
    return quantised(node, node.emit(result), node.inputs[3], node.inputs[4], dtype=dtype_of(node.inputs[0]))


def _product_of(node: Node, left: _Triple, right: _Triple, bias: Any = None) -> Any:
    """Return the product of dequantised matrices, each with scale and zero point, plus a bias."""
    product = node.emit(relax.op.matmul(dequantised(node, *left, axis=_rows(left)), dequantised(node, *right, axis=-1)))
    return product if bias is None else node.emit(relax.op.add(product, bias))


def _rows(matrix: _Triple) -> int:
    """Return the axis of the scales of a left operand, of which there may be one for each row."""
    return -2 if len(matrix[0].ty.shape) > 1 else 0


def _linear_product(node: Node) -> Any:
    product = _product_of(node, _triple(node, 0), _triple(node, 3))
    return quantised(node, product, node.inputs[6], node.inputs[7])


def _integer_product(node: Node) -> Any:
    left, right, left_zero, right_zero = (node.inputs[place] for place in range(4))
    rank = len(left.ty.shape)
    return relax.op.matmul(
        _centred(node, left, left_zero, [-1, 1] if rank > 1 else [-1]), _centred(node, right, right_zero, [-1])
    )


def _centred(node: Node, data: Any, zero: Any, shape: list[int]) -> Any:
    """Return integers less their zero point, of which there may be one for each row or column, as int32."""
    whole = node.emit(relax.op.astype(data, "int32"))
    if zero is None:
        return whole
    places = node.emit(relax.op.astype(zero, "int32"))
    if len(zero.ty.shape) == 1:
        places = node.emit(relax.op.reshape(places, [1] if int(zero.ty.shape[0]) == 1 else shape))
    return node.emit(relax.op.subtract(whole, places))


def _integer_convolution(node: Node) -> Any:
    data, kernel, data_zero, kernel_zero = (node.inputs[place] for place in range(4))
    channels = [-1, *[1] * (len(kernel.ty.shape) - 1)]
    whole = [_centred(node, data, data_zero, [1]), _centred(node, kernel, kernel_zero, channels)]
    return node.convert("Conv", whole, node.attributes)


def _linear_convolution(node: Node) -> Any:
    data, kernel = _triple(node, 0), _triple(node, 3)
    inputs = [dequantised(node, *data), dequantised(node, *kernel, axis=0)]
    if (bias := node.inputs[8]) is not None:
        inputs.append(dequantised(node, bias, _product(node, data[1], kernel[1]), None, axis=0))
    result = node.convert("Conv", inputs, node.attributes)
    return quantised(node, node.emit(result), node.inputs[6], node.inputs[7])


def _product(node: Node, left: Any, right: Any) -> Any:
    return node.emit(relax.op.multiply(*(node.emit(relax.op.astype(each, "float32")) for each in (left, right))))


def _general_product(node: Node) -> Any:
    """Convert QGemm, whose bias has the scales of both matrices, and whose result is of float32 without a scale."""
    left, right, bias = _triple(node, 0), _triple(node, 3), node.inputs[6]
    columns = 0 if node.attributes.get("transB", 0) else 1
    inputs = [dequantised(node, *left), dequantised(node, *right, axis=columns)]
    if bias is not None:
        alpha = relax.const(float(node.attributes.get("alpha", 1)), "float32")
        scale = _product(node, _product(node, left[1], right[1]), alpha)
        inputs.append(dequantised(node, bias, scale, None, axis=-1))
    result = node.emit(node.convert("Gemm", inputs, {**node.attributes, "beta": 1.0}))
    if node.inputs[7] is None:
        return relax.op.astype(result, dtype_of(left[1]))
    return quantised(node, result, node.inputs[7], node.inputs[8])


def _dynamic_product(node: Node) -> Any:
    """Convert a product whose left operand is quantised as it is."""
    data, right, scale, zero, bias = (node.inputs[place] for place in range(5))
    rows, rows_scale, rows_zero = node.convert("DynamicQuantizeLinear", [data], {}, outputs=3).fields
    left = node.emit(rows), node.emit(rows_scale), node.emit(rows_zero)
    return _product_of(node, left, (right, scale, zero), bias)


def _scaled_product(node: Node) -> Any:
    left, right, left_scale, right_scale, left_zero, right_zero, bias = (node.inputs[place] for place in range(7))
    product = _product_of(node, (left, left_scale, left_zero), (right, right_scale, right_zero))
    product = node.emit(relax.op.astype(product, dtype_of(left_scale)))
    return product if bias is None else relax.op.add(product, bias)


CONVERTERS: dict[str, Converter] = {
    "ConvInteger": _integer_convolution,
    "DynamicQuantizeMatMul": _dynamic_product,
    "MatMulInteger": _integer_product,
    "MatMulIntegerToFloat": _scaled_product,
    "QGemm": _general_product,
    "QLinearAdd": _through_numbers(2),
    "QLinearAveragePool": _channels_first(_through_numbers(1)),
    "QLinearConcat": _concatenation,
    "QLinearConv": _linear_convolution,
    "QLinearGlobalAveragePool": _channels_first(_through_numbers(1)),
    "QLinearLeakyRelu": _through_numbers(1),
    "QLinearMatMul": _linear_product,
    "QLinearMul": _through_numbers(2),
    "QLinearSigmoid": _through_numbers(1),
    "QLinearSoftmax": _softmax,
    "QLinearWhere": _through_numbers(2, others=1),
}
