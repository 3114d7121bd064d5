"""Operators on shapes, and those that take a part of a tensor, with places that earlier versions have in attributes."""

from __future__ import annotations

import math
from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, constant, is_empty


def fixed(*places: int) -> Converter:
    """Return TVM's translation for nodes of which these inputs decide the shape, and that must be known."""

    def convert(node: Node) -> Any:
        for place in places:
            if node.inputs[place] is not None and isinstance(node.inputs[place].ty, relax.TensorType):
                node.constant(place)
        return node.as_usual()

    return convert


def _shape(node: Node) -> Any:
    """Convert a shape, to a constant tensor if the shape is known: more operators take tensors than TVM's shapes."""
    shape = node.as_usual()
    known = constant(shape)
    return shape if known is None else relax.const(known, "int64")


def _size(node: Node) -> Any:
    """Convert the number of elements, to a constant if the shape is known."""
    try:
        return relax.const(math.prod(node.extents(0)), "int64")
    except ValueError:
        return node.as_usual()


def _gather(node: Node) -> Any:
    """Convert a selection, from a shape to a constant if the selected extents are known, though others may not be."""
    data, places = node.inputs
    known = constant(places)
    if isinstance(data, relax.ShapeExpr) and known is not None:
        selected = constant(relax.ShapeExpr([data.values[int(place)] for place in known.reshape(-1)]))
        if selected is not None:
            return relax.const(selected.reshape(known.shape), "int64")
    return node.as_usual()


def _slice(node: Node) -> Any:
    if "starts" not in node.attributes:
        return fixed(1, 2, 3, 4)(node)
    starts, ends = (list(node.attributes[name]) for name in ("starts", "ends"))
    axes = list(node.attributes.get("axes", range(len(starts))))
    arguments = [node.inputs[0], *(relax.const(each, "int64") for each in (starts, ends, axes))]
    others = {"tvm_custom": node.attributes["tvm_custom"]}
    return node.importer._convert_operator("Slice", type(node.inputs)(arguments), others, 13)


def _split(node: Node) -> Any:
    sizes = node.attributes.get("split")
    if "split" not in node.attributes and len(node.inputs) > 1 and node.inputs[1] is not None:
        sizes = node.constant(1)
    if sizes is not None and 0 in list(sizes):
        raise ValueError("with a part without elements")
    return node.as_usual()


def _concatenation(node: Node) -> Any:
    """Convert a concatenation, without tensors that have no elements: TVM reads what nobody wrote."""
    inputs = [each for each in node.inputs if not is_empty(each)]
    if len(inputs) == 1 < len(node.inputs):
        return inputs[0]
    return node.as_usual(*inputs) if inputs else node.as_usual()


CONVERTERS: dict[str, Converter] = {
    "Concat": _concatenation,
    "ConstantOfShape": fixed(0),
    "Expand": fixed(1),
    "Gather": _gather,
    "Range": fixed(0, 1, 2),
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
}
