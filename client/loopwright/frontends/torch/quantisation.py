"""Quantisation as PyTorch exports it (PT2E): the operators of ``quantized_decomposed``, and products of int8.

PyTorch multiplies by the reciprocal of the scale, where ONNX divides.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from tvm import relax

from loopwright.frontends import quantisation
from loopwright.frontends.torch.node import Converter, Node, is_tensor


def _quantize(node: Node) -> Any:
    """Convert a quantisation with one scale, which is a number or a tensor of one element."""
    scale = node["scale"]
    if is_tensor(scale):
        one = relax.const(1, str(scale.ty.dtype))
        inverse = node.cast(node.emit(relax.op.divide(one, scale)), "float32")
    else:
        inverse = _constant(1.0 / float(scale), "float32")
    return _limited(node, inverse, _zero(node, node["zero_point"]), 0)


def _quantize_channels(node: Node) -> Any:
    axis, rank = int(node["axis"]), len(node["input"].ty.shape)
    scale = node.cast(node["scales"], "float32")
    inverse = node.emit(relax.op.divide(relax.const(1, "float32"), scale))
    inverse = node.emit(relax.op.reshape(inverse, [-1, *[1] * (rank - 1 - axis % rank)]))
    return _limited(node, inverse, _zero(node, node["zero_points"]), axis)


def _limited(node: Node, inverse: Any, zero: Any, axis: int) -> Any:
    dtype, low, high = node.dtype, int(node["quant_min"]), int(node["quant_max"])
    if dtype not in ("int8", "uint8", "int16", "uint16"):
        raise ValueError(f"quantises to {dtype}; quantise to 8 or 16 bits")
    scaled = node.emit(relax.op.multiply(node.cast(node["input"], "float32"), inverse))
    result = quantisation.limited(node.emit, scaled, zero, dtype=dtype, axis=axis)
    limits = np.iinfo(dtype)
    return result if (low, high) == (limits.min, limits.max) else relax.op.clip(result, low, high)


def _dequantize(node: Node) -> Any:
    scale, zero = node["scale"], node["zero_point"]
    scale = node.cast(scale, "float32") if is_tensor(scale) else _constant(scale, "float32")
    zero = node.cast(zero, "float32") if is_tensor(zero) else _constant(zero, "float32")
    return node.cast(quantisation.dequantised(node.emit, node["input"], scale, zero), node.dtype)


def _dequantize_channels(node: Node) -> Any:
    zero = node["zero_points"]
    zero = None if zero is None else node.cast(zero, "float32")
    scale, axis = node.cast(node["scales"], "float32"), int(node["axis"])
    return node.cast(quantisation.dequantised(node.emit, node["input"], scale, zero, axis=axis), node.dtype)


def _constant(value: Any, dtype: str) -> Any:
    """Return a number as a tensor of one element, which is no part of a function's text."""
    return relax.const(np.array([value]).astype(dtype), dtype)


def _zero(node: Node, value: Any) -> Any:
    return node.cast(value, "int32") if is_tensor(value) else _constant(value, "int32")


def _limits(node: Node) -> tuple[Any, Any]:
    """Return the least and the greatest of the elements and 0."""
    data, zero = node.cast(node["input"], "float32"), relax.const(0, "float32")
    low = node.emit(relax.op.minimum(node.emit(relax.op.min(data)), zero))
    return low, node.emit(relax.op.maximum(node.emit(relax.op.max(data)), zero))


def _choose(node: Node) -> tuple[Any, Any]:
    """Convert the choice of scale and zero point for a tensor with both its limits."""
    low, high = _limits(node)
    first, last = int(node["quant_min"]), int(node["quant_max"])
    scale = node.emit(relax.op.divide(relax.op.subtract(high, low), relax.const(last - first, "float32")))
    scale = node.emit(relax.op.maximum(scale, relax.const(float(node["eps"]), "float32")))
    place = node.emit(relax.op.round(relax.op.divide(low, scale)))
    place = node.emit(relax.op.clip(relax.op.subtract(relax.const(first, "float32"), place), first, last))
    return _single(node, scale, "float64"), _single(node, place, "int64")


def _choose_symmetric(node: Node) -> tuple[Any, Any]:
    low, high = _limits(node)
    steps = (int(node["quant_max"]) - int(node["quant_min"])) / 2
    largest = node.emit(relax.op.maximum(node.emit(relax.op.negative(low)), high))
    scale = node.emit(relax.op.divide(largest, relax.const(steps, "float32")))
    scale = node.emit(relax.op.maximum(scale, relax.const(float(node["eps"]), "float32")))
    point = 128 if "uint8" in str(node["dtype"]) else 0
    return _single(node, scale, "float64"), relax.const(np.array([point], "int64"), "int64")


def _single(node: Node, value: Any, dtype: str) -> Any:
    return node.emit(relax.op.reshape(node.cast(value, dtype), [1]))


def _integer_product(node: Node) -> Any:
    return relax.op.matmul(node["self"], node["mat2"], out_dtype="int32")


CONVERTERS: dict[str, Converter] = {
    "_int_mm.default": _integer_product,
    "choose_qparams.tensor": _choose,
    "choose_qparams_symmetric.tensor": _choose_symmetric,
    "dequantize_per_channel.default": _dequantize_channels,
    **{f"dequantize_per_tensor.{name}": _dequantize for name in ("default", "tensor", "tensor2")},
    "quantize_per_channel.default": _quantize_channels,
    **{f"quantize_per_tensor.{name}": _quantize for name in ("default", "tensor", "tensor2")},
}
