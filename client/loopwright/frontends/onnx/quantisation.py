"""Quantisation of ONNX in plain operators: QuantizeLinear and DequantizeLinear, by tensor, by channel and by block."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from tvm import relax

from loopwright.frontends import quantisation
from loopwright.frontends.onnx.node import Converter, Node, dtype_of, extents

_INTEGERS = frozenset({"int8", "uint8", "int16", "uint16"})


def dequantised(node: Node, data: Any, scale: Any, zero: Any, axis: int = 1) -> Any:
    """Return the numbers, of float32, that integers stand for."""
    return quantisation.dequantised(node.emit, data, scale, zero, axis=_axis(data, axis))


def quantised(node: Node, data: Any, scale: Any, zero: Any, axis: int = 1, dtype: str = "uint8") -> Any:
    """Return the integers next to numbers, in the dtype of the zero point, or ``dtype`` if that is left out."""
    dtype = dtype if zero is None else dtype_of(zero)
    if dtype not in _INTEGERS:
        raise ValueError(f"to elements of {dtype}; quantise to 8 or 16 bits")
    whole = node.cast(data, "float32")
    return quantisation.quantised(node.emit, whole, scale, zero, dtype=dtype, axis=_axis(data, axis))


def _axis(data: Any, axis: int) -> int:
    """Return an axis that the data has: the default is 1, also of a vector."""
    rank = len(data.ty.shape)
    return axis % rank if rank and -rank <= axis < rank else 0


def _dequantize(node: Node) -> Any:
    data, scale, zero = (node.inputs[place] for place in range(3))
    axis, size = node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    if size:
        scale, zero = (each if each is None else _repeated(node, each, data, axis, size) for each in (scale, zero))
    return node.cast(dequantised(node, data, scale, zero, axis), dtype_of(scale))


def _quantize(node: Node) -> Any:
    data, scale, zero = (node.inputs[place] for place in range(3))
    axis, size = node.attributes.get("axis", 1), node.attributes.get("block_size", 0)
    wanted = node.attributes.get("output_dtype", 0)
    dtype = str(onnx.helper.tensor_dtype_to_np_dtype(wanted)) if wanted else "uint8"
    if size:
        scale, zero = (each if each is None else _repeated(node, each, data, axis, size) for each in (scale, zero))
    return quantised(node, data, scale, zero, axis, dtype)


def _dynamic(node: Node) -> Any:
    """Convert a quantisation whose scale, 1 if all elements are 0, follows from the data."""
    (data,) = node.inputs
    zero, one, last = (relax.const(value, "float32") for value in (0, 1, 255))
    high = node.emit(relax.op.maximum(relax.op.max(data), zero))
    low = node.emit(relax.op.minimum(relax.op.min(data), zero))
    width = node.emit(relax.op.divide(relax.op.subtract(high, low), last))
    scale = node.emit(relax.op.where(relax.op.equal(width, zero), one, width))
    place = node.emit(relax.op.divide(relax.op.negative(low), scale))
    point = quantisation.limited(node.emit, place, dtype="uint8")
    return relax.Tuple([quantisation.quantised(node.emit, data, scale, point, dtype="uint8"), scale, point])


def _repeated(node: Node, value: Any, data: Any, axis: int, size: int) -> Any:
    """Return the scales or zero points of blocks of ``size`` elements along an axis, one for each element."""
    extent = extents(data)[axis]
    blocks = relax.const(np.arange(extent) // size, "int64")
    return node.emit(relax.op.take(value, blocks, axis % len(data.ty.shape), mode="clip"))


CONVERTERS: dict[str, Converter] = {
    "DynamicQuantizeLinear": _dynamic,
    "DequantizeLinear": _dequantize,
    "QuantizeLinear": _quantize,
}
