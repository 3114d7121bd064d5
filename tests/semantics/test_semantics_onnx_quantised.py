"""Operators of quantised models, against NumPy in float64, ONNX's reference, or ONNX Runtime where it is exact.

ONNX Runtime's products of uint8 and int8 saturate on x86 processors without VNNI: none of them is a reference here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper
from onnx.reference import ReferenceEvaluator

from loopwright import UnsupportedModel, frontends
from loopwright.frontends.onnx.exactness import exact, is_quantised
from tests.support.draws import numpy_draws
from tests.support.onnx_cells import Array, Cell, by_onnx_runtime, model_of
from tests.support.onnx_nodes import run

MICROSOFT = "com.microsoft"
PAIRS = ("uint8 uint8", "int8 uint8", "int8 int8")
FEW = 0.02
"""Of the elements that are quantised: so many may differ by one step, where a number is between two integers."""
DRAWN = numpy_draws()


def single(values: Any) -> Array:
    return np.asarray(values, "float32")


ROWS = single(DRAWN.standard_normal((5, 96)))
SPECIAL = np.array([[np.inf, -np.inf, 0.5, 1.5, 2.5, -0.5, 300, -0.0], [1, 2, -3.5, 4, 5, -1e9, 1e9, 126.5]], "float32")


def whole(dtype: str, *shape: int) -> Array:
    limits = np.iinfo(dtype)
    return DRAWN.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def real(data: Array, scale: Any, zero: Any = 0, axis: int | None = None) -> Array:
    """The numbers that integers stand for."""
    if axis is not None:
        shape = [-1 if place == axis % data.ndim else 1 for place in range(data.ndim)]
        scale, zero = np.reshape(scale, shape), np.reshape(zero, shape) if np.ndim(zero) else zero
    return (data.astype("float64") - np.asarray(zero, "float64")) * np.asarray(scale, "float64")


def steps(numbers: Array, scale: Any, zero: Any) -> Array:
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(numbers / np.float64(scale)) + float(zero), limits.min, limits.max).astype(zero.dtype)


def conv(x: Array, w: Array, pads: int = 0, stride: int = 1, groups: int = 1) -> Array:
    """A convolution of float64 over [n, c, h, w]."""
    x = np.pad(x.astype("float64"), ((0, 0), (0, 0), (pads, pads), (pads, pads)))
    size, width = w.shape[2], x.shape[1] // groups
    windows = np.lib.stride_tricks.sliding_window_view(x, (size, size), (2, 3))[:, :, ::stride, ::stride]
    part = w.shape[0] // groups
    parts = [
        np.einsum("nchwij,ocij->nohw", windows[:, g * width : (g + 1) * width], w[g * part : (g + 1) * part])
        for g in range(groups)
    ]
    return np.concatenate(parts, 1)


def by_reference(cell: Cell) -> list[Array]:
    model, values = model_of(cell.opset, [cell])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of casts of infinities
        return [np.asarray(each) for each in ReferenceEvaluator(model).run(None, values)]


def check(rows: Sequence[Cell], judge: Callable[[Cell], Sequence[Array]] = by_reference) -> None:
    """Compare nodes, which are one model: integers exactly, but for a few that are one step off."""
    model, values = model_of(max(cell.opset for cell in rows), rows)
    results, wrong = iter(run(model, *values.values())), []
    for cell in rows:
        wanted = judge(cell) if cell.expected is None else [cell.expected(*cell.inputs)]
        for expected in wanted:
            got, name = next(results), f"{cell.operator} {cell.attributes} of {[each.dtype for each in cell.inputs]}"
            if (got.dtype, got.shape) != (expected.dtype, expected.shape):
                wrong.append(f"{name}: {got.dtype}{got.shape}, not {expected.dtype}{expected.shape}")
            elif got.dtype.kind in "iu" and got.dtype.itemsize < 4:
                off = np.abs(got.astype("int64") - expected.astype("int64"))
                if off.max() > 1 or (off > 0).mean() > FEW:
                    wrong.append(f"{name}: {off.max()} steps off, {(off > 0).mean():.1%} of elements")
            elif got.dtype == "int32":
                if (got != expected).any():
                    wrong.append(f"{name}: {(got != expected).mean():.1%} of sums are wrong")
            elif not np.allclose(got, expected, cell.rtol, cell.rtol * np.abs(expected).max()):
                wrong.append(f"{name}: off by {np.abs(got - expected).max() / np.abs(expected).max():.1e}")
    assert not wrong, "\n".join(wrong)


def test_quantisation_keeps_ties_limits_and_infinities() -> None:
    def cells() -> Iterator[Cell]:
        for zero in (np.uint8(3), np.int8(-100), np.uint16(40_000), np.int16(5)):
            yield Cell(
                "QuantizeLinear", (SPECIAL,), {}, lambda x, z=zero: steps(x, 1, z), weights=(np.float32(1), zero)
            )
        scales, zeros = single([0.5, 2, 1, 0.25, 4, 1, 1, 3]), np.arange(8, dtype="int8")
        for axis, size in ((1, 8), (-2, 2)):
            yield Cell(
                "QuantizeLinear",
                (np.where(np.isinf(SPECIAL), 7, SPECIAL),),
                {"axis": axis},
                weights=(scales[:size], zeros[:size]),
            )
        yield Cell("DequantizeLinear", (whole("int8", 2, 8),), {"axis": 1}, weights=(scales, zeros))
        yield Cell("DequantizeLinear", (whole("uint16", 8),), weights=(np.float32(0.1), np.uint16(7)))
        yield Cell("DequantizeLinear", (whole("int32", 8, 3),), {"axis": 0}, weights=(scales,))
        half = np.float16(0.5)
        yield Cell("DequantizeLinear", (whole("int8", 2, 8),), weights=(half, np.int8(1)), rtol=1e-3)
        yield Cell("QuantizeLinear", (SPECIAL[1:].astype("float16"),), {}, lambda x: steps(x, 0.5, np.int8(1)),
                   weights=(half, np.int8(1)))  # fmt: skip
        for size, scale in ((4, DRAWN.random((3, 2))), (3, DRAWN.random((3, 3)))):
            blocks = single(scale)
            places = whole("uint8", *blocks.shape)
            yield Cell("DequantizeLinear", (whole("uint8", 3, 8),), {"axis": 1, "block_size": size},
                       lambda x, s=blocks, z=places, n=size: single(
                           real(x, s.repeat(n, 1)[:, :8], z.repeat(n, 1)[:, :8])),
                       weights=(blocks, places))  # fmt: skip
        yield Cell("DynamicQuantizeLinear", (ROWS,), outputs=3)
        yield Cell("DynamicQuantizeLinear", (np.abs(ROWS) + 1,), outputs=3)

    check(list(cells()))


def test_nan_is_quantised_to_the_least_integer() -> None:
    rows = [
        Cell("QuantizeLinear", (single([[np.nan, 1]]),), {}, lambda x, z=zero: steps(single([[-1e9, 1]]), 1, z),
             weights=(np.float32(1), zero))
        for zero in (np.uint8(5), np.int8(-7))
    ]  # fmt: skip
    check(rows)


@pytest.mark.parametrize("pair", ["uint8 int8", *(pytest.param(each, marks=pytest.mark.whole) for each in PAIRS)])
def test_products_of_integers_are_exact_over_the_whole_range(pair: str) -> None:
    left, right = pair.split()
    a, b, small, large = whole(left, 5, 96), whole(right, 96, 16), np.float32(0.013), np.float32(0.02)
    za, zb, zc = whole(left), whole(right), np.uint8(120)
    scales, zeros = single(DRAWN.random(16) + 0.5), whole(right, 16)
    extreme = np.full_like(a, np.iinfo(left).max), np.full_like(b, np.iinfo(right).max)
    wide = np.int32

    def product(a: Array, b: Array, za: Any = 0, zb: Any = 0) -> Array:
        return (a.astype("int64") - np.asarray(za, "int64")) @ (b.astype("int64") - np.asarray(zb, "int64"))

    rows = [
        Cell("MatMulInteger", (a,), {}, lambda x: product(x, b).astype(wide), weights=(b,)),
        Cell("MatMulInteger", (a,), {}, lambda x: product(x, b, za, zb).astype(wide), weights=(b, za, zb)),
        Cell("MatMulInteger", (a,), {}, lambda x: product(x, b, za, zeros).astype(wide), weights=(b, za, zeros)),
        Cell("MatMulInteger", (a, b), {}, lambda x, y: product(x, y).astype(wide)),
        Cell("MatMulInteger", (a, b), {}, lambda x, y: product(x, y, za, zb).astype(wide), weights=(za, zb)),
        Cell("MatMulInteger", (extreme[0],), {}, lambda x: product(x, extreme[1]).astype(wide), weights=(extreme[1],)),
        Cell(
            "QLinearMatMul",
            (a,),
            {},
            lambda x: steps(product(x, b, za, zb) * np.float64(small * large), 1.5, zc),
            weights=(small, za, b, large, zb, np.float32(1.5), zc),
        ),
        Cell(
            "QLinearMatMul",
            (a.reshape(5, 1, 96),),
            {},
            lambda x: steps(product(x, b, za, zeros) * np.float64(small) * scales, 90, zc),
            weights=(small, za, b, scales, zeros, np.float32(90), zc),
        ),
        Cell(
            "MatMulIntegerToFloat",
            (a,),
            {},
            lambda x: single(product(x, b, za, zeros) * np.float64(small) * scales + 3),
            weights=(b, small, scales, za, zeros, np.full(16, 3, "float32")),
            domain=MICROSOFT,
        ),
        Cell(
            "QGemm",
            (a,),
            {"transB": 1, "alpha": 0.5},
            lambda x: steps((product(x, b, za, zeros) + 700) * 0.5 * np.float64(small) * scales, 40, zc),
            weights=(
                small,
                za,
                np.ascontiguousarray(b.T),
                scales,
                zeros,
                np.full(16, 700, "int32"),
                np.float32(40),
                zc,
            ),
            domain=MICROSOFT,
        ),
        Cell(
            "QGemm",
            (a,),
            {},
            lambda x: single(product(x, b, za) * np.float64(small) * large),
            weights=(small, za, b, large, np.array(0, right)),
            domain=MICROSOFT,
        ),
    ]
    check(rows)


def test_products_quantise_their_rows_as_they_come() -> None:
    b, scales, zeros = whole("int8", 96, 16), single(DRAWN.random(16)), whole("int8", 16)

    def product(x: Array) -> Array:
        high, low = max(x.max(), 0), min(x.min(), 0)
        scale = single(np.float32(high - low) / np.float32(255)) or np.float32(1)
        zero = np.uint8(np.clip(np.rint(np.float32(-low) / scale), 0, 255))
        rows = np.clip(np.rint(x / scale) + float(zero), 0, 255)
        return single((rows - zero) * np.float64(scale) @ real(b, scales, zeros, 1))

    for data in (ROWS, np.zeros_like(ROWS), ROWS - 9):
        cell = Cell("DynamicQuantizeMatMul", (data,), {}, product, weights=(b, scales, zeros), domain=MICROSOFT)
        check([cell])


@pytest.mark.parametrize("pair", ["int8 int8", *(pytest.param(each, marks=pytest.mark.whole) for each in PAIRS[:2])])
def test_convolutions_of_integers_are_exact_over_the_whole_range(pair: str) -> None:
    left, right = pair.split()
    x, w, za, zb = whole(left, 1, 8, 9, 7), whole(right, 12, 8, 3, 3), whole(left), whole(right)
    grouped, zc, scales = whole(right, 12, 2, 3, 3), np.uint8(99), single(DRAWN.random(12) + 0.5)
    zeros, bias = whole(right, 12), whole("int16", 12).astype("int32")
    zero = np.array(0, right)

    def sums(x: Array, w: Array = w, a: Any = za, b: Any = zb, **options: int) -> Array:
        kernel = w.astype("float64") - np.reshape(np.asarray(b, "float64"), (-1, 1, 1, 1))
        return conv(x.astype("float64") - float(a), kernel, **options)

    padded = {"pads": [1, 1, 1, 1], "strides": [2, 2]}
    rows = [
        Cell("ConvInteger", (x,), {}, lambda x: sums(x, a=0, b=0).astype("int32"), weights=(w,)),
        Cell("ConvInteger", (x,), padded, lambda x: sums(x, pads=1, stride=2).astype("int32"), weights=(w, za, zb)),
        Cell(
            "ConvInteger", (x, w), padded, lambda x, w: sums(x, w, pads=1, stride=2).astype("int32"), weights=(za, zb)
        ),
        Cell(
            "QLinearConv",
            (x,),
            padded,
            lambda x: steps(
                (sums(x, b=0, pads=1, stride=2) + bias[:, None, None]) * 0.02 * scales[:, None, None], 30, zc
            ),
            weights=(np.float32(0.02), za, w, scales, np.zeros_like(zeros), np.float32(30), zc, bias),
        ),
        Cell(
            "QLinearConv",
            (x,),
            {"group": 4, "pads": [1, 1, 1, 1]},
            lambda x: steps(sums(x, grouped, b=zeros, pads=1, groups=4) * 0.02 * scales[:, None, None], 9, zc),
            weights=(np.float32(0.02), za, grouped, scales, zeros, np.float32(9), zc),
        ),
        Cell(
            "QLinearConv",
            (x,),
            {"pads": [0, 1, 2, 0]},
            lambda x: steps(conv(np.pad(x - float(za), ((0, 0), (0, 0), (0, 2), (1, 0))), w * 1.0) * 0.02, 9, zc),
            weights=(np.float32(0.02), za, w, np.float32(1), zero, np.float32(9), zc),
        ),
        Cell(
            "QLinearConv",
            (x[..., 0],),
            {},
            lambda x: steps(_conv1(x - float(za), w[:, :, 0] * 1.0) * 0.5, 77, zc),
            weights=(np.float32(0.5), za, w[:, :, 0], np.float32(1), zero, np.float32(77), zc),
        ),
    ]
    check(rows)
    model, values = model_of(21, [Cell("ConvInteger", (x, za), padded, weights=(w, zb))])
    model.graph.node[0].input[:] = ["x0_0", "x0_2", "x0_1", "x0_3"]  # a zero point that is an input
    (got,) = run(model, *values.values())
    np.testing.assert_array_equal(got, sums(x, pads=1, stride=2).astype("int32"))


def _conv1(x: Array, w: Array) -> Array:
    return np.einsum("nchi,oci->noh", np.lib.stride_tricks.sliding_window_view(x, w.shape[2], 2), w)


@pytest.mark.whole
def test_other_operators_of_integers_agree_with_onnx_runtime() -> None:
    x, y, signed = whole("uint8", 2, 6, 5, 4), whole("uint8", 2, 6, 5, 4), whole("int8", 2, 6, 5, 4)
    first, second = (np.float32(0.0213), np.uint8(100)), (np.float32(0.0517), np.uint8(7))
    result, share = (np.float32(0.0637), np.uint8(90)), (np.float32(1 / 256), np.uint8(0))

    def cells() -> Iterator[Cell]:
        for name, function in (("Add", np.add), ("Mul", np.multiply)):
            wanted = steps(function(real(x, *first), real(y, *second)), *result)
            yield Cell(f"QLinear{name}", (x,), {}, lambda _, y=wanted: y, weights=(*first, y, *second, *result))
        yield Cell("QLinearSigmoid", (x,), weights=(*first, *share))
        yield Cell("QLinearLeakyRelu", (x,), {"alpha": 0.1}, weights=(*first, *result))
        yield Cell("QLinearGlobalAveragePool", (x,), weights=(*first, *result))
        yield Cell("QLinearAveragePool", (x,), {"kernel_shape": [2, 3]}, weights=(*first, *result))
        least = (np.float32(0.0213), np.int8(5), np.float32(1 / 256), np.int8(-128))
        yield Cell("QLinearSoftmax", (signed,), {"axis": -1, "opset": 13}, weights=least)
        chosen = whole("uint8", 2, 6, 5, 4) > 100
        where = steps(np.where(chosen, real(x, *first), real(y, *second)), *result)
        yield Cell("QLinearWhere", (chosen,), {}, lambda _: where, weights=(x, *first, y, *second, *result))
        joined = steps(np.concatenate([real(x, *first), real(y, *second)], 1), *result)
        yield Cell("QLinearConcat", (), {"axis": 1}, lambda: joined, weights=(*result, x, *first, y, *second))

    check([replace(cell, domain=MICROSOFT) for cell in cells()], by_onnx_runtime)


def packed(values: Array, bits: int) -> Array:
    """Integers of a few bits, the lowest first, along the last axis."""
    parts = values.reshape(*values.shape[:-1], -1, 8 // bits).astype("uint8")
    return np.bitwise_or.reduce(parts << np.arange(0, 8, bits, dtype="uint8"), axis=-1).astype("uint8")


def rounded(x: Array, size: int) -> Array:
    """Rows of which each block is integers up to 127 times a scale."""
    depth = x.shape[-1]
    blocks = np.pad(x, ((0, 0), (0, -depth % size))).reshape(len(x), -1, size)
    most = np.abs(blocks).max(-1, keepdims=True)
    inverse = np.divide(np.float32(127), most, out=np.zeros_like(most), where=most != 0)
    numbers = np.rint(blocks * inverse) * (most.astype("float64") / 127)
    return numbers.reshape(len(x), -1)[:, :depth]


@pytest.mark.parametrize(("size", "depth"), [(32, 96), (16, 88)])
def test_rows_are_rounded_to_int8_where_the_model_asks_for_it(size: int, depth: int) -> None:
    """Weights of 4 bits do not saturate in ONNX Runtime, either."""
    blocks, columns = -(-depth // size), 24
    matrix = packed(DRAWN.integers(0, 16, (columns, blocks, size), "uint8"), 4)
    scale = single(DRAWN.random((columns, blocks)) + 0.5)
    zeros = DRAWN.integers(0, 256, (columns, -(-blocks // 2)), "uint8")
    rows = ROWS[:, :depth].copy()
    rows[1, :size], rows[2] = 0, 1e-30 * rows[2]
    attributes = {"K": depth, "N": columns, "bits": 4, "block_size": size, "accuracy_level": 4}
    weights = (matrix, scale.reshape(-1))
    cells = [
        Cell("MatMulNBits", (rows,), attributes, weights=weights, domain=MICROSOFT),
        Cell("MatMulNBits", (rows[None],), attributes, weights=(*weights, zeros.reshape(-1)), domain=MICROSOFT),
    ]
    model, _ = model_of(21, cells)
    assert is_quantised(model)
    assert exact(model) == model
    check(cells, by_onnx_runtime)
    numbers = np.stack([matrix & 15, matrix >> 4], -1).reshape(columns, blocks, size) - 8.0
    product = rounded(rows, size) @ (numbers * scale[..., None]).reshape(columns, -1)[:, :depth].T
    check([replace(cells[0], expected=lambda _: single(product))])


def test_infinities_and_nan_stay_in_rows_that_are_rounded() -> None:
    rows = ROWS[:4].copy()
    rows[0, 40], rows[1, 70], rows[2, 5] = np.nan, np.inf, -np.inf
    weights = (packed(DRAWN.integers(0, 16, (8, 3, 32), "uint8"), 4), single(DRAWN.random(24) + 0.5))
    attributes = {"K": 96, "N": 8, "bits": 4, "block_size": 32, "accuracy_level": 4}
    model, values = model_of(21, [Cell("MatMulNBits", (rows,), attributes, weights=weights, domain=MICROSOFT)])
    [result] = run(model, *values.values())
    numbers = np.stack([weights[0] & 15, weights[0] >> 4], -1).reshape(8, 96) - 8.0
    with np.errstate(invalid="ignore"):
        expected = rows @ (numbers * np.repeat(weights[1].reshape(8, 3), 32, 1)).T
    assert (np.isnan(expected).any(1) == [True, *(numbers[:, [70, 5]] == 0).any(0), False]).all()
    kept = ~np.isfinite(expected)
    np.testing.assert_array_equal(result[kept], expected[kept])
    assert (np.isfinite(result) == ~kept).all()


@pytest.mark.parametrize(
    ("bits", "size", "depth"),
    [(4, 16, 88), *(pytest.param(*each, marks=pytest.mark.whole) for each in ((4, 32, 96), (8, 32, 96), (2, 16, 80)))],
)
def test_products_with_blocks_of_few_bits_agree(bits: int, size: int, depth: int) -> None:
    rows, blocks, middle = 24, -(-depth // size), 2 ** (bits - 1)
    matrix = DRAWN.integers(0, 2**bits, (rows, blocks, size), "uint8")
    scale, zeros = (
        single(DRAWN.standard_normal((rows, blocks))),
        DRAWN.integers(0, 2**bits, (rows, blocks), "uint8"),
    )
    places = 8 // bits
    width = -(-blocks // places) * places
    words = packed(np.pad(zeros, ((0, 0), (0, width - blocks))), bits)
    data = ROWS[:, :depth]

    def product(x: Array, zero: Any = middle, order: Any = None) -> Array:
        if order is None:
            numbers = ((matrix - np.asarray(zero, float)) * scale[..., None]).reshape(rows, -1)[:, :depth]
        else:
            flat = matrix.reshape(rows, -1)[:, :depth]
            numbers = (flat - np.broadcast_to(zero, scale.shape)[:, order]) * scale[:, order]
        return single(x @ numbers.T)

    attributes = {"K": depth, "N": rows, "bits": bits, "block_size": size}
    weights = (packed(matrix, bits), scale.reshape(-1))
    bias = single(DRAWN.standard_normal(rows))
    cells = [
        Cell("MatMulNBits", (data,), attributes, product, weights=weights, domain=MICROSOFT),
        Cell(
            "MatMulNBits",
            (data.reshape(5, 1, depth),),
            attributes,
            lambda x: product(x, zeros[..., None]),
            weights=(*weights, words.reshape(-1)),
            domain=MICROSOFT,
        ),
        Cell(
            "MatMulNBits",
            (data,),
            attributes | {"accuracy_level": 4},
            lambda x: product(rounded(x, size), single(zeros[..., None] + 0.5)) + bias,
            weights=(*weights, single(zeros + 0.5).reshape(-1), None, bias),
            domain=MICROSOFT,
        ),
        Cell(
            "MatMulNBits",
            (data.astype("float16"),),
            attributes,
            lambda x: product(x.astype("float64"), zeros[..., None]).astype("float16"),
            weights=(weights[0], scale.astype("float16").reshape(-1), words.reshape(-1)),
            domain=MICROSOFT,
            rtol=1e-2,
        ),
    ]
    order = DRAWN.integers(0, blocks, depth).astype("int32")
    cells.append(
        Cell(
            "MatMulNBits",
            (data,),
            attributes,
            lambda x: product(x, middle, order),
            weights=(*weights, None, order),
            domain=MICROSOFT,
        )
    )
    check(cells)


@pytest.mark.parametrize("kind", [TensorProto.INT4, pytest.param(TensorProto.UINT4, marks=pytest.mark.whole)])
def test_constants_of_4_bits_agree(kind: int) -> None:
    low = -8 if kind == TensorProto.INT4 else 0

    def constant(*shape: int) -> tuple[TensorProto, Array]:
        values = DRAWN.integers(low, low + 16, shape)
        return helper.make_tensor("w", kind, shape, values.reshape(-1)), values

    scale = single(DRAWN.random((12, 16)))
    rows = []
    for shape, axis, block in (((96, 16), 0, 8), ((7, 9), None, 0), ((5,), None, 0)):
        tensor, values = constant(*shape)
        zero, zeros = constant(12, 16) if block else constant()
        attributes = {"axis": axis, "block_size": block} if block else {}
        model, _ = model_of(
            21, [Cell("DequantizeLinear", (), attributes, weights=(tensor, scale if block else np.float32(0.1), zero))]
        )
        expected = (
            (values - zeros.repeat(block, 0)) * scale.repeat(block, 0) if block else (values - zeros) * np.float32(0.1)
        )
        del model.graph.output[:]
        operator = "MatMul" if block else "Add"
        data = ROWS if block else single(DRAWN.standard_normal(shape))
        model.graph.node.append(helper.make_node(operator, ["x", model.graph.node[0].output[0]], ["y"]))
        model.graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, data.shape))
        model.graph.output.append(helper.make_empty_tensor_value_info("y"))
        wanted = data @ expected if block else data + expected
        rows.append((run(model, data)[0], single(wanted)))
    for got, wanted in rows:
        np.testing.assert_allclose(got, wanted, 1e-5, 1e-6 * np.abs(wanted).max())  # sums of the former may cancel


def test_fused_operators_agree_with_onnx_runtime() -> None:
    image, kernel = single(DRAWN.standard_normal((2, 4, 6, 5))), single(DRAWN.standard_normal((3, 4, 3, 3)))
    left, right = single(DRAWN.standard_normal((2, 3, 4, 5))), single(DRAWN.standard_normal((2, 3, 6, 5)))
    batch, vector = single(DRAWN.standard_normal((5, 2, 3, 6))), single(DRAWN.standard_normal(96))
    bias = single([0.5, -1, 2])

    def cells() -> Iterator[Cell]:
        yield Cell("FusedMatMul", (left, right), {"transB": 1, "alpha": 0.3})
        yield Cell("FusedMatMul", (left.swapaxes(2, 3).copy(), right), {"transA": 1, "transB": 1})
        yield Cell("FusedMatMul", (left, batch), {"transBatchB": 1})
        yield Cell("FusedGemm", (ROWS, ROWS.T.copy()), {"activation": "LeakyRelu", "activation_alpha": 0.2})
        yield Cell("FusedGemm", (ROWS, ROWS, ROWS[:, 0].copy()), {"transB": 1, "activation": "Relu", "beta": 2.0})
        yield Cell("FusedConv", (image, kernel, bias), {"activation": "Relu"})
        yield Cell("FusedConv", (image, kernel, bias), {"activation": "Clip", "activation_params": [-1.0, 2.0]})
        sums = single(DRAWN.standard_normal((2, 3, 6, 5)))
        yield Cell("FusedConv", (image, kernel, bias, sums), {"activation": "Relu", "pads": [1, 1, 1, 1]})
        skip = ROWS[::-1].copy()
        for optional in ((), (vector[::-1].copy(),), (vector[::-1].copy(), vector * 2)):
            yield Cell("SkipLayerNormalization", (ROWS[None], skip[None], vector, *optional), {"epsilon": 1e-4})
        for optional in ((), (vector * 2,)):
            yield Cell("SkipSimplifiedLayerNormalization", (ROWS[None], skip[None], vector, *optional))
        angles = single(DRAWN.standard_normal((20, 8)))
        tables = np.cos(angles), np.sin(angles)
        rows = single(DRAWN.standard_normal((2, 6, 64)))
        places = DRAWN.integers(0, 20, (2, 6))
        for interleaved in (0, 1):
            yield Cell("RotaryEmbedding", (rows, places), {"interleaved": interleaved}, weights=tables)
            heads = single(DRAWN.standard_normal((2, 4, 6, 16)))
            yield Cell("RotaryEmbedding", (heads, np.array([3])), {"interleaved": interleaved}, weights=tables)
        partly = {"num_heads": 2, "rotary_embedding_dim": 16}
        yield Cell("RotaryEmbedding", (rows, places), partly, weights=tables)

    check([replace(cell, domain=MICROSOFT, rtol=1e-4) for cell in cells()], by_onnx_runtime)


def test_the_reference_multiplies_no_uint8_by_int8() -> None:
    """Its kernels for these saturate on some processors; the model with weights of uint8 is the same one."""
    a, w, zero = whole("uint8", 5, 96), whole("int8", 96, 16), np.uint8(99)
    x, kernel, small = whole("uint8", 1, 8, 6, 6), whole("int8", 4, 8, 3, 3), np.float32(0.1)
    linear = (small, zero, w, small, np.int8(-4), np.float32(9), zero)
    none, scales = np.zeros(4, "int8"), single([0.1, 0.2, 0.3, 0.4])
    rows = [
        Cell("MatMulInteger", (a,), weights=(w,)),
        Cell("MatMulInteger", (a,), weights=(w, zero, np.int8(-5))),
        Cell("QLinearMatMul", (a,), weights=linear),
        Cell("ConvInteger", (x,), weights=(kernel, zero)),
        Cell("QLinearConv", (x,), weights=(small, zero, kernel, scales, none, np.float32(9), zero)),
        Cell("QGemm", (a,), weights=(*linear[:5], None, *linear[5:]), domain=MICROSOFT),
        Cell("DynamicQuantizeMatMul", (ROWS,), weights=(w, small, np.int8(3)), domain=MICROSOFT),
    ]
    model, values = model_of(21, rows)
    same = exact(model)
    users = {name for node in same.graph.node for name in node.input}
    used = [each for each in same.graph.initializer if each.name in users]
    assert not any(each.data_type == TensorProto.INT8 for each in used)
    assert is_quantised(model)
    check([replace(cell, expected=lambda *_, y=y: y) for cell, y in zip(rows, _run(same, values), strict=True)])
    both = Cell("QLinearMatMul", (w[:5].copy(),), weights=(small, np.int8(1), w[:16].copy(), *linear[3:6], np.int8(2)))
    of_int8, values = model_of(21, [both])
    np.testing.assert_array_equal(_run(exact(of_int8), values), _run(of_int8, values))


def _run(model: ModelProto, values: dict[str, Array]) -> list[Array]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    results: list[Array] = session.run(None, values)
    return results


@pytest.mark.parametrize(
    ("cell", "advice"),
    [
        (Cell("QLinearReduceMean", (whole("uint8", 2, 4),), domain=MICROSOFT), "QuantFormat.QDQ"),
        (Cell("MultiHeadAttention", (ROWS[None],) * 3, domain=MICROSOFT), "before the optimiser"),
        (Cell("QuantizeLinear", (ROWS,), weights=(np.float32(1), helper.make_tensor("z", TensorProto.INT4, [], [1]))),
         "DequantizeLinear"),
        (Cell("Det", (ROWS[:, :5],)), "another opset"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_operator_and_a_way_on(cell: Cell, advice: str) -> None:
    with pytest.raises(UnsupportedModel, match=rf"{cell.operator}.*{advice}"):
        frontends.to_program(model_of(cell.opset, [cell])[0])
