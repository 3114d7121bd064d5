"""Operators of ONNX by dtype, shape and special values, against ONNX Runtime or ONNX's reference."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

from tests.support.onnx_cells import Array, Cell, by_onnx_runtime, model_of
from tests.support.onnx_nodes import run

DRAWN = 16
"""Cells of a round, drawn by a fixed seed."""
FLOATS = ("float32", "float16")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
SHAPES = (((4,), (4,)), ((3, 1), (1, 5)), ((), (3,)), ((2, 3, 1, 1), (3, 1, 5)), ((1,), ()), ((), ()))
OF_FLOATS = """
    Abs Acos Acosh Asin Asinh Atan Atanh Ceil Celu Cos Cosh Elu Erf Exp Floor Gelu HardSigmoid HardSwish IsInf IsNaN
    LeakyRelu Log Mish Neg Reciprocal Relu Round Selu Shrink Sigmoid Sin Sinh Softplus Softsign Sqrt Tan Tanh
"""
TOLERANCE = {"float16": 4e-3, "float32": 2e-5}


def special(dtype: str) -> Array:
    if dtype in INTEGERS:
        limits = np.iinfo(dtype)
        signed = [-1, -2, -3, -7] if limits.min else [4, 5, 6, 9]
        return np.array([0, 1, 2, 3, 7, limits.max, limits.min, limits.max // 2, *signed], dtype)
    info = np.finfo(dtype)
    small, large, usual = float(info.tiny) / 4, float(info.max), [1, 0.5, 1.5, 2.5, 1e-3, 3.7, 10, 50]
    values = [np.nan, np.inf, -np.inf, 0.0, -0.0, small, -small, large, -large, *usual, *(-each for each in usual)]
    return np.array(values, dtype)


def drawn(shape: tuple[int, ...], dtype: str) -> Array:
    generator = np.random.default_rng(len(shape))
    if dtype in INTEGERS:
        return generator.integers(1, 10, shape).astype(dtype)
    return (2 * generator.standard_normal(shape)).astype(dtype)


def cells() -> Iterator[Cell]:
    for operator, dtype in itertools.product(OF_FLOATS.split(), FLOATS):
        for data in (special(dtype), drawn((), dtype), drawn((3, 1, 5), dtype)):
            yield Cell(operator, (data,))
    for operator, dtype in itertools.product(("Abs", "Sign", "BitwiseNot"), INTEGERS):
        yield Cell(operator, (special(dtype),))
    for operator, dtype in itertools.product(("Add", "Sub", "Mul", "Div", "Min", "Max"), (*FLOATS, *INTEGERS)):
        if dtype in FLOATS or operator != "Div":
            yield Cell(operator, tuple(map(np.ravel, np.meshgrid(special(dtype), special(dtype)))))
        for left, right in SHAPES:
            yield Cell(operator, (drawn(left, dtype), drawn(right, dtype)))
    for operator, dtype in itertools.product(("Less", "LessOrEqual", "Greater", "Equal"), (*FLOATS, *INTEGERS)):
        yield Cell(operator, tuple(map(np.ravel, np.meshgrid(special(dtype), special(dtype)))))
    for name, dtype in itertools.product(("Sum", "Mean", "Max", "Prod", "L1", "L2", "SumSquare"), (*FLOATS, "int32")):
        for axes in ((), (np.array([1]),), (np.array([-1, 0]),)):
            yield Cell(f"Reduce{name}", (drawn((2, 3, 4), dtype),), {"keepdims": len(axes)}, weights=axes)
    for operator, dtype, axis in itertools.product(("Softmax", "LogSoftmax", "Hardmax"), FLOATS, (0, 1, -1)):
        yield Cell(operator, (drawn((2, 3, 4), dtype),), {"axis": axis})
    for dtype in (*FLOATS, *INTEGERS):
        data = drawn((2, 3, 4), dtype)
        moves: list[tuple[str, dict[str, Any], tuple[Any, ...]]] = [
            ("Transpose", {"perm": [1, 2, 0]}, ()),
            ("Reshape", {}, (np.array([0, -1]),)),
            ("Flatten", {"axis": -1}, ()),
            ("Expand", {}, (np.array([5, 2, 3, 4]),)),
            ("Tile", {}, (np.array([2, 1, 3]),)),
            ("Unsqueeze", {}, (np.array([0, -1]),)),
            ("Slice", {}, (np.array([-1]), np.array([-100]), np.array([2]), np.array([-2]))),
            ("Gather", {"axis": 1}, (np.array([[0, -1], [2, 1]]),)),
            ("GatherND", {}, (np.array([[0, -1], [1, 2]]),)),
            ("Trilu", {"upper": 0}, (np.array(-1),)),
        ]
        for operator, attributes, weights in moves:
            yield Cell(operator, (data,), attributes, weights=weights)


def by_reference(cell: Cell) -> list[Array]:
    model, values = model_of(cell.opset, [cell])
    return [np.asarray(each) for each in ReferenceEvaluator(model).run(None, values)]


def is_equal(got: Array, expected: Array) -> bool:
    if (got.dtype, got.shape) != (expected.dtype, expected.shape):
        return False
    return np.allclose(got, expected, TOLERANCE.get(got.dtype.name, 0), 1e-6, equal_nan=got.dtype.kind == "f")


def check(rows: Sequence[Cell]) -> None:
    model, values = model_of(21, rows)
    wrong = []
    for cell, got in zip(rows, run(model, *values.values()), strict=True):
        found = []
        for judge in (by_onnx_runtime, by_reference):
            try:
                (expected,) = judge(cell)
            except Exception:  # an operator or dtype that it lacks
                continue
            found.append(is_equal(got, expected))
            if found[-1]:
                break
        if found and not any(found):
            given = [f"{each.dtype}{list(each.shape)}" for each in cell.inputs]
            wrong.append(f"{cell.operator} {cell.attributes} of {given}: {got}")
    assert not wrong, "\n".join(wrong)


def test_operators_drawn_by_a_fixed_seed_compute_what_onnx_says() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(random.Random(0).sample(list(cells()), DRAWN))


@pytest.mark.whole
def test_all_operators_compute_what_onnx_says() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = list(cells())
        for first in range(0, len(rows), 50):
            check(rows[first : first + 50])
