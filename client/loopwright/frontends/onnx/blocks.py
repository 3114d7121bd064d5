"""Weights of a few bits: MatMulNBits of ONNX Runtime, and constants of 4 bits, which stay two in a byte."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import onnx
import tvm
from tvm import relax

from loopwright.codegen.graph.int8_rows import STEPS, rounded
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
    dtype; 2^(bits - 1) if left out), the block of each column, and a bias. With ``accuracy_level`` 4, rows are rounded
    to int8, with a scale for each block, as ONNX Runtime does it. With others they stay as they are, in float32.
    """
    data, matrix, scale, zero, order, bias = (node.inputs[place] for place in range(6))
    depth, rows, size = (int(node.attributes[name]) for name in ("K", "N", "block_size"))
    bits = int(node.attributes.get("bits", 4))
    if bits not in (2, 4, 8):
        raise ValueError(f"with weights of {bits} bits; quantise to 2, 4 or 8 bits")
    blocks = -(-depth // size)
    weights = matrix if bits == 8 else unpacked(node.emit, matrix, bits)
    if zero is None:
        # A number of the program, as it is the same in all models.
        middle = relax.const(2 ** (bits - 1), "float32")
        weights = node.emit(relax.op.subtract(node.emit(relax.op.astype(weights, "float32")), middle))
    else:
        zero = _zeros(node, zero, rows, blocks, bits)
    rounds = node.attributes.get("accuracy_level") == 4 and order is None
    scale = _matrix(node, scale, [rows, blocks], factor=1 / STEPS if rounds else 1.0)
    if order is None:
        weights = node.emit(relax.op.reshape(weights, [rows, blocks, size]))
        scale, zero = (
            each if each is None else node.emit(relax.op.reshape(each, [rows, blocks, 1])) for each in (scale, zero)
        )
    else:
        weights = node.emit(relax.op.reshape(weights, [rows, blocks * size]))
        weights = node.emit(relax.op.strided_slice(weights, [1], [0], [depth]))
        scale, zero = (
            each if each is None else node.emit(relax.op.take(each, order, 1, mode="clip")) for each in (scale, zero)
        )
    numbers = dequantised(node.emit, weights, scale, zero)
    numbers = node.emit(relax.op.reshape(numbers, [rows, -1]))
    dtype, rest = dtype_of(data), blocks * size - depth
    if rounds:
        sides = [0, 0] * (len(data.ty.shape) - 1)
        data = _rounded(node, node.emit(relax.op.nn.pad(data, [*sides, 0, rest])) if rest else data, size)
    elif rest and order is None:
        numbers = node.emit(relax.op.strided_slice(numbers, [1], [0], [depth]))
    result = node.emit(relax.op.matmul(node.cast(data, wide(data)), node.emit(relax.op.permute_dims(numbers))))
    if bias is not None:
        result = node.emit(relax.op.add(result, relax.op.astype(bias, wide(data))))
    return result if dtype == wide(data) else relax.op.astype(result, dtype)


def _rounded(node: Node, data: Any, size: int) -> Any:
    """Return rows of float32, times 127, in which each block of some elements is integers up to 127, times a scale.

    The scale is the largest magnitude of the block.
    """
    emit, shape = node.emit, list(data.ty.shape)
    integers, scale = rounded(emit, emit(relax.op.reshape(node.cast(data, "float32"), [-1, size])))
    return emit(relax.op.reshape(emit(relax.op.multiply(relax.op.astype(integers, "float32"), scale)), shape))


def _matrix(node: Node, table: Any, shape: list[int], factor: float = 1.0) -> Any:
    """Return a table of blocks as a matrix; constants as a constant, whose elements may be stored in another order."""
    if isinstance(table, tvm.ir.GenericConst):
        array = table.value.numpy().reshape(shape)
        if factor == 1:
            return relax.const(array, dtype_of(table))
        # A product of float32, for one of float16 could be too small.
        return relax.const(array.astype("float32") * np.float32(factor), "float32")
    table = node.emit(relax.op.reshape(table, shape))
    if factor == 1:
        return table
    return node.emit(relax.op.multiply(relax.op.astype(table, "float32"), relax.const(factor, "float32")))


def _zeros(node: Node, zero: Any, rows: int, blocks: int, bits: int) -> Any:
    """Return the zero points [rows, blocks]."""
    if dtype_of(zero) != "uint8" or bits == 8:
        return _matrix(node, zero, [rows, blocks])
    words = math.prod(extents(zero)) // rows
    places = unpacked(node.emit, _matrix(node, zero, [rows, words]), bits)
    places = node.emit(relax.op.reshape(places, [rows, words * 8 // bits]))
    return places if words * 8 // bits == blocks else node.emit(relax.op.strided_slice(places, [1], [0], [blocks]))


CONVERTERS: dict[str, Converter] = {"MatMulNBits": _product_of_bits}
