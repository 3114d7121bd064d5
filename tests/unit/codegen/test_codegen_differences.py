"""Exponentials of distances below a maximum: where they are recognised, and how exact they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.cpu.differences import are_below_maxima
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET, function

ROWS, COLUMNS = 4, 50_001


def exponentials(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    top = topi.max(x, axis=1, keepdims=False)
    return function(x, te.compute(x.shape, lambda i, j: te.exp(x[i, j] - top[i]), name="y"))


def called(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    out = tvm.runtime.tensor(np.full_like(x, np.nan))
    compile_module(scheduled_module(mod, None, TARGET), TARGET)["main"](tvm.runtime.tensor(x), out)
    return np.asarray(out.numpy())


def test_the_error_is_that_of_other_exponentials() -> None:
    mod, drawn = exponentials(ROWS, COLUMNS), np.random.default_rng(5)
    bits = drawn.integers(0, 0x42AE0000, (ROWS, COLUMNS), dtype=np.int32)  # to 87, most of them small
    x = -bits.view(np.float32)
    x[:2] = drawn.uniform(-86.99, 0, (2, COLUMNS))
    x[:, 7] = 0
    expected = np.exp(x.astype(np.float64))
    unit = np.spacing(expected.astype(np.float32)).astype(np.float64)
    assert (np.abs(called(mod, x) - expected) / unit).max() < 1.1


def test_what_is_masked_is_0_and_nan_stays() -> None:
    x = np.array([[0, -np.inf, -87.01, -1e30, -0.0, -1e-45], [np.inf, 1, 2, -np.inf, 0, 3]], np.float32)
    x = np.concatenate([x, np.full((1, 6), -2, np.float32)])
    x[2, 4] = np.nan
    result = called(exponentials(*x.shape), x)
    np.testing.assert_array_equal(result[0], [1, 0, 0, 0, 1, 1])
    np.testing.assert_array_equal(result[1], [np.nan, 0, 0, 0, 0, 0])
    assert np.isnan(result[2, 4])


@pytest.mark.parametrize(
    "mod",
    [programs.softmax(3, 20), programs.log_softmax(5, 30), programs.attention(2, 3, 16, 8, moved=True)],
    ids=["softmax", "log_softmax", "attention"],
)
def test_softmax_is_recognised(mod: tvm.IRModule) -> None:
    assert are_below_maxima(mod["main"])


def _row(x: te.Tensor, top: te.Tensor) -> Callable[..., Any]:
    return lambda i, j: te.exp(x[i, j] - top[i])


@pytest.mark.parametrize("form", ["least", "part", "other tensor", "next row", "sum", "product", "two"])
def test_other_differences_are_not(form: str) -> None:
    x, other = te.placeholder((6, 10), name="x"), te.placeholder((6, 10), name="other")
    j = te.reduce_axis((0, 9 if form == "part" else 10), name="j")
    source = other if form == "other tensor" else x
    reduce = {"least": te.min, "sum": te.sum}.get(form, te.max)
    top = te.compute((6,), lambda i: reduce(source[i, j], axis=j), name="top")
    element = {
        "next row": lambda i, j: te.exp(x[i, j] - top[5 - i]),
        "product": lambda i, j: te.exp(2.0 * (x[i, j] - top[i])),
        "two": lambda i, j: te.exp(x[i, j] - top[i]) + te.exp(x[i, j]),
    }.get(form, _row(x, top))
    y = te.compute(x.shape, element, name="y")
    mod = function(x, other, y) if form == "other tensor" else function(x, y)
    assert not are_below_maxima(mod["main"])
