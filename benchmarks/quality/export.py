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

from benchmarks.quality import quantised
from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Precision
from benchmarks.quality.cases.layers import BlockProduct, QuantisedConvolution
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
    if case.precision in (Precision.QDQ_MODEL, Precision.DYNAMIC):
        _export(module, inputs, shared.onnx)
        quantised.write(shared, case)
        return
    with torch.no_grad():
        expected = case.module().double()(*(tensor.double() for tensor in inputs))
    np.save(shared.folder / "reference.npy", expected.numpy())
    if isinstance(module, BlockProduct):
        _product_with_blocks(shared, module, inputs[0].shape[0], case.precision)
        return
    if isinstance(module, QuantisedConvolution):
        _quantised_convolution(shared, module, tuple(inputs[0].shape))
        return
    _export(module, inputs, shared.onnx)


def _export(module: torch.nn.Module, inputs: tuple[torch.Tensor, ...], path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module, inputs, str(path), dynamo=True, external_data=False, verbose=False)


def _integer_products(shared: Shared, weight: Any, rows: int) -> None:
    """Write the product of u8 and s8 three times: as MatMulInteger, of u8 and u8, and with quantised tensors.

    Without VNNI, ONNX Runtime's MatMulInteger of u8 and s8 saturates, though not with these inputs; that of u8 and u8
    does not.
    """
    k, n = weight.shape
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [rows, k])
    exact = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w"], ["y"])],
        "exact",
        [x],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, n])],
        [numpy_helper.from_array(weight, "w")],
    )
    unsigned = helper.make_graph(
        [helper.make_node("MatMulInteger", ["x", "w", "", "shift"], ["y"])],
        "unsigned",
        [x],
        [helper.make_tensor_value_info("y", TensorProto.INT32, [rows, n])],
        [
            numpy_helper.from_array((weight.astype("int16") + 128).astype("uint8"), "w"),
            numpy_helper.from_array(np.uint8(128), "shift"),
        ],
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
    graphs = ((exact, shared.onnx), (unsigned, shared.unsigned_onnx), (quantised, shared.quantised_onnx))
    for graph, path in graphs:
        _save(graph, path)


def _product_with_blocks(shared: Shared, module: BlockProduct, rows: int, precision: Precision) -> None:
    """Write a product with weights of 4 bits as MatMulNBits, whose rows may be rounded to int8."""
    (n, blocks, _), size = module.weight.shape, module.size
    level = 4 if precision is Precision.INT4_INT8 else 0
    attributes = {"K": blocks * size, "N": n, "bits": 4, "block_size": size, "accuracy_level": level}
    graph = helper.make_graph(
        [helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", **attributes)],
        "blocks",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, blocks * size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [rows, n])],
        [
            numpy_helper.from_array(module.weight.numpy(), "w"),
            numpy_helper.from_array(module.scale.numpy().reshape(-1), "s"),
        ],
    )
    _save(graph, shared.onnx)


def _quantised_convolution(shared: Shared, module: QuantisedConvolution, shape: tuple[int, ...]) -> None:
    """Write a convolution between tensors that are quantised and dequantised."""
    outputs, _, kernel, _ = module.weight.shape
    constants = {
        "w": module.weight.numpy(),
        "s": module.scale.numpy(),
        "none": np.zeros(outputs, "int8"),
        "step": np.float32(module.STEP),
        "zero": np.uint8(module.ZERO),
        "least": np.uint8(0),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "step", "zero"], ["x_q"]),
        helper.make_node("DequantizeLinear", ["x_q", "step", "zero"], ["x_d"]),
        helper.make_node("DequantizeLinear", ["w", "s", "none"], ["w_d"], axis=0),
        helper.make_node("Conv", ["x_d", "w_d"], ["c"], pads=[module.padding] * 4, kernel_shape=[kernel] * 2),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "step", "least"], ["r_q"]),
        helper.make_node("DequantizeLinear", ["r_q", "step", "least"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "convolution",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, outputs, *shape[2:]])],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    _save(graph, shared.onnx)


def _save(graph: onnx.GraphProto, path: Path) -> None:
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid("com.microsoft", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION), path)


if __name__ == "__main__":
    main()
