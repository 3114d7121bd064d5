"""Sums of float16, which ONNX Runtime accumulates in float32, and means of integers, which stay integers."""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, dtype_of


def widened(convert: Converter) -> Converter:
    """Return a converter that sums float16 in float32, and takes means of integers in float64, cut off to integers."""

    def converted(node: Node) -> Any:
        data = node.inputs[0]
        dtype = dtype_of(data)
        is_mean = node.operator == "ReduceMean" and "int" in dtype
        if dtype != "float16" and not is_mean:
            return convert(node)
        wide = node.emit(relax.op.astype(data, "float64" if is_mean else "float32"))
        return relax.op.astype(node.emit(convert(node.of(wide, *list(node.inputs)[1:]))), dtype)

    return converted


CONVERTERS: dict[str, Converter] = {
    "GlobalAveragePool": widened(Node.as_usual),
    "LogSoftmax": widened(Node.as_usual),
    "Softmax": widened(Node.as_usual),
}
