"""Models of integers: what their functions multiply, and what their weights weigh."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import tvm
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from loopwright import frontends
from loopwright.applying.lookup import lower
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.lowering import lower as lower_module
from loopwright.codegen.serialization import module_from_json, module_to_json
from tests.support.draws import numpy_draws
from tests.support.models import LLVM, Calls, called, check, digests, run

Array = np.ndarray[Any, Any]
DRAWN = numpy_draws()
STEP, POINT, NONE = np.array(0.02, "float32"), np.array(117, "uint8"), np.array(0, "uint8")


def model_of(nodes: Sequence[onnx.NodeProto], data: Array, weights: dict[str, Array]) -> onnx.ModelProto:
    """A model from ``x`` to ``y``."""
    graph = onnx.GraphProto(name="model", node=nodes)
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
    dtype = helper.np_dtype_to_tensor_dtype(data.dtype)
    graph.input.append(helper.make_tensor_value_info("x", dtype, data.shape))
    graph.output.append(helper.make_empty_tensor_value_info("y"))
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def lowered(model: onnx.ModelProto) -> tuple[tvm.IRModule, float]:
    """The functions of a model, which are those that the service would tune, and the bytes of its weights."""
    program = frontends.to_program(model)
    submitted = lower_module(module_from_json(module_to_json(program.module)), LLVM)
    mod = lower(program, LLVM)
    assert digests(mod) == digests(submitted)
    return mod, sum(weight.numpy().nbytes for weight in program.weights.values())


def operands(mod: tvm.IRModule, name: str) -> list[set[str]]:
    """The dtypes that functions of a name have, by function."""
    return [{str(param.dtype) for param in func.params} for var, func in prim_funcs(mod) if name in str(var.name_hint)]


def quantised(name: str, *suffix: str, **attributes: int) -> list[onnx.NodeProto]:
    """Nodes that quantise a tensor, and dequantise it."""
    return [
        helper.make_node("QuantizeLinear", [name, *suffix], [f"{name}_q"], **attributes),
        helper.make_node("DequantizeLinear", [f"{name}_q", *suffix], [f"{name}_d"], **attributes),
    ]


def test_layers_with_other_scales_are_one_function_of_integers() -> None:
    width, name = 64, "x"
    weights: dict[str, Array] = {}
    nodes: list[onnx.NodeProto] = []
    for layer in range(3):
        scale, zero = (
            np.array(value, dtype) for value, dtype in ((0.02 + layer / 100, "float32"), (9 + layer, "uint8"))
        )
        matrix = DRAWN.integers(-128, 128, (width, width), "int8")
        bias = DRAWN.standard_normal(width).astype("float32")
        scales = DRAWN.random(width).astype("float32")
        weights |= {f"s{layer}": scale, f"z{layer}": zero, f"w{layer}": matrix, f"b{layer}": bias, f"t{layer}": scales}
        nodes += quantised(name, f"s{layer}", f"z{layer}")
        nodes += [
            helper.make_node("DequantizeLinear", [f"w{layer}", f"t{layer}"], [f"m{layer}"], axis=1),
            helper.make_node("MatMul", [f"{name}_d", f"m{layer}"], [f"p{layer}"]),
            helper.make_node("Add", [f"p{layer}", f"b{layer}"], [f"a{layer}"]),
            helper.make_node("Relu", [f"a{layer}"], ["y" if layer == 2 else f"r{layer}"]),
        ]
        name = f"r{layer}"
    mod, size = lowered(model_of(nodes, np.zeros((8, width), "float32"), weights))
    assert len(called(mod)) == 4
    assert len(digests(mod)) == 3  # quantise; the first two layers; the last one
    assert all({"uint8", "int8"} <= each for each in operands(mod, "matmul"))
    assert size < 3 * width * (width + 16)


def test_layers_with_dynamic_quantisation_are_the_same_few_functions() -> None:
    """Scales of the weights are arguments, and the range of the data is found in one pass."""
    width, name = 96, "x"
    weights: dict[str, Array] = {}
    nodes: list[onnx.NodeProto] = []
    for layer in range(3):
        weights[f"w{layer}"] = DRAWN.integers(-128, 128, (width, width), "int8")
        weights[f"t{layer}"] = np.array(0.0007 + layer / 1000, "float32")
        result = "y" if layer == 2 else f"y{layer}"
        nodes += [
            helper.make_node("DynamicQuantizeLinear", [name], [f"q{layer}", f"s{layer}", f"z{layer}"]),
            helper.make_node("MatMulInteger", [f"q{layer}", f"w{layer}", f"z{layer}"], [f"p{layer}"]),
            helper.make_node("Cast", [f"p{layer}"], [f"c{layer}"], to=onnx.TensorProto.FLOAT),
            helper.make_node("Mul", [f"s{layer}", f"t{layer}"], [f"b{layer}"]),
            helper.make_node("Mul", [f"c{layer}", f"b{layer}"], [result]),
        ]
        name = result
    data = DRAWN.standard_normal((10, width)).astype("float32")
    model = model_of(nodes, data, weights)
    mod, _ = lowered(model)
    assert len(digests(mod)) == 6
    assert len(called(mod)) == 18
    [expected] = ReferenceEvaluator(model).run(None, {"x": data})
    np.testing.assert_allclose(run(mod, torch.from_numpy(data)), expected, 1e-4, 0.02 * np.abs(expected).max())


@pytest.mark.parametrize("special", [0.0, np.nan, np.inf, -np.inf])
def test_both_ends_of_a_range_are_found_in_one_pass_and_keep_nan(special: float) -> None:
    data = torch.from_numpy(DRAWN.standard_normal((3, 5, 67)).astype("float32"))
    data[1, 2, 66] = special
    for sign in (1, -1):
        mod = check(Calls(lambda x: torch.stack([x.max(), -x.min()])), sign * data.abs())
        assert called(mod).count("ranges") == 1


@pytest.mark.parametrize("form", ["int8", "columns", "4 bits", "zero points", "transposed", "lookup"])
def test_weights_that_are_only_decoded_keep_their_size(form: str) -> None:
    rows, depth, width = 4, 256, 96
    data: Array = np.zeros((rows, depth), "float32")
    matrix = DRAWN.integers(-128, 128, (depth, width), "int8")
    blocks = {
        "w": DRAWN.integers(0, 256, (width, depth // 32, 16), "uint8"),
        "s": DRAWN.random(width * depth // 32).astype("float32"),
        "z": DRAWN.integers(0, 256, width * depth // 64, "uint8"),
    }
    product = helper.make_node("MatMul", ["x", "d"], ["y"])
    scales = {"w": matrix, "s": STEP, "t": DRAWN.random(width).astype("float32")}
    if form == "int8":
        nodes, weights = [helper.make_node("DequantizeLinear", ["w", "s"], ["d"]), product], scales
    elif form == "columns":
        nodes, weights = [helper.make_node("DequantizeLinear", ["w", "t"], ["d"], axis=1), product], scales
    elif form == "transposed":
        turned = np.ascontiguousarray(matrix.T)
        gemm = helper.make_node("Gemm", ["x", "d"], ["y"], transB=1)
        nodes = [helper.make_node("DequantizeLinear", ["w", "t"], ["d"], axis=0), gemm]
        weights = scales | {"w": turned}
    elif form == "lookup":
        data = np.zeros((3, 5), "int64")
        nodes = [
            helper.make_node("DequantizeLinear", ["w", "s"], ["d"]),
            helper.make_node("Gather", ["d", "x"], ["y"]),
        ]
        weights = scales
    else:
        given = ["x", "w", "s", "z"] if form == "zero points" else ["x", "w", "s"]
        attributes = {"K": depth, "N": width, "bits": 4, "block_size": 32}
        nodes = [helper.make_node("MatMulNBits", given, ["y"], domain="com.microsoft", **attributes)]
        weights = {name: blocks[name] for name in given[1:]}
    mod, size = lowered(model_of(nodes, data, weights))
    used = [weights[name].nbytes for node in nodes for name in node.input if name in weights]
    assert size <= 1.1 * sum(used)
    assert ("take" if form == "lookup" else "matmul") in called(mod)[-1]
    assert len(called(mod)) == 1 + (form == "lookup")  # indices from the end


@pytest.mark.parametrize(("columns", "bits"), [(57, 4), (3, 8)])
def test_weights_in_blocks_have_columns_that_fill_vectors(columns: int, bits: int) -> None:
    size, depth = 16, 72
    blocks, places = -(-depth // size), 8 // bits
    matrix, zeros = (DRAWN.integers(0, 2**bits, (columns, *shape), "uint8") for shape in ((blocks * size,), (blocks,)))
    scale = DRAWN.standard_normal((columns, blocks)).astype("float32")

    def packed(table: Array) -> Array:
        parts = np.pad(table, ((0, 0), (0, -table.shape[1] % places))).reshape(columns, -1, places)
        return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype="uint8"), axis=-1)

    weights = {"w": packed(matrix).reshape(columns, blocks, -1), "s": scale.reshape(-1), "z": packed(zeros).reshape(-1)}
    attributes = {"K": depth, "N": columns, "bits": bits, "block_size": size}
    data = DRAWN.standard_normal((2, 3, depth)).astype("float32")
    node = helper.make_node("MatMulNBits", ["x", "w", "s", "z"], ["y"], domain="com.microsoft", **attributes)
    mod, _ = lowered(model_of([node], data, weights))
    [product] = [func for var, func in prim_funcs(mod) if "matmul" in str(var.name_hint)]
    assert int(product.params[-1].shape[-1]) == -(-columns // 16) * 16
    numbers = (matrix - np.repeat(zeros.astype("float32"), size, 1)) * np.repeat(scale, size, 1)
    expected = data @ numbers[:, :depth].T
    np.testing.assert_allclose(run(mod, torch.from_numpy(data)), expected, 1e-4, 1e-4 * np.abs(expected).max())


@pytest.mark.parametrize(("again", "times"), [("same", 1), ("scale", 2), ("zero point", 2), ("dtype", 2)])
def test_integers_are_not_made_again_of_their_numbers(again: str, times: int) -> None:
    """Tools write a pair of quantise and dequantise around each movement."""
    weights: dict[str, Array] = {
        "s": STEP,
        "z": POINT,
        "t": STEP,
        "u": POINT,
        "w": DRAWN.integers(-9, 9, (8, 6), "int8"),
    }
    if again == "scale":
        weights["t"] = np.array(0.0201, "float32")
    elif again == "zero point":
        weights["u"] = np.array(116, "uint8")
    elif again == "dtype":
        weights["u"] = np.array(117, "int8")
    weights["shape"] = np.array([6, 8])
    nodes = [
        *quantised("x", "s", "z"),
        helper.make_node("Reshape", ["x_d", "shape"], ["a"]),
        *quantised("a", "t", "u"),
        helper.make_node("DequantizeLinear", ["w", "s"], ["w_d"]),
        helper.make_node("MatMul", ["a_d", "w_d"], ["y"]),
    ]
    data = np.arange(-24, 24, dtype="float32").reshape(8, 6) * np.float32(0.13)
    model = model_of(nodes, data, weights)
    mod, _ = lowered(model)
    blocks = [part for _, func in prim_funcs(mod) for part in func.script().split('sblock("')]
    assert sum(part.startswith("quantize") for part in blocks) == times
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(run(mod, torch.from_numpy(data)), session.run(None, {"x": data})[0], 1e-5, 1e-6)


@pytest.mark.parametrize(("channels", "scales"), [(8, ()), (8, (8,)), (3, (8,))])
def test_convolutions_multiply_integers_and_keep_channels_last(channels: int, scales: tuple[int, ...]) -> None:
    kernel = DRAWN.integers(-128, 128, (8, 8, 3, 3), "int8")
    weights = {"s": STEP, "z": POINT, "t": np.asarray(DRAWN.random(scales) / 200, "float32"), "n": NONE}
    weights |= {"k0": np.ascontiguousarray(kernel[:, :channels]), "k1": kernel}
    nodes = quantised("x", "s", "z")
    for number, (before, after) in enumerate((("x", "c"), ("c", "y"))):
        nodes += [
            helper.make_node("DequantizeLinear", [f"k{number}", "t"], [f"w{number}"], axis=0),
            helper.make_node("Conv", [f"{before}_d", f"w{number}"], [f"r{number}"], pads=[1, 1, 1, 1]),
            helper.make_node("Relu", [f"r{number}"], [after]),
        ]
        nodes += quantised("c", "s", "n") if after == "c" else []
    data = DRAWN.standard_normal((1, channels, 10, 10)).astype("float32")
    model = model_of(nodes, data, weights)
    mod, size = lowered(model)
    names = called(mod)
    assert not any("transpose" in name for name in names[1:-1])
    assert sum("conv2d" in name for name in names) == 2
    assert len(names) == 3
    assert all({"uint8", "int8"} <= each for each in operands(mod, "conv2d"))
    images = [func.params[0].shape for var, func in prim_funcs(mod) if "conv2d" in str(var.name_hint)]
    assert {int(shape[-1]) for shape in images} <= {4, 8}  # a picture's three channels are padded
    assert size < 1.3 * 2 * kernel.nbytes
    [expected] = ReferenceEvaluator(model).run(None, {"x": data})
    np.testing.assert_allclose(run(mod, torch.from_numpy(data)), expected, 1e-4, 0.01 * np.abs(expected).max())


def test_products_of_what_is_too_deep_or_scaled_along_the_sum_stay_as_they_are() -> None:
    matrix = DRAWN.integers(-128, 128, (48, 8), "int8")
    weights = {"s": STEP, "z": POINT, "w": matrix, "t": DRAWN.random(48).astype("float32")}
    nodes = [
        *quantised("x", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "t"], ["d"], axis=0),
        helper.make_node("MatMul", ["x_d", "d"], ["y"]),
    ]
    mod, _ = lowered(model_of(nodes, np.zeros((4, 48), "float32"), weights))
    assert all("float32" in each for each in operands(mod, "matmul"))


def steps(numbers: Array, scale: Array, zero: Array) -> Array:
    """Numbers that are quantised, as float64."""
    limits = np.iinfo(zero.dtype)
    whole = np.clip(np.rint(numbers / np.float64(scale)) + np.float64(zero), limits.min, limits.max)
    return (whole - np.float64(zero)) * np.float64(scale)


@pytest.mark.parametrize("rounded", ["everything", "scores", "probabilities", "operands"])
def test_attention_between_quantised_tensors_is_one_function(rounded: str) -> None:
    """Each element is exact, or one step off where a number is next to the middle between two integers."""
    rows, heads, width = 11, 3, 5
    dtype = "int8" if rounded == "operands" else "uint8"
    weights: dict[str, Array] = {
        "s": STEP, "z": np.array(-3 if dtype == "int8" else 117, dtype),
        "t": np.array(0.007, "float32"), "u": np.array(90, "uint8"),
        "p": np.array(1 / 256, "float32"), "n": NONE, "half": np.array([0.5], "float32"),
        "by_heads": np.array([rows, 3, heads, width]), "by_rows": np.array([rows, heads * width]),
    }  # fmt: skip
    nodes = [
        *quantised("x", "s", "z"),
        helper.make_node("Reshape", ["x_d", "by_heads"], ["parts"]),
        helper.make_node("Split", ["parts"], ["q", "k", "v"], axis=1, num_outputs=3),
    ]
    for name, order in (("q", [1, 2, 0, 3]), ("k", [1, 2, 3, 0]), ("v", [1, 2, 0, 3])):
        nodes.append(helper.make_node("Transpose", [name], [f"{name}_t"], perm=order))
    nodes += [
        helper.make_node("MatMul", ["q_t", "k_t"], ["products"]),
        helper.make_node("Mul", ["products", "half"], ["scores"]),
        *quantised("scores", "t", "u"),
        helper.make_node("Softmax", ["scores_d" if rounded in ("everything", "scores") else "scores"], ["shares"]),
        *quantised("shares", "p", "n"),
        helper.make_node("MatMul", ["shares_d" if rounded in ("everything", "probabilities") else "shares", "v_t"],
                         ["attended"]),
        helper.make_node("Transpose", ["attended"], ["back"], perm=[0, 2, 1, 3]),
        helper.make_node("Reshape", ["back", "by_rows"], ["joined"]),
        *quantised("joined", "s", "z"),
        helper.make_node("Identity", ["joined_d"], ["y"]),
    ]  # fmt: skip
    data = DRAWN.standard_normal((rows, 3 * heads * width)).astype("float32")
    mod, _ = lowered(model_of(nodes, data, weights))
    names = called(mod)
    assert len(names) == 2
    assert names[1].startswith("fused_attention_quantize")
    q, k, v = np.moveaxis(steps(data, STEP, weights["z"]).reshape(rows, 3, heads, width), (1, 2), (0, 1))
    scores = q @ k.mT / 2
    scores = steps(scores, weights["t"], weights["u"]) if rounded in ("everything", "scores") else scores
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    shares /= shares.sum(-1, keepdims=True)
    shares = steps(shares, weights["p"], NONE) if rounded in ("everything", "probabilities") else shares
    expected = steps((shares @ v).swapaxes(0, 1).reshape(rows, -1), STEP, weights["z"])
    off = np.abs(run(mod, torch.from_numpy(data)) - expected) / STEP
    assert off.max() < 1.01
    assert (off > 0.01).mean() < 0.01


def test_probabilities_that_are_quantised_twice_are_not_attention() -> None:
    weights = {"t": np.array(1 / 200, "float32"), "p": np.array(1 / 256, "float32"), "n": NONE}
    nodes = [
        helper.make_node("MatMul", ["x", "x"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        *quantised("shares", "p", "n"),
        *quantised("shares_d", "t", "n"),
        helper.make_node("MatMul", ["shares_d_d", "x"], ["y"]),
    ]
    mod, _ = lowered(model_of(nodes, np.zeros((2, 8, 8), "float32"), weights))
    assert not any("attention" in name for name in called(mod))


@pytest.mark.parametrize("form", ["static", "bias apart", "dynamic"])
def test_queries_keys_and_values_with_other_scales_are_one_product(form: str) -> None:
    rows, heads, width = 9, 2, 6
    size = heads * width
    weights: dict[str, Array] = {"s": STEP, "z": POINT, "by_heads": np.array([rows, heads, width])}
    nodes = quantised("x", "s", "z")
    if form == "dynamic":
        nodes = [helper.make_node("DynamicQuantizeLinear", ["x"], ["x_q", "s_x", "z_x"])]
    for place, (name, order) in enumerate((("q", [1, 0, 2]), ("k", [1, 2, 0]), ("v", [1, 0, 2]))):
        weights |= {
            f"w{name}": DRAWN.integers(-128, 128, (size, size), "int8"),
            f"b{name}": DRAWN.standard_normal(size).astype("float32"),
            f"t{name}": np.asarray(DRAWN.random((size,) if name == "q" else ()) / 500 + 1e-3, "float32"),
            f"s{name}": np.array(0.02 + place / 100, "float32"),
            f"z{name}": np.array(120 + place, "uint8"),
        }
        if form == "dynamic":
            nodes += [
                helper.make_node("MatMulInteger", ["x_q", f"w{name}", "z_x"], [f"{name}_sums"]),
                helper.make_node("Cast", [f"{name}_sums"], [f"{name}_cast"], to=onnx.TensorProto.FLOAT),
                helper.make_node("Mul", ["s_x", f"t{name}"], [f"{name}_scale"]),
                helper.make_node("Mul", [f"{name}_cast", f"{name}_scale"], [f"{name}_product"]),
                helper.make_node("Add", [f"{name}_product", f"b{name}"], [f"{name}_d"]),
            ]
        else:
            nodes += [
                helper.make_node("DequantizeLinear", [f"w{name}", f"t{name}"], [f"{name}_w"], axis=1),
                helper.make_node("MatMul", ["x_d", f"{name}_w"], [f"{name}_product"]),
                *(quantised(f"{name}_product", f"s{name}", f"z{name}") if form == "bias apart" else ()),
                helper.make_node(
                    "Add", [f"{name}_product_d" if form == "bias apart" else f"{name}_product", f"b{name}"], [name]
                ),
                *quantised(name, f"s{name}", f"z{name}"),
            ]
        nodes.append(helper.make_node("Reshape", [f"{name}_d", "by_heads"], [f"{name}_h"]))
        nodes.append(helper.make_node("Transpose", [f"{name}_h"], [f"{name}_t"], perm=order))
    nodes += [
        helper.make_node("MatMul", ["q_t", "k_t"], ["scores"]),
        helper.make_node("Softmax", ["scores"], ["shares"]),
        helper.make_node("MatMul", ["shares", "v_t"], ["y"]),
    ]
    data = DRAWN.standard_normal((rows, size)).astype("float32")
    model = model_of(nodes, data, weights)
    mod, _ = lowered(model)
    names = called(mod)
    assert sum("matmul" in name for name in names) == 1
    assert "attention" in names[-1]
    assert [{"uint8", "int8"} <= each for each in operands(mod, "matmul")] == [True]
    [expected] = ReferenceEvaluator(model).run(None, {"x": data})
    np.testing.assert_allclose(run(mod, torch.from_numpy(data)), expected, 1e-4, 0.04 * np.abs(expected).max())


def test_a_quantised_sum_is_divided_by_no_scale() -> None:
    """A scale of the result is a part of those before it. The input alone is divided."""
    rows, width = 40, 24
    weights: dict[str, Array] = {
        "s": STEP, "z": POINT, "r": np.array(0.31, "float32"), "u": np.array(3, "uint8"),
        "p": np.array(0.2137, "float32"), "n": np.array(31, "uint8"),
        "w": DRAWN.integers(-128, 128, (width, width), "int8"), "t": DRAWN.random(width).astype("float32") / 20,
        "b": DRAWN.standard_normal(width).astype("float32"),
    }  # fmt: skip
    nodes = [
        *quantised("x", "s", "z"),
        helper.make_node("DequantizeLinear", ["w", "t"], ["m"], axis=1),
        helper.make_node("MatMul", ["x_d", "m"], ["p0"]),
        helper.make_node("Add", ["p0", "b"], ["p1"]),
        helper.make_node("Relu", ["p1"], ["a"]),
        *quantised("a", "r", "u"),
        helper.make_node("Add", ["a_d", "x_d"], ["total"]),
        helper.make_node("QuantizeLinear", ["total", "p", "n"], ["y"]),
    ]
    data = DRAWN.standard_normal((rows, width)).astype("float32")
    model = model_of(nodes, data, weights)
    mod, _ = lowered(model)
    assert len(called(mod)) == 2
    assert sum("] / " in func.script() for _, func in prim_funcs(mod)) == 1
    [expected] = ReferenceEvaluator(model).run(None, {"x": data})
    off = np.abs(run(mod, torch.from_numpy(data)).astype("int32") - expected)
    assert off.max() <= 1
    assert off.mean() < 0.01
    assert 20 < expected.std() < 100
