"""The tensor intrinsic of row reductions: rows of every length, and names that carry all there is to know."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import tvm
from tvm import te

from loopwright.codegen.cpu import row_reduction
from loopwright.codegen.cpu.row_reduction import RowReduction
from loopwright.codegen.program.build import compile_module
from tests.support.rule_programs import TARGET, function


def reduced(operation: str, length: int, vectors: int, lanes: int) -> tvm.IRModule:
    x = te.placeholder((3, length), name="x")
    k = te.reduce_axis((0, length), name="k")
    combine = te.max if operation == "max" else te.sum
    top = te.compute((3,), lambda i: x[i, length - 1], name="top")

    def term(i: Any) -> Any:
        return te.exp(x[i, k] - top[i]) if operation == "expsum" else x[i, k]

    schedule = tvm.s_tir.Schedule(function(x, te.compute((3,), lambda i: combine(term(i), axis=k), name="y")))
    reduction = RowReduction(operation, length, vectors, lanes)
    assert row_reduction.register(reduction.name)
    block = schedule.get_sblock("y")
    loop = schedule.get_loops(block)[-1]
    schedule.decompose_reduction(block, loop)
    schedule.tensorize(schedule.get_loops(schedule.get_sblock("y_update"))[-1], reduction.name)
    return schedule.mod


@pytest.mark.parametrize(
    ("operation", "vectors", "lanes", "length"),
    [
        *(("sum", *shape, length) for shape in ((1, 4), (2, 8), (4, 16)) for length in (2, 8, 31, 65, 130)),
        *(("max", 2, 8, length) for length in (3, 9, 64, 97)),
        *(("expsum", 2, 8, length) for length in (2, 40, 97)),
    ],
)
def test_rows_of_every_length(operation: str, vectors: int, lanes: int, length: int) -> None:
    x = np.random.default_rng(length).standard_normal((3, length)).astype(np.float32) - 3
    out = tvm.runtime.tensor(np.full(3, np.nan, dtype=np.float32))
    compile_module(reduced(operation, length, vectors, lanes), TARGET)["main"](tvm.runtime.tensor(x), out)
    terms = np.exp(x - x[:, -1:].astype(np.float64)) if operation == "expsum" else x
    expected = x.max(axis=1) if operation == "max" else terms.sum(axis=1, dtype=np.float64)
    assert out.numpy() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["dot_16x4_vnni", "loopwright.row_min_8_1x8", "loopwright.row_sum_8_1x8; import os", "loopwright.row_sum"]
)
def test_a_name_of_something_else_is_not_registered(name: str) -> None:
    assert not row_reduction.register(name)
