"""Loops of ONNX models, unrolled: TVM's graphs have none."""

from __future__ import annotations

from typing import Any

from tvm import relax, tirx

from loopwright.frontends.onnx.node import Converter, Node, constant, extents

_STEPS = 256
"""Steps of a loop that is unrolled: the time to lower a model grows with them. Not tuned."""


def _scan(node: Node) -> Any:
    if node.opset < 9:
        raise ValueError("of an opset before 9")
    body, count = node.attributes["body"], node.attributes["num_scan_inputs"]
    values = list(node.inputs)
    states, sequences = values[:-count], values[-count:]
    axes = node.attributes.get("scan_input_axes", [0] * count)
    directions = node.attributes.get("scan_input_directions", [0] * count)
    length = extents(sequences[0])[axes[0]]
    results: list[list[Any]] = []
    for step in steps(length):
        elements = [
            element(node, sequence, length - 1 - step if is_backward else step, axis)
            for sequence, axis, is_backward in zip(sequences, axes, directions, strict=True)
        ]
        outputs = node.importer.call(body, [*states, *elements])
        states = outputs[: len(states)]
        results.append(outputs[len(states) :])
    kinds = len(results[0])
    axes = node.attributes.get("scan_output_axes", [0] * kinds)
    directions = node.attributes.get("scan_output_directions", [0] * kinds)
    stacked = [
        stack(node, [each[kind] for each in results][:: -1 if directions[kind] else 1], axes[kind])
        for kind in range(kinds)
    ]
    return _tuple([*states, *stacked])


def _loop(node: Node) -> Any:
    """Unroll a loop whose count and condition are constants."""
    body, limit, goes_on = node.attributes["body"], node.constant(0), node.constant(1)
    if limit is None:
        raise ValueError("whose number of steps depends on values")
    states = list(node.inputs)[2:]
    results: list[list[Any]] = []
    for step in steps(int(limit.item()) if goes_on is None or goes_on else 0):
        outputs = node.importer.call(body, [relax.const(step, "int64"), relax.const(True, "bool"), *states])
        states, more = outputs[1 : 1 + len(states)], constant(outputs[0])
        results.append(outputs[1 + len(states) :])
        if more is None:
            raise ValueError("whose number of steps depends on values")
        if not more:
            break
    return _tuple([*states, *(stack(node, list(each), 0) for each in zip(*results, strict=True))])


def element(node: Node, sequence: Any, step: int, axis: int = 0) -> Any:
    shape = list(sequence.ty.shape)
    if isinstance(shape[axis], tirx.IntImm) and int(shape[axis]) == 1:
        return node.emit(relax.op.reshape(sequence, [*shape[:axis], *shape[axis + 1 :]]))
    return node.emit(relax.op.take(sequence, relax.const(step, "int64"), axis, mode="clip"))


def stack(node: Node, values: list[Any], axis: int) -> Any:
    if len(values) == 1:
        shape = list(values[0].ty.shape)
        return node.emit(relax.op.reshape(values[0], [*shape[:axis], 1, *shape[axis:]]))
    return node.emit(relax.op.stack(values, axis))


def steps(count: int) -> range:
    """Return the steps of a loop.

    Raises:
        ValueError: there are none, or too many.
    """
    if not 0 < count <= _STEPS:
        raise ValueError(f"of {count} steps; 1 to {_STEPS} are unrolled")
    return range(count)


def _tuple(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else relax.Tuple(values)


CONVERTERS: dict[str, Converter] = {"Loop": _loop, "Scan": _scan}
