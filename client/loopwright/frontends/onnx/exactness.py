"""Models of integers as ONNX Runtime computes them exactly, whatever the processor.

Without VNNI, its x86 kernels for products of uint8 and int8 add pairs in 16 bits, which saturate: results are a quarter
of the largest output off (255 * 127 * 2 is over 32,767). Its kernels for uint8 and uint8 do not.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

_WEIGHTS = {
    "ConvInteger": (1, 3, 2),
    "DynamicQuantizeMatMul": (1, 3, None),
    "MatMulInteger": (1, 3, 2),
    "MatMulIntegerToFloat": (1, 5, 4),
    "QGemm": (3, 5, 2),
    "QLinearConv": (3, 5, 2),
    "QLinearMatMul": (3, 5, 2),
}
"""Operators that multiply integers, and the places of the weight, its zero point and that of the data."""


def is_quantised(model: onnx.ModelProto) -> bool:
    """Return whether a model rounds activations to integers, which two implementations may do one step apart."""
    return any("Quantize" in node.op_type.replace("Dequantize", "") or node.op_type.startswith("QLinear")
               or _rounds_rows(node) for node in model.graph.node)  # fmt: skip


def multiplies_integers(model: onnx.ModelProto) -> bool:
    """Return whether `exact` may change a model."""
    return any(node.op_type in _WEIGHTS or node.op_type == "MatMulNBits" for node in model.graph.node)


def exact(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model that computes the same, with constant weights of int8 as uint8, 128 larger, and so zero points.

    Products with weights of few bits are computed in float32, as their `accuracy_level` allows, unless they are of rows
    of int8 and weights of 4 bits, which do not saturate.
    """
    if not multiplies_integers(model):
        return model
    constants = {each.name: each for each in model.graph.initializer}
    signed = {each.name for each in model.graph.input if each.type.tensor_type.elem_type == onnx.TensorProto.INT8}
    result = onnx.ModelProto()
    result.CopyFrom(model)
    shifted: dict[str, str] = {}

    def moved(name: str) -> str:
        if name not in shifted:
            values = numpy_helper.to_array(constants[name]) if name else np.array(0, "int8")
            shifted[name] = f"{name}_of_uint8"
            array = (values.astype("int16") + 128).astype("uint8")
            result.graph.initializer.append(numpy_helper.from_array(array, shifted[name]))
        return shifted[name]

    for node in result.graph.node:
        if node.op_type == "MatMulNBits" and not (_rounds_rows(node) and _bits(node) == 4):
            kept = [each for each in node.attribute if each.name != "accuracy_level"]
            del node.attribute[:]
            node.attribute.extend(kept)
        weight, zero, point = _WEIGHTS.get(node.op_type, (0, 0, None))
        if not weight or not _is_int8(constants.get(node.input[weight])):
            continue
        if point is not None and len(node.input) > point and _is_int8(constants.get(node.input[point])):
            continue  # products of int8 and int8 are exact
        if node.input[0] in signed:
            continue
        node.input.extend([""] * (zero + 1 - len(node.input)))
        if node.input[zero] and node.input[zero] not in constants:
            continue
        node.input[weight], node.input[zero] = moved(node.input[weight]), moved(node.input[zero])
    return result


def _rounds_rows(node: onnx.NodeProto) -> bool:
    """Return whether a product with blocks of few bits rounds the other operand to int8."""
    return node.op_type == "MatMulNBits" and any(
        each.name == "accuracy_level" and each.i == 4 for each in node.attribute
    )


def _bits(node: onnx.NodeProto) -> int:
    return next((each.i for each in node.attribute if each.name == "bits"), 4)


def _is_int8(constant: Any) -> bool:
    return constant is not None and constant.data_type == onnx.TensorProto.INT8
