"""Normalisations, by the distances from the mean, and of halves in float32.

A variance as the mean of squares less the square of the mean, as TVM's importer takes it, has no digit that is right
where the mean is large.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tvm import relax

from loopwright.frontends.norms import group_norm
from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of


def _centred(node: Node, data: Any, axes: Sequence[int]) -> tuple[Any, Any, Any]:
    """Return the mean over some axes, the distances from it, and their mean square."""
    mean = node.emit(relax.op.mean(data, list(axes), keepdims=True))
    centred = node.emit(relax.op.subtract(data, mean))
    variance = node.emit(relax.op.mean(node.emit(relax.op.multiply(centred, centred)), list(axes), keepdims=True))
    return mean, centred, variance


def _normal(node: Node, data: Any, axes: Sequence[int]) -> Any:
    """Return the data with mean 0 and deviation 1 over some axes."""
    _, centred, variance = _centred(node, data, axes)
    epsilon = relax.const(node.attributes.get("epsilon", 1e-5), dtype_of(data))
    return node.emit(relax.op.divide(centred, node.emit(relax.op.sqrt(relax.op.add(variance, epsilon)))))


def _batch(node: Node) -> Any:
    if node.attributes.get("training_mode", 0):
        raise ValueError("which is in training mode; what is tuned is inference")
    data = node.inputs[0]
    inner = wide(data)
    if {dtype_of(each) for each in node.inputs[:5]} == {inner}:
        return node.as_usual()[0]
    return node.cast(node.emit(node.as_usual(*(node.cast(each, inner) for each in node.inputs[:5]))[0]), dtype_of(data))


def _local_response(node: Node) -> Any:
    """Convert a division by the squares of the channels around, of which the one behind is there if they are even."""
    data, size = node.inputs[0], int(node.attributes["size"])
    alpha, beta, bias = (
        float(node.attributes.get(name, default)) for name, default in (("alpha", 1e-4), ("beta", 0.75), ("bias", 1))
    )
    whole = node.cast(data, wide(data))
    rank, channels, before = len(data.ty.shape), node.extents(0)[1], (size - 1) // 2
    squares = node.emit(relax.op.multiply(whole, whole))
    sides = [0, 0, before, size - 1 - before, *[0] * 2 * (rank - 2)]
    padded = node.emit(relax.op.nn.pad(squares, sides))
    parts = [relax.op.strided_slice(padded, [1], [each], [each + channels]) for each in range(size)]
    total = node.emit(functools.reduce(relax.op.add, parts))
    scale, offset, power = (relax.const(value, dtype_of(whole)) for value in (alpha / size, bias, beta))
    divisor = node.emit(relax.op.power(relax.op.add(relax.op.multiply(total, scale), offset), power))
    return node.cast(node.emit(relax.op.divide(whole, divisor)), dtype_of(data))


def _instance(node: Node) -> Any:
    return _grouped(node, node.inputs[0].ty.shape[1], *node.inputs[1:3])


def _group(node: Node) -> Any:
    """Convert a normalisation of groups of channels; before opset 21, scale and bias are those of a group."""
    groups = int(node.attributes["num_groups"])
    factors = node.inputs[1:3]
    if node.opset < 21:
        shape = [groups, int(node.inputs[0].ty.shape[1]) // groups]
        factors = [
            node.emit(relax.op.broadcast_to(node.emit(relax.op.reshape(each, [groups, 1])), shape)) for each in factors
        ]
    return _grouped(node, groups, *factors)


def _grouped(node: Node, groups: Any, scale: Any, bias: Any) -> Any:
    data = node.cast(node.inputs[0], wide(node.inputs[0]))
    scale, bias = (node.cast(each, dtype_of(data)) for each in (scale, bias))
    epsilon = float(node.attributes.get("epsilon", 1e-5))
    return node.cast(group_norm(node.importer.bb, data, groups, epsilon, scale, bias), dtype_of(node.inputs[0]))


def _mean_variance(node: Node) -> Any:
    data = node.cast(node.inputs[0], wide(node.inputs[0]))
    _, centred, variance = _centred(node, data, node.attributes.get("axes", (0, 2, 3)))
    deviation = node.emit(relax.op.add(relax.op.sqrt(variance), relax.const(1e-9, dtype_of(data))))
    return node.cast(node.emit(relax.op.divide(centred, deviation)), dtype_of(node.inputs[0]))


def _layer(node: Node) -> Any:
    data, scale, bias = (*node.inputs[:3], None)[:3]
    results = _of_rows(node, data, scale, bias, with_statistics=node.outputs > 1)
    return relax.Tuple(results[: node.outputs]) if node.outputs > 1 else results[0]


def _skip_layer(node: Node) -> Any:
    """Convert a normalisation of ONNX Runtime's, of the sum of two tensors and a bias, which may be a result, too."""
    data, skip, scale, shift, bias = (*node.inputs[:5], None, None)[:5]
    total = node.emit(relax.op.add(data, skip))
    if bias is not None:
        total = node.emit(relax.op.add(total, bias))
    results = _of_rows(node, total, scale, shift, with_statistics=node.outputs > 1)
    return relax.Tuple([*results, total][: node.outputs]) if node.outputs > 1 else results[0]


def _simple_skip_layer(node: Node) -> Any:
    """Convert a normalisation of ONNX Runtime's of a sum, a result as well, by the root of its mean square."""
    data, skip, scale, bias = (node.inputs[place] for place in range(4))
    total = node.emit(relax.op.add(data, skip))
    if bias is not None:
        total = node.emit(relax.op.add(total, bias))
    normal = node.emit(_root_mean_square(node.of(total, scale)))
    if node.outputs == 1:
        return normal
    # The mean and the deviation are results of training alone.
    return relax.Tuple([normal, total, total, total][: node.outputs])


def _of_rows(node: Node, data: Any, scale: Any, bias: Any, *, with_statistics: bool) -> list[Any]:
    """Return the normal data over the last axes; and the mean and the reciprocal of the deviation, if asked for.

    TVM has a function for float32 and float16 only.
    """
    inner, epsilon = wide(data), float(node.attributes.get("epsilon", 1e-5))
    axes = _last_axes(node, data)
    rows = list(data.ty.shape)[axes[0] :]
    whole = node.cast(data, inner)
    scale, bias = (
        node.emit(relax.op.full(rows, relax.const(filling, inner), inner))
        if each is None
        else node.emit(relax.op.broadcast_to(node.cast(each, inner), rows))
        for each, filling in ((scale, 1), (bias, 0))
    )
    if inner == "float32":
        result = node.emit(relax.op.nn.layer_norm(whole, scale, bias, axes, epsilon))
    else:
        result = node.emit(relax.op.add(relax.op.multiply(_normal(node, whole, axes), scale), bias))
    results = [node.cast(result, dtype_of(data))]
    if with_statistics:
        mean, _, variance = _centred(node, whole, axes)
        results += [mean, node.emit(relax.op.rsqrt(relax.op.add(variance, relax.const(epsilon, inner))))]
    return results


def _root_mean_square(node: Node) -> Any:
    """Convert a normalisation by the root of the mean square.

    TVM has a function for float32 and float16, which it cannot build over all axes.
    """
    data, scale = node.inputs[:2]
    inner, epsilon = wide(data), float(node.attributes.get("epsilon", 1e-5))
    axes, whole, scale = _last_axes(node, data), node.cast(data, inner), node.cast(scale, inner)
    if axes[0] and inner == "float32":
        scale = node.emit(relax.op.broadcast_to(scale, list(data.ty.shape)[axes[0] :]))
        result = node.emit(relax.op.nn.rms_norm(whole, scale, axes, epsilon))
    else:
        square = node.emit(relax.op.mean(relax.op.multiply(whole, whole), axes, keepdims=True))
        root = node.emit(relax.op.rsqrt(relax.op.add(square, relax.const(epsilon, inner))))
        result = node.emit(relax.op.multiply(relax.op.multiply(whole, root), scale))
    return node.cast(result, dtype_of(data))


def _last_axes(node: Node, data: Any) -> list[int]:
    rank = len(data.ty.shape)
    return list(range(node.attributes.get("axis", -1) % rank, rank))


CONVERTERS: dict[str, Converter] = {
    "BatchNormalization": _batch,
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LayerNormalization": _layer,
    "MeanVarianceNormalization": _mean_variance,
    "RMSNormalization": _root_mean_square,
    "SimplifiedLayerNormalization": _root_mean_square,
    "SkipLayerNormalization": _skip_layer,
    "SkipSimplifiedLayerNormalization": _simple_skip_layer,
}
