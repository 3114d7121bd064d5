"""Nodes of ONNX as cells of a table, many of which make one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Cell:
    operator: str
    inputs: tuple[Array, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    expected: Callable[..., Any] | None = None
    """What NumPy computes, in place of ONNX Runtime."""
    outputs: int = 1
    weights: tuple[Any, ...] = ()
    opset: int = 21
    rtol: float = 1e-5
    domain: str = ""


def model_of(opset: int, rows: Sequence[Cell]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of which each cell is a node, and its inputs by name."""
    graph, values = onnx.GraphProto(name="cells"), {}
    for number, cell in enumerate(rows):
        values_given = (*cell.inputs, *cell.weights)
        names = ["" if value is None else f"x{number}_{place}" for place, value in enumerate(values_given)]
        given = {name: value for name, value in zip(names, values_given, strict=True) if name}
        outputs = [f"y{number}_{place}" for place in range(cell.outputs)]
        graph.node.append(helper.make_node(cell.operator, names, outputs, domain=cell.domain, **cell.attributes))
        for name in filter(None, names[len(cell.inputs) :]):
            graph.initializer.append(_initializer(given.pop(name), name))
        for name, value in given.items():
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            graph.input.append(helper.make_tensor_value_info(name, dtype, value.shape))
        graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
        values.update(given)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), values


def _initializer(value: Any, name: str) -> onnx.TensorProto:
    """Return a constant; a tensor of ONNX, such as one of 4 bits, under a name."""
    if not isinstance(value, onnx.TensorProto):
        return numpy_helper.from_array(np.asarray(value), name)
    named = onnx.TensorProto()
    named.CopyFrom(value)
    named.name = name
    return named


def by_onnx_runtime(cell: Cell) -> list[Array]:
    runtime = pytest.importorskip("onnxruntime")
    model, values = model_of(cell.opset, [cell])
    typed = onnx.shape_inference.infer_shapes(model)
    session = runtime.InferenceSession(typed.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[Array] = session.run(None, values)
    return results
