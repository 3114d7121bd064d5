"""Operators of ONNX on special values, ties, windows and half precision, as ONNX Runtime or NumPy compute them.

The cells of a table are nodes of one model, which is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright import frontends
from loopwright.applying.lookup import lower
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.target import target_from
from tests.support.onnx_cells import Array, Cell, by_onnx_runtime, model_of

LLVM = target_from("llvm")

INF, NAN = np.inf, np.nan
SPECIAL = np.array(
    [[NAN, INF, -INF, 0.0, -0.0, 1e-8, -1e-8, 3e38], [1, -1, 2.5, -2.5, NAN, 1e-40, -3e38, 0.3]], "float32"
)
NEAR_AND_FAR = np.array(
    [0.0, 1e-30, 1e-8, -1e-8, 1e-4, -1e-4, 0.3, -0.3, 1, -1, 8, -8, -20, 50, -89, 89, INF, -INF, NAN]
)
MASKED = np.array(
    [[-INF] * 4, [-INF, -3.4e38, -INF, -INF], [INF] * 4, [1, NAN, 2, INF], [2, 3, 3, 1], [NAN] * 4], "float32"
)
IMAGE = np.random.default_rng(0).standard_normal((1, 2, 7, 6)).astype("float32")
HOLES = np.where(np.arange(84).reshape(IMAGE.shape) % 11, IMAGE, NAN).astype("float32")
EMPTY_WINDOWS = np.where(np.arange(84).reshape(IMAGE.shape) < 30, -INF, IMAGE).astype("float32")
ONES = np.ones((1, 2, 64, 64), "float16")
INTEGERS = np.array([7, -7, 8, -8, 5, -(2**31), 0, 3], "int32")
DIVISORS = np.array([2, 2, -3, 3, 0, -1, 0, -3], "int32")


def windows(operator: str, data: Array, **attributes: Any) -> Cell:
    return Cell(operator, (data,), {"kernel_shape": [3, 2], **attributes})


def exactly(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy in float64, rounded to the dtype of its argument."""
    return lambda data: function(data.astype("float64")).astype(data.dtype)


def largest_of_windows(data: Array) -> Array:
    padded = np.pad(data, ((0, 0), (0, 0), (1, 1), (0, 1)), constant_values=-INF)
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 2), (2, 3)).max((-1, -2))


def mish(x: Array) -> Array:
    return x * np.tanh(np.logaddexp(0, x))


def selu(x: Array) -> Array:
    return 1.05070102214813232421875 * np.where(x < 0, 1.67326319217681884765625 * np.expm1(x), x)


def cells() -> Iterator[Cell]:
    for operator in ("Relu", "Sign", "HardSigmoid", "LeakyRelu", "HardSwish", "ThresholdedRelu", "Abs", "IsNaN"):
        yield Cell(operator, (SPECIAL,))
    yield Cell("Clip", (SPECIAL,), weights=(np.float32(-1), np.float32(2)))
    yield Cell("Clip", (SPECIAL,), {"min": -1.0}, opset=6)
    yield Cell("Clip", (SPECIAL,), {"max": 6.0, "min": 0.0}, opset=6)
    yield Cell("Clip", (INTEGERS,), weights=(np.int32(-5), np.int32(6)))
    for operator, reduce in (("ReduceMax", np.max), ("ReduceMin", np.min)):
        yield Cell(operator, (MASKED,), {"keepdims": 0}, lambda x, of=reduce: of(x, 1), weights=(np.array([1]),))
        yield Cell(operator, (MASKED.astype("float16"),), {"axes": [0]}, lambda x, of=reduce: of(x, 0)[None], opset=13)
        yield Cell(operator, (INTEGERS,), {"axes": [0], "keepdims": 0}, opset=13)
    finite = np.where(np.isnan(MASKED), 0, MASKED).astype("float32")
    for operator, last in (("ArgMax", 0), ("ArgMax", 1), ("ArgMin", 0), ("ArgMin", 1)):
        yield Cell(operator, (finite,), {"axis": 1, "select_last_index": last})
        yield Cell(operator, (INTEGERS % 3,), {"axis": 0, "keepdims": 0, "select_last_index": last})
    yield Cell("ArgMax", (MASKED,), {"axis": -1}, lambda x: x.argmax(-1)[:, None])
    yield Cell("GlobalMaxPool", (EMPTY_WINDOWS,))
    for data in (SPECIAL, SPECIAL.astype("float64"), INTEGERS[None].astype("int16")):
        for largest in (0, 1):
            yield Cell("TopK", (data,), {"largest": largest}, outputs=2, weights=(np.array([6]),))
    yield Cell("TopK", (SPECIAL,), outputs=2, weights=(np.array([3]),), opset=10)
    for data in (IMAGE, EMPTY_WINDOWS):
        yield windows("MaxPool", data)
        yield windows("MaxPool", data, strides=[2, 2], ceil_mode=1)
    yield Cell("MaxPool", (HOLES,), {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]}, largest_of_windows)
    yield windows("MaxPool", IMAGE, auto_pad="SAME_LOWER", strides=[2, 2])
    yield windows("MaxPool", IMAGE, auto_pad="SAME_UPPER", strides=[3, 2])
    for options in ({}, {"storage_order": 1}, {"pads": [1, 1, 1, 0], "strides": [2, 1]}, {"dilations": [2, 3]}):
        cell = windows("MaxPool", np.round(IMAGE), **options)
        yield Cell(cell.operator, cell.inputs, cell.attributes, outputs=2)
    averaged: list[dict[str, Any]] = [
        {"pads": [1, 1, 1, 1]},
        {"pads": [1, 1, 1, 1], "count_include_pad": 1},
        {"pads": [1, 0, 1, 1], "strides": [2, 2], "ceil_mode": 1},
        {"pads": [1, 0, 1, 1], "strides": [2, 2], "ceil_mode": 1, "count_include_pad": 1},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [3, 2]},
    ]
    for attributes in averaged:
        yield windows("AveragePool", IMAGE, **attributes)
    yield windows("AveragePool", HOLES)
    yield windows("LpPool", IMAGE, pads=[1, 1, 0, 0], p=3)
    yield Cell("AveragePool", (ONES,), {"kernel_shape": [64, 64]}, lambda x: np.ones((1, 2, 1, 1), x.dtype), rtol=1e-3)
    yield Cell("GlobalAveragePool", (ONES,), {}, lambda x: np.ones((1, 2, 1, 1), x.dtype), rtol=1e-3)
    for dtype, rtol in (("float32", 1e-5), ("float16", 2e-3)):
        with np.errstate(over="ignore"):
            data = NEAR_AND_FAR.astype(dtype)
        for operator, function in (
            ("Elu", lambda x: np.where(x < 0, np.expm1(x), x)),
            ("Celu", lambda x: np.where(x < 0, np.expm1(x), x)),
            ("Selu", selu),
            ("Softplus", lambda x: np.logaddexp(0, x)),
            ("Mish", mish),
            ("Atanh", np.arctanh),
            ("Asinh", np.arcsinh),
            ("Sinh", np.sinh),
            ("Cosh", np.cosh),
        ):
            yield Cell(operator, (data,), {}, exactly(function), rtol=rtol)
    yield Cell("Div", (INTEGERS, DIVISORS), {}, lambda x, y: np.array([3, -3, -2, -2, 0, -(2**31), 0, -1], "int32"))
    for is_fmod, dividends in ((0, [1, 1, -1, 1, 0, 0, 0, 0]), (1, [1, -1, 2, -2, 0, 0, 0, 0])):
        yield Cell("Mod", (INTEGERS, DIVISORS), {"fmod": is_fmod}, lambda x, y, z=dividends: np.array(z, "int32"))
    yield Cell("Mod", (SPECIAL, SPECIAL[::-1].copy()), {"fmod": 1})
    infinite = np.array([[INF, 1], [-INF, 2], [INF, -INF], [NAN, 1], [-INF, -INF], [1e4, 1e4]], "float32")
    for keepdims in (0, 1):
        attributes = {"keepdims": keepdims}
        yield Cell("ReduceLogSumExp", (infinite[[0, 1, 2, 4, 5]],), attributes, weights=(np.array([1]),))
        for name in ("L1", "L2", "SumSquare"):
            yield Cell(f"Reduce{name}", (INTEGERS[1:4],), attributes | {"noop_with_empty_axes": 1})
    yield Cell("PRelu", (SPECIAL, np.array([[0.5], [-2]], "float32")))
    yield Cell("Sign", (np.array([0, 1, 200], "uint8"),))
    yield Cell("Equal", (np.array([True, False]), np.array([[True], [False]])))
    grid = np.linspace(-1.2, 1.2, 24, dtype="float16").reshape(1, 3, 4, 2)
    yield Cell("GridSample", (IMAGE.astype("float16"), grid), rtol=2e-3)
    rows, columns = np.ones((2, 4096), "float16"), np.ones((4096, 3), "float16")
    for operator, attributes, result in (
        ("MatMul", {}, 4096),
        ("Gemm", {"alpha": 0.5}, 2048),
        ("Einsum", {"equation": "ij,jk->ik"}, 4096),
    ):
        wanted = np.full((2, 3), result, "float16")
        yield Cell(operator, (rows, columns), attributes, lambda *_, y=wanted: y, rtol=1e-3)
    for operator, shape in (("Conv", (1, 4096, 1, 1)), ("ConvTranspose", (4096, 1, 1, 1))):
        wide = (rows[:1].reshape(1, 4096, 1, 1), columns[:, 0].reshape(shape), np.array([1], "float16"))
        yield Cell(operator, wide, {}, lambda *_: np.full((1, 1, 1, 1), 4096, "float16"), rtol=1e-3)
    yield Cell("LRN", (IMAGE.astype("float16"),), {"size": 3, "alpha": 0.5}, rtol=2e-3)
    statistics = np.array([[0.5, 2], [0, 1], [1, 2], [0.5, 4]], "float16")
    yield Cell("BatchNormalization", (IMAGE.astype("float16"), *statistics), rtol=2e-3)
    yield Cell("DynamicQuantizeLinear", (np.zeros(3, "float32"),), outputs=3)
    yield from normalisations()
    yield from (replace(cell, rtol=1e-3) for cell in resizings())


def normal(data: Array, axes: tuple[int, ...], epsilon: float = 1e-5) -> Array:
    wide = data.astype("float64")
    centred = wide - wide.mean(axes, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axes, keepdims=True) + epsilon)


def normalisations() -> Iterator[Cell]:
    """Of data far from 0, whose means are exact in float32, though the sums of halves are not."""
    channels = (None, slice(None), None, None)
    for dtype, offset, rtol in (("float32", 4096, 1e-5), ("float16", 128, 1e-3), ("float64", 2.0**30, 1e-8)):
        x = (offset + np.resize([-3, 3, -1, 1], (2, 4, 8, 8)) * 2.0 ** np.arange(4)[:, None, None] / 4).astype(dtype)
        scale, bias = np.array([1, 0.5, -2, 3], dtype), np.array([0, 1, -1, 2], dtype)
        by_group = np.repeat(scale[:2], 2)[channels], np.repeat(bias[:2], 2)[channels]
        grouped = normal(x.reshape(2, 2, -1), (2,)).reshape(x.shape)
        rows, root = normal(x, (3,)), np.sqrt((x.astype("float64") ** 2).mean(-1, keepdims=True) + 1e-5)
        cases = {
            ("InstanceNormalization", 21): (normal(x, (2, 3)) * scale[channels] + bias[channels], (x, scale, bias)),
            ("GroupNormalization", 18): (grouped * by_group[0] + by_group[1], (x, scale[:2], bias[:2])),
            ("GroupNormalization", 21): (grouped * scale[channels] + bias[channels], (x, scale, bias)),
            ("MeanVarianceNormalization", 21): (normal(x, (0, 2, 3), 0), (x,)),
            ("LayerNormalization", 21): (
                rows * np.tile(scale, 2) + np.tile(bias, 2),
                (x, *(np.tile(each, 2) for each in (scale, bias))),
            ),
            ("RMSNormalization", 23): (x / root * np.tile(scale, 2), (x, np.tile(scale, 2))),
        }
        for (operator, opset), (expected, inputs) in cases.items():
            attributes = {"num_groups": 2} if operator == "GroupNormalization" else {}
            wanted = expected.astype(dtype)
            yield Cell(operator, inputs, attributes, lambda *_, y=wanted: y, opset=opset, rtol=rtol)
    yield Cell("LayerNormalization", (IMAGE, IMAGE[0, 0, :1, :1].ravel()), {"axis": 1}, outputs=3, opset=17)


def resizings() -> Iterator[Cell]:
    none = np.zeros(0, "float32")
    scales, larger = np.array([1, 1, 0.6, 1.3], "float32"), np.array([1, 1, 2, 3], "float32")
    sizes = np.array([1, 2, 5, 9])
    region = np.array([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1], "float32")
    corners = {"coordinate_transformation_mode": "align_corners"}
    for kind, mode, options in (
        ("linear", "half_pixel_symmetric", {}),
        ("cubic", "half_pixel", {"exclude_outside": 1}),
        ("linear", "half_pixel", {"antialias": 1}),
        ("cubic", "asymmetric", {"antialias": 1, "exclude_outside": 1}),
    ):
        attributes = {"coordinate_transformation_mode": mode, "mode": kind, **options}
        yield Cell("Resize", (IMAGE,), attributes, weights=(none, scales))
    single = {"coordinate_transformation_mode": "pytorch_half_pixel", "mode": "cubic", "cubic_coeff_a": -0.5}
    yield Cell("Resize", (IMAGE,), single, weights=(none, none, np.array([1, 2, 1, 4])))
    for mode in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        yield Cell("Resize", (INTEGERS.reshape(1, 2, 2, 2),), {"nearest_mode": mode, **corners}, weights=(none, larger))
    for mode, *extents in (("linear", 1, 3), ("nearest", 1, 1), ("cubic", 4, 1), ("linear", 5, 9)):
        yield Cell("Resize", (IMAGE,), {"mode": mode, **corners}, weights=(none, none, np.array([1, 2, *extents])))
    cut = {"coordinate_transformation_mode": "tf_crop_and_resize", "mode": "linear", "extrapolation_value": 5.0}
    yield Cell("Resize", (IMAGE,), cut, weights=(region, none, sizes))
    for policy in ("not_larger", "not_smaller"):
        kept = {"keep_aspect_ratio_policy": policy, "axes": [2, 3], "mode": "linear"}
        yield Cell("Resize", (IMAGE,), kept, weights=(none, none, np.array([3, 11])), opset=19)
    yield Cell("Resize", (IMAGE,), {"mode": "linear", "axes": [-1]}, weights=(none, scales[2:3]), opset=19)
    for kind in ("nearest", "linear"):
        yield Cell("Resize", (IMAGE,), {"mode": kind}, weights=(larger,), opset=10)
        yield Cell("Upsample", (IMAGE,), {"mode": kind}, weights=(larger,), opset=9)
    ones = np.full((1, 1, 64, 64), 1000, "float16")
    yield Cell(
        "Resize",
        (ones,),
        {"mode": "linear", "antialias": 1},
        lambda x: x[:, :, :2, :3],
        weights=(none, none, np.array([1, 1, 2, 3])),
    )


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.whole)], ids=["some", "all"])
@pytest.mark.parametrize("opset", sorted({cell.opset for cell in cells()}))
def test_operators_compute_what_onnx_says(opset: int, step: int) -> None:
    rows = [cell for cell in cells() if cell.opset == opset][::step]
    model, values = model_of(opset, rows)
    module = lower(frontends.to_program(model), LLVM)
    machine = relax.VirtualMachine(compile_module(module, LLVM), tvm.cpu())
    found = machine["main"](*(tvm.runtime.tensor(value) for value in values.values()))
    results = iter([found] if isinstance(found, tvm.runtime.Tensor) else found)
    wrong = []
    for cell in rows:
        wanted = by_onnx_runtime(cell) if cell.expected is None else [cell.expected(*cell.inputs)]
        for expected in wanted:
            got = next(results).numpy()
            try:
                assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
                np.testing.assert_allclose(got, expected, rtol=cell.rtol, atol=1e-6 if cell.expected is None else 1e-38)
            except AssertionError as error:
                wrong.append(f"{cell.operator} {cell.attributes}: {error}\n{got}\n{expected}")
    assert not wrong, "\n".join(wrong)
