"""ONNX models: objects and files."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from typing import Any

from loopwright.errors import UnsupportedModel, first_line
from loopwright.extras import require_tvm
from loopwright.frontends.onnx.reference import OnnxReference
from loopwright.frontends.program import Program, detach
from loopwright.model import Model

ACCEPTS = "an onnx.ModelProto or the path of an .onnx file"
OPTIONS: frozenset[str] = frozenset()
BINDS_SHAPES = True


def accepts(model: Any) -> bool:
    if isinstance(model, str | os.PathLike):
        return str(model).endswith(".onnx") and "\n" not in str(model)
    onnx = sys.modules.get("onnx")
    return onnx is not None and isinstance(model, onnx.ModelProto)


def to_program(source: Model) -> Program:
    require_tvm()
    model, onnx = source.model, importlib.import_module("onnx")
    if isinstance(model, str | os.PathLike):
        if not Path(model).exists():
            raise FileNotFoundError(f"no such file: {model}")
        model = onnx.load(os.fspath(model))
    else:
        model = onnx.ModelProto()
        model.CopyFrom(source.model)
    # They import TVM and onnx.
    importer = importlib.import_module("loopwright.frontends.onnx.importer")
    importlib.import_module("loopwright.frontends.onnx.binding").bind(model, source.fixed)
    try:
        mod = importer.import_model(model)
    except Exception as error:
        raise UnsupportedModel(
            f"there is no translation of a part of this ONNX model: {first_line(error)}; write that part with other "
            "operators, or export it for another opset"
        ) from error
    shapes = {
        each.name: [extent.dim_value or None for extent in each.type.tensor_type.shape.dim]
        for each in model.graph.input
    }
    return detach(mod, OnnxReference(source.model, shapes))
