"""The tensor intrinsic of reductions of columns: rows of every length, and names that carry all there is to know."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te

from loopwright.codegen.cpu import column_reduction
from loopwright.codegen.cpu.column_reduction import ColumnReduction
from loopwright.codegen.program.build import compile_module
from tests.support.rule_programs import TARGET, function

ROWS, AT_ONCE = 12, 3


def reduced(operation: str, columns: int, lanes: int) -> tvm.IRModule:
    x = te.placeholder((ROWS, columns), name="x")
    k = te.reduce_axis((0, ROWS), name="k")
    combine = te.max if operation == "max" else te.sum
    mod = function(x, te.compute((columns,), lambda j: combine(x[k, j], axis=k), name="y"))
    schedule = tvm.s_tir.Schedule(mod)
    block = schedule.get_sblock("y")
    lane, row = schedule.get_loops(block)
    step, inner = schedule.split(row, [None, AT_ONCE])
    schedule.reorder(step, lane, inner)
    schedule.decompose_reduction(block, step)
    reduction = ColumnReduction(operation, AT_ONCE, columns, lanes)
    assert column_reduction.register(reduction.name)
    schedule.tensorize(lane, reduction.name)
    return schedule.mod


@pytest.mark.parametrize(
    ("operation", "lanes", "columns"),
    [
        *(("sum", lanes, columns) for lanes in (4, 16) for columns in (2, 8, 17, 31, 48)),
        *(("max", 16, columns) for columns in (3, 31)),
    ],
)
def test_rows_of_every_length(operation: str, lanes: int, columns: int) -> None:
    x = np.random.default_rng(columns).standard_normal((ROWS, columns)).astype(np.float32) - 3
    out = tvm.runtime.tensor(np.full(columns, np.nan, dtype=np.float32))
    compile_module(reduced(operation, columns, lanes), TARGET)["main"](tvm.runtime.tensor(x), out)
    expected = x.max(axis=0) if operation == "max" else x.sum(axis=0, dtype=np.float64)
    assert out.numpy() == pytest.approx(expected, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize(
    "name", ["loopwright.row_sum_8_1x8", "loopwright.columns_min_4x8_8", "loopwright.columns_sum_4x8_16; import os"]
)
def test_a_name_of_something_else_is_not_registered(name: str) -> None:
    assert not column_reduction.register(name)
