"""Sums of halves, which ONNX Runtime accumulates in float32."""

from __future__ import annotations

from typing import Any

from tvm import relax

from loopwright.frontends.onnx.node import Converter, Node, dtype_of


def wide(value: Any) -> str:
    """Return the dtype in which a tensor's elements are summed."""
    dtype = dtype_of(value)
    return "float32" if dtype in ("float16", "bfloat16") else dtype


def widened(convert: Converter) -> Converter:
    """Return a converter that computes halves in float32."""

    def converted(node: Node) -> Any:
        data = node.inputs[0]
        if wide(data) == dtype_of(data):
            return convert(node)
        whole = node.emit(relax.op.astype(data, wide(data)))
        return relax.op.astype(node.emit(convert(node.of(whole, *list(node.inputs)[1:]))), dtype_of(data))

    return converted


CONVERTERS: dict[str, Converter] = {
    "GlobalAveragePool": widened(Node.as_usual),
    "LogSoftmax": widened(Node.as_usual),
    "Softmax": widened(Node.as_usual),
}
