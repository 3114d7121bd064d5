"""ONNX models: objects and files."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from loopwright.errors import UnsupportedModel, first_line
from loopwright.extras import require_tvm
from loopwright.frontends.onnx.reference import OnnxReference
from loopwright.frontends.program import Program, detach
from loopwright.model import Model

ACCEPTS = "an onnx.ModelProto or the path of an .onnx file"
OPTIONS = frozenset({"example_inputs"})
BINDS_SHAPES = True


def accepts(model: Any) -> bool:
    if isinstance(model, str | os.PathLike):
        return str(model).endswith(".onnx") and "\n" not in str(model)
    onnx = sys.modules.get("onnx")
    return onnx is not None and isinstance(model, onnx.ModelProto)


def to_program(source: Model) -> Program:
    require_tvm()
    model = _loaded(source.model)
    examples = example_inputs(source, model)
    # They import TVM and onnx.
    importer = importlib.import_module("loopwright.frontends.onnx.importer")
    importlib.import_module("loopwright.frontends.onnx.binding").bind(model, source.fixed)
    try:
        mod = importer.import_model(model)
    except Exception as error:
        reason = first_line(error)
        raise UnsupportedModel(
            f"there is no translation of a part of this ONNX model: {reason}; {importer.advice(reason)}"
        ) from error
    shapes = {
        each.name: [extent.dim_value or None for extent in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    return detach(mod, OnnxReference(source.model, shapes, examples))


def example_inputs(source: Model, loaded: Any = None) -> dict[str, Any]:
    """Return the example inputs as NumPy's arrays by the names of the model's inputs; empty if there are none.

    Raises:
        TypeError: they are not the inputs of the model, or one has another dtype than the model takes.
    """
    given = source.example_inputs
    if given is None:
        return {}
    np, helper = importlib.import_module("numpy"), importlib.import_module("onnx.helper")
    graph = (loaded or _loaded(source.model)).graph
    weights = {each.name for each in graph.initializer}
    inputs = {each.name: each.type.tensor_type.elem_type for each in graph.input if each.name not in weights}
    named = dict(given) if isinstance(given, Mapping) else dict(zip(inputs, given, strict=False))
    if named.keys() != inputs.keys() or len(given) != len(inputs):
        names = f"with the names {', '.join(given)}" if isinstance(given, Mapping) else "in order"
        raise TypeError(f"{len(given)} example inputs {names}, and the model takes {', '.join(inputs)}")
    arrays = {name: np.asarray(named[name]) for name in inputs}
    for name, array in arrays.items():
        if array.dtype != (dtype := helper.tensor_dtype_to_np_dtype(inputs[name])):
            raise TypeError(f"example input {name} is of {array.dtype}, and the model takes {dtype}")
    return arrays


def _loaded(model: Any) -> Any:
    """Return the model of a file, or a copy of a model."""
    if isinstance(model, str | os.PathLike):
        if not Path(model).exists():
            raise FileNotFoundError(f"no such file: {model}")
        return _read(os.fspath(model))
    onnx = importlib.import_module("onnx")
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    return copied


def _read(path: str) -> Any:
    try:
        model = importlib.import_module("onnx").load(path)
        if not model.HasField("graph"):
            raise ValueError("it has no graph")
    except OSError:
        raise
    except ImportError as error:
        raise UnsupportedModel(f"to read {path}, install ONNX: pip install onnx ({error})") from error
    except Exception as error:  # protobuf's and onnx's have no class in common
        raise UnsupportedModel(
            f"{path} is no whole ONNX model ({first_line(error)}); copy it again, with the files of its weights, or "
            "export it again"
        ) from error
    return model
