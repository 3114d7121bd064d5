"""Tiles of float32 that are turned in registers: each element where it belongs, for each length of vectors."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import te
from tvm.s_tir import Schedule

from loopwright.codegen.cpu import tile_transpose
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.intrinsics import register_named
from tests.support import rule_programs as programs


@pytest.mark.parametrize(("lanes", "across"), [(4, 0), (8, 0), (16, 0), (8, 1), (4, 2)])
def test_turned_tiles_have_each_element_in_its_place(lanes: int, across: int) -> None:
    rows, columns = 3 * lanes, 2 * lanes
    x = te.placeholder((rows, *[3] * across, columns + 5), name="x")
    places = [1, 2][:across]
    mod = programs.function(x, te.compute((columns, rows), lambda i, j: x(j, *places, i + 5), name="turned"))
    schedule = Schedule(mod)
    i, j = schedule.get_loops(schedule.get_sblock("turned"))
    (i, row), (j, column) = schedule.split(i, [None, lanes]), schedule.split(j, [None, lanes])
    schedule.reorder(i, j, row, column)
    assert register_named(tile_transpose.intrinsic(lanes, across))
    schedule.tensorize(row, tile_transpose.intrinsic(lanes, across))
    given = np.arange(rows * 3**across * (columns + 5), dtype="float32").reshape([int(each) for each in x.shape])
    result = tvm.runtime.tensor(np.full((columns, rows), -1, "float32"))
    compile_module(schedule.mod, programs.TARGET)["main"](tvm.runtime.tensor(given), result)
    for place in places:
        given = given[:, place]
    assert (result.numpy() == given[:, 5:].T).all()


@pytest.mark.parametrize("name", ["2", "32", "8x8", "08", "8_across_0", "8_across_5", ""])
def test_names_of_other_tiles_are_no_intrinsics(name: str) -> None:
    assert not tile_transpose.register(f"loopwright.transpose_float32_{name}")
