"""OpenVINO tuned for latency, from ONNX files and from the PyTorch module."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import openvino

from loopwright.comparing.case import Array, Case, NoForm
from loopwright.comparing.engines.engine import Prepare, Prepared

_PRECISION = {"f16": "f16", "bf16": "bf16"}
"""Of what a model leaves to the engine, if not f32: without a hint, OpenVINO computes f32 in bf16 where it can."""


def variants(case: Case, threads: int) -> Iterator[tuple[str, Prepare]]:
    try:
        module: Any = case.torch_module()
    except NoForm:
        module = None
    try:
        graphs = case.graphs
    except NoForm:
        if module is None:
            raise
        graphs = {}
    for name, path in graphs.items():
        yield name, partial(_prepared, case, threads, str(path))
    if module is not None:
        yield "PyTorch", lambda: _prepared(case, threads, _converted(case, module))


def _converted(case: Case, module: Any) -> Any:
    inputs, named = case.torch_inputs()
    with _root_logger_kept():
        if named:
            return openvino.convert_model(module, example_input={**named})
        return openvino.convert_model(module, example_input=inputs, input=[tuple(each.shape) for each in inputs])


@contextlib.contextmanager
def _root_logger_kept() -> Iterator[None]:
    """Undo what a conversion does to the root logger, which it leaves at ERROR where it fails."""
    root = logging.getLogger()
    level, filters, handlers = root.level, list(root.filters), list(root.handlers)
    try:
        yield
    finally:
        root.setLevel(level)
        root.filters, root.handlers = filters, handlers


def _prepared(case: Case, threads: int, model: Any) -> Prepared:
    settings = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
        "INFERENCE_PRECISION_HINT": _PRECISION.get(case.precision, "f32"),
    }
    compiled = openvino.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    tensors = [_tensor(array, port) for array, port in zip(case.inputs, compiled.inputs, strict=True)]
    for port, tensor in zip(compiled.inputs, tensors, strict=True):
        request.set_tensor(port, tensor)

    def call() -> None:
        request.infer(share_inputs=True, share_outputs=True)

    def outputs() -> list[Array]:
        call()
        return [_array(request.get_output_tensor(number)) for number in range(len(compiled.outputs))]

    return Prepared(call, outputs)


def _array(tensor: Any) -> Array:
    if tensor.element_type == openvino.Type.bf16:
        return (tensor.data.view(np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(tuple(tensor.shape))
    return np.array(tensor.data)


def _tensor(array: Array, port: Any) -> Any:
    """Return an input as a tensor of the type that the graph takes, in OpenVINO's own memory."""
    kind = port.element_type
    tensor = openvino.Tensor(kind, array.shape)
    if kind == openvino.Type.bf16:
        tensor.data.view(np.uint16)[:] = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16)
    else:
        tensor.data[:] = array
    return tensor
