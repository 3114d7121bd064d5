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


CONVERTERS: dict[str, Converter] = {
    "FusedConv": _convolution,
    "FusedGemm": _general_product,
    "FusedMatMul": _matrix_product,
}
