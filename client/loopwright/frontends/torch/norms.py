"""Normalisations of PyTorch in Relax: float16 and bfloat16 are computed in float32 and rounded once.

TVM takes the variance of a group for the mean of squares less the square of the mean, of which nothing is right where
the mean is large. Here the distances from the mean are squared.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tvm import relax

from loopwright.frontends.norms import group_norm
from loopwright.frontends.torch.node import Converter, Node, dtype_of, extents, is_known, wide


def _standardized(node: Node, data: Any, axes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return the distances from the mean over axes, divided by the standard deviation; the mean; and the deviation."""
    mean = node.emit(relax.op.mean(data, list(axes), True))
    distance = node.emit(relax.op.subtract(data, mean))
    variance = node.emit(relax.op.mean(node.emit(relax.op.multiply(distance, distance)), list(axes), True))
    epsilon = node.cast(float(node["eps"]), str(data.ty.dtype))
    deviation = node.emit(relax.op.sqrt(node.emit(relax.op.add(variance, epsilon))))
    return node.emit(relax.op.divide(distance, deviation)), mean, deviation


def _scaled(node: Node, value: Any) -> Any:
    """Return channels times the weight plus the bias, in the dtype of the result."""
    dtype, shape = str(value.ty.dtype), (1, -1, *[1] * (len(value.ty.shape) - 2))
    for name, operator in (("weight", relax.op.multiply), ("bias", relax.op.add)):
        if node[name] is not None:
            channels = node.emit(relax.op.reshape(node.cast(node[name], dtype), shape))
            value = node.emit(operator(value, channels))
    return node.cast(value, node.dtype)


def _grouped(node: Node, data: Any, groups: int) -> Any:
    """Return the normal data of groups of channels, scaled, in the dtype of the result."""
    dtype = str(data.ty.dtype)
    factors = (None if node[name] is None else node.cast(node[name], dtype) for name in ("weight", "bias"))
    return node.cast(group_norm(node.builder, data, groups, float(node["eps"]), *factors), node.dtype)


def _group_norm(node: Node) -> Any:
    data, groups = node.cast(node["input"], wide(node.dtype)), int(node["group"])
    if not node.uses(1) and not node.uses(2):
        return _grouped(node, data, groups), None, None
    shape = list(data.ty.shape)
    grouped = node.emit(relax.op.reshape(data, [shape[0], groups, math.prod([shape[1] // groups, *shape[2:]])]))
    standardized, *statistics = _standardized(node, grouped, (2,))
    whole = node.emit(relax.op.reshape(standardized, shape))
    return _scaled(node, whole), *_statistics(node, *statistics)


def _norm_of_batch(node: Node) -> Any:
    """Convert a batch normalisation by the statistics of the batch, of which instance normalisations are made."""
    data = node.cast(node["input"], wide(node.dtype))
    batch, channels = list(data.ty.shape)[:2]
    if batch == 1 and is_known(channels) and not node.uses(1) and not node.uses(2):
        return _grouped(node, data, int(channels)), None, None
    axes = [axis for axis in range(len(data.ty.shape)) if axis != 1]
    standardized, *statistics = _standardized(node, data, axes)
    return _scaled(node, standardized), *_statistics(node, *statistics)


def _training_norm_of_batch(node: Node) -> Any:
    """Convert a batch normalisation that also returns the running statistics, which move towards those of the batch."""
    data = node.cast(node["input"], wide(node.dtype))
    axes = [axis for axis in range(len(data.ty.shape)) if axis != 1]
    standardized, mean, deviation = _standardized(node, data, axes)
    count = math.prod(extents(data)[axis] for axis in axes)
    variance = node.emit(relax.op.variance(data, axes, True))
    unbiased = node.emit(relax.op.multiply(variance, node.cast(count / (count - 1), str(data.ty.dtype))))
    moved = [_moved(node, node[name], each) for name, each in (("running_mean", mean), ("running_var", unbiased))]
    return _scaled(node, standardized), *_statistics(node, mean, deviation), *moved


def _moved(node: Node, running: Any, value: Any) -> Any:
    """Return a running statistic after a batch with a value of it."""
    dtype, momentum = str(value.ty.dtype), float(node["momentum"])
    flat = node.emit(relax.op.reshape(value, [-1]))
    old = node.emit(relax.op.multiply(node.cast(running, dtype), node.cast(1 - momentum, dtype)))
    new = node.emit(relax.op.multiply(flat, node.cast(momentum, dtype)))
    return node.cast(node.emit(relax.op.add(old, new)), str(running.ty.dtype))


def _batch_norm(node: Node) -> Any:
    """TVM's operator takes operands of one dtype, which is that of the weights beside an input of halves."""
    operands = [node["input"], node["weight"], node["bias"], node["running_mean"], node["running_var"]]
    own, inner = node.dtype, wide(node.dtype)
    if None not in operands and {str(each.ty.dtype) for each in operands} == {own} and own == inner:
        return node.usual(), *_nothing(node)
    data, mean, variance = (node.cast(node[name], inner) for name in ("input", "running_mean", "running_var"))
    shape = (1, -1, *[1] * (len(data.ty.shape) - 2))
    epsilon = node.cast(float(node["eps"]), inner)
    deviation = node.emit(relax.op.sqrt(node.emit(relax.op.add(variance, epsilon))))
    mean, deviation = (node.emit(relax.op.reshape(each, shape)) for each in (mean, deviation))
    distance = node.emit(relax.op.subtract(data, mean))
    return _scaled(node, node.emit(relax.op.divide(distance, deviation))), *_nothing(node)


def _layer_norm(node: Node) -> Any:
    own, inner = node.dtype, wide(node.dtype)
    rank = len(node["normalized_shape"])
    axes, data = list(range(-rank, 0)), node.cast(node["input"], inner)
    statistics = _standardized(node, data, axes)[1:] if node.uses(1) or node.uses(2) else None
    others = (None, None) if statistics is None else _statistics(node, *statistics)
    if own == "float64":  # TVM has a function for float32 and float16 only
        result = _standardized(node, data, axes)[0]
        for name, operator in (("weight", relax.op.multiply), ("bias", relax.op.add)):
            result = result if node[name] is None else node.emit(operator(result, node.cast(node[name], own)))
        return result, *others
    if own == inner:
        return node.usual(), *others
    shape = [int(extent) for extent in node["normalized_shape"]]
    weight, bias = (
        relax.op.full(shape, node.cast(filling, inner), inner) if node[name] is None else node.cast(node[name], inner)
        for name, filling in (("weight", 1), ("bias", 0))
    )
    result = relax.op.nn.layer_norm(data, node.emit(weight), node.emit(bias), axes, float(node["eps"]))
    return node.cast(node.emit(result), own), *others


def _statistics(node: Node, mean: Any, deviation: Any) -> tuple[Any, Any]:
    """Return the mean and the reciprocal of the deviation in the shapes of PyTorch's results; None if not used."""
    if not node.uses(1) and not node.uses(2):
        return None, None
    reciprocal = node.emit(relax.op.divide(relax.const(1, str(deviation.ty.dtype)), deviation))
    first, second = (
        node.emit(relax.op.reshape(node.cast(each, dtype_of(result)), list(result.shape)))
        for each, result in zip((mean, reciprocal), node.result[1:3], strict=True)
    )
    return first, second


def _nothing(node: Node) -> tuple[Any, Any]:
    """Return the statistics of a normalisation that computes none: tensors without elements."""
    first, second = (node.emit(relax.op.zeros(list(each.shape), dtype_of(each))) for each in node.result[1:3])
    return first, second


CONVERTERS: dict[str, Converter] = {
    "_native_batch_norm_legit.no_stats": _norm_of_batch,
    "_native_batch_norm_legit_functional.default": _training_norm_of_batch,
    "_native_batch_norm_legit_no_training.default": _batch_norm,
    "native_group_norm.default": _group_norm,
    "native_layer_norm.default": _layer_norm,
}
