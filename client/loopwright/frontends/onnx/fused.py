"""Operators that ONNX Runtime's optimiser makes of several, taken apart again."""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node
from loopwright.frontends.onnx.products import product, scaled

_PARAMETERS = {"Clip": ("min", "max"), "Elu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "LeakyRelu": ("alpha",)}
"""Of activations that have any, in their order."""


def _activated(node: Node, value: Any) -> Any:
    name = node.text("activation", "")
    if not name:
        return value
    numbers = list(node.attributes.get("activation_params", ()))
    numbers += [
        node.attributes[key]
        for key in (f"activation_{each}" for each in ("alpha", "beta", "gamma"))
        if key in node.attributes
    ]
    parameters = dict(zip(_PARAMETERS.get(name, ()), numbers, strict=False))
    # Clip has attributes before opset 11 only.
    return node.convert(name, [node.emit(value)], parameters, opset=6 if name == "Clip" else node.opset)


def _matrix_product(node: Node) -> Any:
    sides = [
        _transposed(node, node.inputs[place], f"trans{letter}", f"transBatch{letter}")
        for place, letter in enumerate("AB")
    ]
    return scaled(node, node.emit(product(node, *sides)), float(node.attributes.get("alpha", 1)))


def _transposed(node: Node, matrix: Any, last: str, batch: str) -> Any:
    """Return a matrix with its last two axes exchanged, or its first one behind the other axes of the batch."""
    rank = len(matrix.ty.shape)
    axes = list(range(rank))
    if rank < 2:
        return matrix
    if node.attributes.get(batch, 0):
        axes = [*axes[1:-1], 0, axes[-1]]
    if node.attributes.get(last, 0):
        axes[-2:] = reversed(axes[-2:])
    return matrix if axes == sorted(axes) else node.emit(relax.op.permute_dims(matrix, axes))


def _general_product(node: Node) -> Any:
    return _activated(node, node.convert("Gemm", list(node.inputs[:3]), node.attributes))


def _convolution(node: Node) -> Any:
    result = node.emit(node.convert("Conv", [node.inputs[place] for place in range(3)], node.attributes))
    if (added := node.inputs[3]) is not None:
        result = node.emit(relax.op.add(result, added))
    return _activated(node, result)


def _rotation(node: Node) -> Any:
    """Convert a rotation of pairs of channels, by angles of positions, of ONNX Runtime's RotaryEmbedding.

    Data are [batch, positions, heads * width] or [batch, heads, positions, width]; there is a position for each place,
    or the first one. The tables of cosines and sines are [positions, rotated channels / 2].
    """
    data, positions, cosines, sines = (node.inputs[place] for place in range(4))
    if node.attributes.get("is_packed_batching", 0) or float(node.attributes.get("scale", 1)) != 1:
        raise ValueError("with packed batches or a scale; write it by the operators of ONNX")
    shape = node.extents(0)
    turned = 2 * int(cosines.ty.shape[1])
    batch, length = (shape[0], shape[-2])
    if len(shape) == 3:
        heads = int(node.attributes.get("num_heads", 0)) or shape[2] // turned
        rows = node.emit(relax.op.reshape(data, [batch, length, heads, shape[2] // heads]))
    else:
        rows = node.emit(relax.op.permute_dims(data, [0, 2, 1, 3]))
    width = int(rows.ty.shape[3])
    if len(positions.ty.shape) < 2:
        steps = relax.op.arange(0, length, 1, "int64")
        positions = node.emit(relax.op.expand_dims(relax.op.add(steps, positions), 0))
    cosine, sine = (
        node.emit(relax.op.expand_dims(relax.op.take(each, positions, 0, mode="clip"), 2)) for each in (cosines, sines)
    )
    pairs = bool(node.attributes.get("interleaved", 0))
    bounds = [(0, turned, 2), (1, turned, 2)] if pairs else [(0, turned // 2, 1), (turned // 2, turned, 1)]
    first, second = (node.emit(relax.op.strided_slice(rows, [3], [a], [b], [c])) for a, b, c in bounds)
    results = [
        relax.op.subtract(relax.op.multiply(first, cosine), relax.op.multiply(second, sine)),
        relax.op.add(relax.op.multiply(second, cosine), relax.op.multiply(first, sine)),
    ]
    results = [node.emit(each) for each in results]
    if pairs:
        joined = node.emit(relax.op.stack(results, -1))
        results = [node.emit(relax.op.reshape(joined, [batch, length, int(rows.ty.shape[2]), turned]))]
    if turned < width:
        results.append(node.emit(relax.op.strided_slice(rows, [3], [turned], [width])))
    result = results[0] if len(results) == 1 else node.emit(relax.op.concat(results, -1))
    return relax.op.reshape(result, shape) if len(shape) == 3 else relax.op.permute_dims(result, [0, 2, 1, 3])


CONVERTERS: dict[str, Converter] = {
    "FusedConv": _convolution,
    "FusedGemm": _general_product,
    "FusedMatMul": _matrix_product,
    "RotaryEmbedding": _rotation,
}
