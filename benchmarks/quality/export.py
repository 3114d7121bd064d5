"""Writes what all engines of a case are given (`benchmarks.quality.shared`).

RIVALS_PYTHON -m benchmarks.quality.export FOLDER CASE [CASE ...]
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Precision
from benchmarks.quality.shared import Shared, of
from loopwright.comparing.case import as_arrays

_OPSET = 20
_IR_VERSION = 9


def main() -> None:
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        export(CASES[name], folder)


def export(case: Case, folder: Path) -> None:
    """Write the files of a case."""
    shared = of(case, folder)
    shared.folder.mkdir(parents=True, exist_ok=True)
    module, inputs = case.module(), case.inputs()
    torch.save(module.state_dict(), shared.folder / "weights.pt")
    np.savez(shared.folder / "inputs.npz", *as_arrays(inputs))
    if case.precision is Precision.INT8:
        weight: torch.Tensor = module.get_buffer("weight")
        np.save(shared.folder / "reference.npy", (inputs[0].long() @ weight.long()).numpy())
        _integer_products(shared, weight.numpy(), inputs[0].shape[0])
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, str(shared.onnx), dynamo=True, external_data=False, verbose=False)
    with torch.no_grad():
        expected = module.double()(*(tensor.double() for tensor in inputs))
    np.save(shared.folder / "reference.npy", expected.numpy())


def _integer_products(shared: Shared, weight: Any, rows: int) -> None:
    """Write the product of u8 and s8 twice: exactly as MatMulInteger, and with quantised tensors of scale 1."""
    k, n = weight.shape
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [rows, k])
    exact = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "exact",
        [x],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, n])],
        [numpy_helper.from_array(weight, "w")],
    )
    constants = {"w": weight, "one": np.float32(1), "no_shift": np.uint8(0), "no_signed_shift": np.int8(0)}
    quantised = helper.make_graph(
        [
            helper.make_node("Cast", ["x"], ["real"], to=TensorProto.FLOAT),
            helper.make_node("QuantizeLinear", ["real", "one", "no_shift"], ["quantised"]),
            helper.make_node("DequantizeLinear", ["quantised", "one", "no_shift"], ["a"]),
            helper.make_node("DequantizeLinear", ["w", "one", "no_signed_shift"], ["b"]),
            helper.make_node("MatMul", ["a", "b"], ["y"]),
        ],
        "quantised",
        [x],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, n])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    for graph, path in ((exact, shared.onnx), (quantised, shared.quantised_onnx)):
        opsets = [helper.make_opsetid("", _OPSET)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), path)


if __name__ == "__main__":
    main()
