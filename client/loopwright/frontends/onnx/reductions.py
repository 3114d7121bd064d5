"""Reductions: what is done to each element, how elements become one, and what is done to that.

Halves are summed in float32. Means, roots and logarithms of integers are computed in float64 and cut off to integers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tvm import relax

from loopwright.frontends.onnx.accumulation import wide
from loopwright.frontends.onnx.node import Converter, Node, dtype_of

_Map = Callable[[Any], Any]


def _same(data: Any) -> Any:
    return data


def _squared(data: Any) -> Any:
    return relax.op.multiply(data, data)


_STEPS: dict[str, tuple[_Map, Callable[..., Any], _Map]] = {
    "ReduceL1": (relax.op.abs, relax.op.sum, _same),
    "ReduceL2": (_squared, relax.op.sum, relax.op.sqrt),
    "ReduceLogSum": (_same, relax.op.sum, relax.op.log),
    "ReduceMax": (_same, relax.op.max, _same),
    "ReduceMean": (_same, relax.op.mean, _same),
    "ReduceMin": (_same, relax.op.min, _same),
    "ReduceProd": (_same, relax.op.prod, _same),
    "ReduceSum": (_same, relax.op.sum, _same),
    "ReduceSumSquare": (_squared, relax.op.sum, _same),
}
_WITH_FRACTIONS = ("ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


def _inner(node: Node, data: Any) -> str:
    dtype = dtype_of(data)
    if dtype == "bool":
        return "int8"
    if "float" in dtype:
        return dtype if node.operator in ("ReduceMax", "ReduceMin") else wide(data)
    return "float64" if node.operator in _WITH_FRACTIONS else dtype


def _axes(node: Node) -> list[int] | None:
    """Return the axes that are reduced; None stands for all."""
    if "axes" in node.attributes:
        return list(node.attributes["axes"])
    axes = node.constant(1) if len(node.inputs) > 1 else None
    if axes is not None and axes.size:
        return [int(axis) for axis in axes]
    return [] if node.attributes.get("noop_with_empty_axes", 0) else None


def _reduction(node: Node) -> Any:
    source = node.importer.tensor(node.inputs[0])
    dtype, inner = dtype_of(source), _inner(node, source)
    data = node.cast(source, inner)
    axes, keepdims = _axes(node), bool(node.attributes.get("keepdims", 1))
    if node.operator == "ReduceLogSumExp":
        result = _log_sum_exp(node, data, axes, keepdims)
    else:
        before, reduce, behind = _STEPS[node.operator]
        elements = before(data)
        result = behind(elements if axes == [] else reduce(elements, axes, keepdims))
    return result if inner == dtype else relax.op.astype(node.emit(result), dtype)


def _log_sum_exp(node: Node, data: Any, axes: list[int] | None, keepdims: bool) -> Any:
    """Return log(sum(exp(x - m))) + m for the maximum m; if it is infinite, 0 takes its place."""
    if axes == []:
        return data
    infinite, zero = relax.const(float("inf"), dtype_of(data)), relax.const(0, dtype_of(data))
    largest = node.emit(relax.op.max(data, axes, True))
    shift = node.emit(relax.op.where(relax.op.equal(relax.op.abs(largest), infinite), zero, largest))
    powers = node.emit(relax.op.exp(relax.op.subtract(data, shift)))
    total = node.emit(relax.op.add(relax.op.log(relax.op.sum(powers, axes, True)), shift))
    return total if keepdims else relax.op.squeeze(total, axes)


CONVERTERS: dict[str, Converter] = dict.fromkeys((*_STEPS, "ReduceLogSumExp"), _reduction)
