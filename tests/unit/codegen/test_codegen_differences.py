"""Exponentials of distances below a maximum: where they are recognised, and how exact they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.cpu.differences import are_below_maxima, sums_of_rows
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET, function

ROWS, COLUMNS = 4, 50_001


def exponentials(rows: int, columns: int, scale: float = 1.0) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="x")
    top = topi.max(x, axis=1, keepdims=False)

    def power(i: Any, j: Any) -> Any:
        return te.exp(x[i, j] - top[i] if scale == 1 else (x[i, j] - top[i]) * tvm.tirx.const(scale, "float32"))

    return function(x, te.compute(x.shape, power, name="y"))


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
    [
        programs.softmax(3, 20),
        programs.log_softmax(5, 30),
        programs.attention(2, 3, 16, 8, moved=True),
        exponentials(3, 20, 0.5),
    ],
    ids=["softmax", "log_softmax", "attention", "scaled"],
)
def test_softmax_is_recognised(mod: tvm.IRModule) -> None:
    assert are_below_maxima(mod["main"])


def test_softmax_multiplies_with_the_reciprocal_of_a_sum_but_an_exact_one_divides() -> None:
    mod = programs.softmax(3, 20)
    [total] = sums_of_rows(mod["main"])
    quotient = f"T.float32(1.0) / {total}["
    assert quotient in scheduled_module(mod, None, TARGET).script()
    assert quotient not in scheduled_module(mod, None, TARGET, exact_math=True).script()


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
        "product": lambda i, j: te.exp(-2.0 * (x[i, j] - top[i])),
        "two": lambda i, j: te.exp(x[i, j] - top[i]) + te.exp(x[i, j]),
    }.get(form, _row(x, top))
    y = te.compute(x.shape, element, name="y")
    mod = function(x, other, y) if form == "other tensor" else function(x, y)
    assert not are_below_maxima(mod["main"])


@pytest.mark.parametrize("form", ["stored", "added", "part", "columns", "turned", "doubled", "rows of two axes"])
def test_sums_of_whole_rows_are_recognised(form: str) -> None:
    """Only they have the exponential of the maximum itself, which is 1."""
    x = te.placeholder((2, 8, 8), name="x")
    i, j, k = te.reduce_axis((0, 8), name="i"), te.reduce_axis((0, 8), name="j"), te.reduce_axis((0, 8), name="k")
    k = te.reduce_axis((0, 7), name="k") if form == "part" else k
    if form == "rows of two axes":
        top = te.compute((2, 8), lambda b, r: te.max(x[b, i, j], axis=[i, j]), name="top")
    else:
        top = te.compute((2, 8), lambda b, r: te.max(x[b, r, j], axis=j), name="top")

    def power(b: Any, r: Any, c: Any) -> Any:
        return te.exp(x[b, r, c] - top[b, r])

    stored = te.compute(x.shape, (lambda b, r, c: power(b, c, r)) if form == "turned" else power, name="stored")
    terms: dict[str, Callable[[Any, Any], Any]] = {
        "added": lambda b, r: power(b, r, k),
        "columns": lambda b, c: stored[b, k, c],
        "doubled": lambda b, r: stored[b, r, k] * 2.0,
    }
    term = terms.get(form, lambda b, r: stored[b, r, k])
    total = te.compute((2, 8), lambda b, r: te.sum(term(b, r), axis=k), name="total")
    mod = function(x, te.compute(x.shape, lambda b, r, c: stored[b, r, c] / total[b, r], name="y"))
    assert sums_of_rows(mod["main"]) == ({"total"} if form in ("stored", "added") else frozenset())
