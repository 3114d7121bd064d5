"""Quantises an exported model as ONNX Runtime's tools do it, and computes what it should return."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import torch
from onnx import numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

from benchmarks.quality.cases.case import Case, Precision
from benchmarks.quality.shared import Shared
from loopwright.frontends.onnx.exactness import exact

_CALIBRATED = 4
"""Inputs by which the ranges of tensors are chosen."""


def write(shared: Shared, case: Case) -> None:
    """Replace an exported model by its quantised form, and write a form with weights of uint8, and the reference.

    Weights have 8 bits. On processors without VNNI, ONNX Runtime saturates with those of int8; it does not with the
    same weights as uint8. The reference is of its own unoptimised operators, with the latter.
    """
    names = [each.name for each in onnx.load(shared.onnx).graph.input]
    prepared = shared.folder / "prepared.onnx"
    quant_pre_process(str(shared.onnx), str(prepared), skip_symbolic_shape=True)
    if case.precision is Precision.DYNAMIC:
        quantize_dynamic(prepared, shared.onnx, weight_type=QuantType.QInt8)
        unsigned = exact(onnx.load(shared.onnx))
    else:
        quantize_static(
            prepared,
            shared.onnx,
            _Drawn(names, case.shapes),
            quant_format=QuantFormat.QDQ,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
            per_channel=True,
        )
        unsigned = _with_unsigned_weights(onnx.load(shared.onnx))
    onnx.save(unsigned, shared.unsigned_onnx)
    np.save(shared.folder / "reference.npy", _unoptimised(shared.unsigned_onnx, names, shared.inputs))


@dataclass
class _Drawn(CalibrationDataReader):
    """Random inputs, other ones than those of the case."""

    names: list[str]
    shapes: tuple[tuple[int, ...], ...]
    rows: Iterator[dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        generator = torch.Generator().manual_seed(2)
        self.rows = iter(
            {
                name: torch.randn(shape, generator=generator).numpy()
                for name, shape in zip(self.names, self.shapes, strict=True)
            }
            for _ in range(_CALIBRATED)
        )

    def get_next(self) -> dict[str, Any] | None:
        return next(self.rows, None)


def _with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model with constants of int8 that are dequantised as uint8, 128 larger, and so zero points."""
    stored = {each.name: each for each in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type != "DequantizeLinear":
            continue
        for name in (node.input[0], *node.input[2:]):
            constant = stored.get(name)
            if constant is not None and constant.data_type == onnx.TensorProto.INT8:
                moved = (numpy_helper.to_array(constant).astype("int16") + 128).astype("uint8")
                constant.CopyFrom(numpy_helper.from_array(moved, name))
    return model


def _unoptimised(path: Path, names: list[str], inputs: list[Any]) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip(names, inputs, strict=True)))[0]
