"""Weights of a few bits: MatMulNBits of ONNX Runtime, and constants of 4 bits, which stay two in a byte."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of, extents
from loopwright.frontends.quantisation import dequantised, unpacked

_PACKED = {onnx.TensorProto.INT4: True, onnx.TensorProto.UINT4: False}
"""Types of two elements in a byte, and whether they are signed."""


def is_packed(tensor: onnx.TensorProto) -> bool:
    return tensor.data_type in _PACKED


def packed_constant(emit: Any, tensor: onnx.TensorProto) -> Any:
    """Return a constant of 4 bits as an expression of int8 or uint8 over its bytes, of which the low half is first."""
    if tensor.raw_data:
        words = np.frombuffer(tensor.raw_data, "uint8")
    else:
        words = np.array(tensor.int32_data, "int32").astype("uint8")
    shape = list(tensor.dims)
    count = math.prod(shape)
    outer = shape[:-1] if shape and shape[-1] % 2 == 0 else []  # rows of whole bytes
    data = unpacked(emit, relax.const(words.reshape(*outer, -1), "uint8"), 4)
    if not outer:
        data = emit(relax.op.reshape(data, [2 * words.size]))
        if count % 2:
            data = emit(relax.op.strided_slice(data, [0], [0], [count]))
    data = emit(relax.op.reshape(data, shape))
    if not _PACKED[tensor.data_type]:
        return data
    sign = relax.const(8, "int8")  # two's complement of 4 bits
    return emit(relax.op.subtract(emit(relax.op.bitwise_xor(emit(relax.op.astype(data, "int8")), sign)), sign))


def _product_of_bits(node: Node) -> Any:
    """Convert MatMulNBits: rows times the transpose of a matrix [N, K] in blocks along K.

    Inputs are the rows, the matrix [N, blocks, bytes], scales, zero points (packed along the blocks, or of the scales'
    dtype; 2^(bits - 1) if left out), the block of each column, and a bias. Every ``accuracy_level`` is computed with
    the rows as they are, in float32: a level allows less, and asks for nothing.
    """
    data, matrix, scale, zero, order, bias = (node.inputs[place] for place in range(6))
    depth, rows, size = (int(node.attributes[name]) for name in ("K", "N", "block_size"))
    bits = int(node.attributes.get("bits", 4))
    if bits not in (2, 4, 8):
        raise ValueError(f"with weights of {bits} bits; quantise to 2, 4 or 8 bits")
    blocks = -(-depth // size)
    weights = matrix if bits == 8 else unpacked(node.emit, matrix, bits)
    scale, zero = _matrix(node, scale, [rows, blocks]), _zeros(node, zero, rows, blocks, bits)
    if order is None:
        weights = node.emit(relax.op.reshape(weights, [rows, blocks, size]))
        scale, zero = (
            each if len(each.ty.shape) < 2 else node.emit(relax.op.reshape(each, [rows, blocks, 1]))
            for each in (scale, zero)
        )
    else:
        weights = node.emit(relax.op.reshape(weights, [rows, blocks * size]))
        weights = node.emit(relax.op.strided_slice(weights, [1], [0], [depth]))
        scale, zero = (
            each if len(each.ty.shape) < 2 else node.emit(relax.op.take(each, order, 1, mode="clip"))
            for each in (scale, zero)
        )
    numbers = dequantised(node.emit, weights, scale, zero)
    numbers = node.emit(relax.op.reshape(numbers, [rows, -1]))
    if blocks * size != depth and order is None:
        numbers = node.emit(relax.op.strided_slice(numbers, [1], [0], [depth]))
    dtype = dtype_of(data)
    whole = data if dtype == wide(data) else node.emit(relax.op.astype(data, wide(data)))
    result = node.emit(relax.op.matmul(whole, node.emit(relax.op.permute_dims(numbers))))
    if bias is not None:
        result = node.emit(relax.op.add(result, relax.op.astype(bias, wide(data))))
    return result if dtype == wide(data) else relax.op.astype(result, dtype)


def _matrix(node: Node, scale: Any, shape: list[int]) -> Any:
    """Return scales as a matrix; constants as a constant, whose elements may be stored in another order."""
    if isinstance(scale, tvm.ir.GenericConst):
        return relax.const(scale.value.numpy().reshape(shape), dtype_of(scale))
    return node.emit(relax.op.reshape(scale, shape))


def _zeros(node: Node, zero: Any, rows: int, blocks: int, bits: int) -> Any:
    """Return the zero points [rows, blocks], or one for all blocks."""
    if zero is None:
        return relax.const(np.array([2 ** (bits - 1)], "uint8"), "uint8")
    if dtype_of(zero) != "uint8" or bits == 8:
        return node.emit(relax.op.reshape(zero, [rows, blocks]))
    words = math.prod(extents(zero)) // rows
    places = unpacked(node.emit, node.emit(relax.op.reshape(zero, [rows, words])), bits)
    places = node.emit(relax.op.reshape(places, [rows, words * 8 // bits]))
    return places if words * 8 // bits == blocks else node.emit(relax.op.strided_slice(places, [1], [0], [blocks]))


CONVERTERS: dict[str, Converter] = {"MatMulNBits": _product_of_bits}
