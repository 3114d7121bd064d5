"""OpenVINO tuned for latency, from the ONNX graph and from the PyTorch module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import openvino

from benchmarks.quality.engines.engine import Prepare, Prepared
from benchmarks.quality.shared import Array, Shared

_PRECISION = {"f32": "f32", "bf16": "bf16", "int8": "f32"}
"""Of what a case leaves to the engine: without a hint, OpenVINO computes f32 graphs in bf16 where it can."""


def variants(shared: Shared, threads: int) -> Iterator[tuple[str, Prepare]]:
    if shared.precision == "int8":
        yield "MatMulInteger", lambda: _prepared(shared, threads, str(shared.onnx))
        yield "quantised", lambda: _prepared(shared, threads, str(shared.quantised_onnx))
        return
    yield "ONNX", lambda: _prepared(shared, threads, str(shared.onnx))
    yield "PyTorch", lambda: _prepared(shared, threads, _converted(shared))


def _converted(shared: Shared) -> Any:
    inputs = shared.torch_inputs()
    return openvino.convert_model(
        shared.torch_module(), example_input=inputs, input=[tuple(tensor.shape) for tensor in inputs]
    )


def _prepared(shared: Shared, threads: int, model: Any) -> Prepared:
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": _PRECISION[shared.precision],
    }
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    tensors = [_tensor(array, port) for array, port in zip(shared.inputs, compiled.inputs, strict=True)]
    for port, tensor in zip(compiled.inputs, tensors, strict=True):
        request.set_tensor(port, tensor)

    def call() -> None:
        request.infer(share_inputs=True, share_outputs=True)

    def output() -> Array:
        call()
        found = request.get_output_tensor(0)
        if found.element_type == openvino.Type.bf16:
            return (found.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(tuple(found.shape))
        return np.array(found.data)

    return Prepared(call, output)


def _tensor(array: Array, port: Any) -> Any:
    """Return an input as a tensor of the type that the graph takes, in OpenVINO's own memory."""
    kind = port.element_type
    tensor = openvino.Tensor(kind, array.shape)
    if kind == openvino.Type.bf16:
        tensor.data.view(np.uint16)[:] = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
    else:
        tensor.data[:] = array
    return tensor
