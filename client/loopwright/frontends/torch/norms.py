"""Normalisations of PyTorch in Relax: float16 and bfloat16 are computed in float32 and rounded once.

TVM takes the variance of a group for the mean of squares less the square of the mean, of which nothing is right where
the mean is large. Here the distances from the mean are squared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import relax

from loopwright.frontends.torch.node import Converter, Node, wide


def _standardized(node: Node, data: Any, axes: Sequence[int]) -> Any:
    """Return the distances from the mean over axes, divided by the standard deviation."""
    mean = node.emit(relax.op.mean(data, list(axes), True))
    distance = node.emit(relax.op.subtract(data, mean))
    variance = node.emit(relax.op.mean(node.emit(relax.op.multiply(distance, distance)), list(axes), True))
    epsilon = node.cast(float(node["eps"]), str(data.ty.dtype))
    deviation = node.emit(relax.op.sqrt(node.emit(relax.op.add(variance, epsilon))))
    return node.emit(relax.op.divide(distance, deviation))


def _scaled(node: Node, value: Any) -> Any:
    """Return channels times the weight plus the bias, in the dtype of the result."""
    dtype, shape = str(value.ty.dtype), (1, -1, *[1] * (len(value.ty.shape) - 2))
    for name, operator in (("weight", relax.op.multiply), ("bias", relax.op.add)):
        if node[name] is not None:
            channels = node.emit(relax.op.reshape(node.cast(node[name], dtype), shape))
            value = node.emit(operator(value, channels))
    return node.cast(value, node.dtype)


def _group_norm(node: Node) -> Any:
    data, groups = node.cast(node["input"], wide(node.dtype)), int(node["group"])
    shape = list(data.ty.shape)
    grouped = node.emit(relax.op.reshape(data, [shape[0], groups, math.prod([shape[1] // groups, *shape[2:]])]))
    whole = node.emit(relax.op.reshape(_standardized(node, grouped, (2,)), shape))
    return _others(node, _scaled(node, whole))


def _norm_of_batch(node: Node) -> Any:
    """Convert a batch normalisation by the statistics of the batch, of which instance normalisations are made."""
    data = node.cast(node["input"], wide(node.dtype))
    axes = [axis for axis in range(len(data.ty.shape)) if axis != 1]
    return _others(node, _scaled(node, _standardized(node, data, axes)))


def _batch_norm(node: Node) -> Any:
    """TVM's operator takes operands of one dtype, which is that of the weights beside an input of halves."""
    operands = [node["input"], node["weight"], node["bias"], node["running_mean"], node["running_var"]]
    own, inner = node.dtype, wide(node.dtype)
    if None not in operands and {str(each.ty.dtype) for each in operands} == {own} and own == inner:
        return _others(node, node.usual())
    data, mean, variance = (node.cast(node[name], inner) for name in ("input", "running_mean", "running_var"))
    shape = (1, -1, *[1] * (len(data.ty.shape) - 2))
    epsilon = node.cast(float(node["eps"]), inner)
    deviation = node.emit(relax.op.sqrt(node.emit(relax.op.add(variance, epsilon))))
    mean, deviation = (node.emit(relax.op.reshape(each, shape)) for each in (mean, deviation))
    distance = node.emit(relax.op.subtract(data, mean))
    return _others(node, _scaled(node, node.emit(relax.op.divide(distance, deviation))))


def _layer_norm(node: Node) -> Any:
    own, inner = node.dtype, wide(node.dtype)
    if own == inner:
        return _others(node, node.usual())
    rank = len(node["normalized_shape"])
    shape = [int(extent) for extent in node["normalized_shape"]]
    weight, bias = (
        relax.op.full(shape, node.cast(filling, inner), inner) if node[name] is None else node.cast(node[name], inner)
        for name, filling in (("weight", 1), ("bias", 0))
    )
    data, weight, bias = node.cast(node["input"], inner), node.emit(weight), node.emit(bias)
    result = relax.op.nn.layer_norm(data, weight, bias, list(range(-rank, 0)), float(node["eps"]))
    return _others(node, node.cast(node.emit(result), own))


def _others(node: Node, result: Any) -> Any:
    """Return the first of an operator's results, of which only this one may be used."""
    if node.uses(1) or node.uses(2):
        raise ValueError("has no translation for the statistics that it returns beside the result")
    return result, None, None


CONVERTERS: dict[str, Converter] = {
    "_native_batch_norm_legit.no_stats": _norm_of_batch,
    "_native_batch_norm_legit_no_training.default": _batch_norm,
    "native_group_norm.default": _group_norm,
    "native_layer_norm.default": _layer_norm,
}
