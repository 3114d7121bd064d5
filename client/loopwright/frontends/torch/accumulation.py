"""Sums, products, means and `any` of PyTorch in Relax, in PyTorch's dtypes.

Integers are summed in the dtype of the result, which is wider than that of the elements; float16 and bfloat16 are
summed in float32 and rounded once.
"""

from __future__ import annotations

import math
from typing import Any

from tvm import relax

from loopwright.frontends.log_sum_exp import log_sum_exp
from loopwright.frontends.torch.node import Converter, Node, is_known, wide


def axes_of(node: Node, data: Any, name: str = "dim") -> tuple[list[int] | None, bool]:
    """Return the axes of a reduction, None for all of them, and whether they stay as extents of 1."""
    axes = node.arguments.get(name)
    axes = [axes] if isinstance(axes, int) else list(axes or ())
    return axes if axes and len(data.ty.shape) else None, bool(node.arguments.get("keepdim", False))


def _reduction(operator: Any) -> Converter:
    def convert(node: Node) -> Any:
        data = node.cast(node["self"], wide(node.dtype))
        axes, keepdim = axes_of(node, data)
        return node.cast(node.emit(operator(data, axes, keepdim)), node.dtype)

    return convert


def _variance(node: Node) -> tuple[Any, Any]:
    """Return the variance and the mean in the dtype of sums."""
    inner = wide(node.dtype)
    data = node.cast(node["self"], inner)
    axes, keepdim = axes_of(node, data)
    count = math.prod(data.ty.shape[axis] for axis in (range(len(data.ty.shape)) if axes is None else axes))
    mean = node.emit(relax.op.mean(data, axes, True))
    distance = node.emit(relax.op.subtract(data, mean))
    total = node.emit(relax.op.sum(node.emit(relax.op.multiply(distance, distance)), axes, keepdim))
    correction = node.cast(1.0 if node["correction"] is None else float(node["correction"]), inner)
    freedom = node.emit(relax.op.subtract(node.cast(count, inner), correction))
    divisor = node.emit(relax.op.maximum(freedom, node.cast(0, inner)))
    mean = mean if keepdim else node.emit(relax.op.squeeze(mean, axes))
    return node.emit(relax.op.divide(total, divisor)), mean


def _variance_and_mean(node: Node) -> Any:
    return tuple(node.cast(each, node.dtype) for each in _variance(node))


def _scan(operator: Any) -> Converter:
    def convert(node: Node) -> Any:
        data = node["self"]
        if not len(data.ty.shape):
            return node.cast(data, node.dtype)
        return node.cast(node.emit(operator(data, node["dim"], dtype=wide(node.dtype))), node.dtype)

    return convert


def _softmax(operator: Any) -> Converter:
    def convert(node: Node) -> Any:
        data = node.cast(node["self"], wide(node.dtype))
        return node.cast(node.emit(operator(data, node["dim"])), node.dtype)

    return convert


def _log_sum_exp(node: Node) -> Any:
    data = node.cast(node["self"], wide(node.dtype))
    axes, keepdim = axes_of(node, data)
    if any(is_known(extent) and int(extent) == 0 for extent in data.ty.shape):
        total = node.emit(relax.op.sum(node.emit(relax.op.exp(data)), axes, keepdim))
        return node.cast(node.emit(relax.op.log(total)), node.dtype)
    reduced = None if axes is None else [axis % len(data.ty.shape) for axis in axes]
    return node.cast(node.emit(log_sum_exp(node.builder, data, reduced, keepdim)), node.dtype)


def _norm(node: Node) -> Any:
    """Convert a vector norm of an order, which is also 0, infinite or negative."""
    order, own = node["ord"], node.dtype
    data = node.emit(relax.op.abs(node.cast(node["self"], wide(own))))
    axes, keepdim = axes_of(node, data)
    if math.isinf(order):
        result = (relax.op.max if order > 0 else relax.op.min)(data, axes, keepdim)
    elif order == 0:
        counted = node.cast(node.cast(data, "bool"), wide(own))
        result = relax.op.sum(counted, axes, keepdim)
    elif order == 1:
        result = relax.op.sum(data, axes, keepdim)
    elif order == 2:
        squares = node.emit(relax.op.multiply(data, data))
        result = relax.op.sqrt(node.emit(relax.op.sum(squares, axes, keepdim)))
    else:
        powers = node.emit(relax.op.power(data, node.cast(float(order), wide(own))))
        result = relax.op.power(node.emit(relax.op.sum(powers, axes, keepdim)), node.cast(1 / order, wide(own)))
    return node.cast(node.emit(result), own)


def _any(node: Node) -> Any:
    """Also NaN counts as true. In this form, attention is recognised by its check for rows that are masked entirely."""
    data = node.cast(node.cast(node["self"], "bool"), "int8")
    axes, keepdim = axes_of(node, data)
    largest = node.emit(relax.op.max(data, axes, keepdim))
    return node.cast(node.emit(relax.op.astype(largest, "bool")), node.dtype)


CONVERTERS: dict[str, Converter] = {
    **dict.fromkeys(("_log_softmax.default", "log_softmax.int"), _softmax(relax.op.nn.log_softmax)),
    **dict.fromkeys(("_softmax.default", "softmax.int"), _softmax(relax.op.nn.softmax)),
    "linalg_vector_norm.default": _norm,
    "logsumexp.default": _log_sum_exp,
    "var_mean.correction": _variance_and_mean,
    "std.correction": lambda node: node.cast(node.emit(relax.op.sqrt(_variance(node)[0])), node.dtype),
    "var.correction": lambda node: node.cast(_variance(node)[0], node.dtype),
    **dict.fromkeys(("any.default", "any.dim", "any.dims"), _any),
    "cumprod.default": _scan(relax.op.cumprod),
    "cumsum.default": _scan(relax.op.cumsum),
    **dict.fromkeys(("mean.default", "mean.dim"), _reduction(relax.op.mean)),
    **dict.fromkeys(("prod.default", "prod.dim_int"), _reduction(relax.op.prod)),
    **dict.fromkeys(("sum.default", "sum.dim_IntList"), _reduction(relax.op.sum)),
}
