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


def model_of(opset: int, rows: Sequence[Cell]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """A model of which each cell is a node, and its inputs by name."""
    graph, values = onnx.GraphProto(name="cells"), {}
    for number, cell in enumerate(rows):
        names = [f"x{number}_{place}" for place in range(len(cell.inputs) + len(cell.weights))]
        given = dict(zip(names, (*cell.inputs, *cell.weights), strict=True))
        outputs = [f"y{number}_{place}" for place in range(cell.outputs)]
        graph.node.append(helper.make_node(cell.operator, names, outputs, **cell.attributes))
        for name in names[len(cell.inputs) :]:
            graph.initializer.append(numpy_helper.from_array(np.asarray(given.pop(name)), name))
        for name, value in given.items():
            dtype = helper.np_dtype_to_tensor_dtype(value.dtype)
            graph.input.append(helper.make_tensor_value_info(name, dtype, value.shape))
        graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
        values.update(given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), values


def by_onnx_runtime(cell: Cell) -> list[Array]:
    runtime = pytest.importorskip("onnxruntime")
    model, values = model_of(cell.opset, [cell])
    typed = onnx.shape_inference.infer_shapes(model)
    session = runtime.InferenceSession(typed.SerializeToString(), providers=["CPUExecutionProvider"])
    results: list[Array] = session.run(None, values)
    return results
