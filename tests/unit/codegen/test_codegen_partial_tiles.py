"""Loops with a last tile that is a part of one: what is compiled of the whole tiles has no condition."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import te, tirx
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import PassInfo

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules.analysis.steps import separate_partial_tiles
from tests.support.rule_programs import TARGET


@pass_instrument
class Conditions:
    """Counts the conditions on elements that are left where loops are parted."""

    def __init__(self) -> None:
        self.count = -1

    def run_after_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        if info.name == "tirx.UnrollLoop":
            found: list[tirx.IfThenElse] = []
            tvm_ffi.structural_walk(mod["main"].body, (tirx.IfThenElse, found.append), order="pre")
            self.count = sum("i_0" in str(each.condition) for each in found)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_whole_tiles_have_no_condition_whatever_the_extents_are(dtype: str) -> None:
    """Those of functions that are lowered from Relax have 64 bits."""
    rows = tirx.const(13, dtype)
    x = te.placeholder((rows,), name="x")
    y = te.compute((rows,), lambda i: x[i] * 3.0, name="y")
    mod = tvm.IRModule({"main": te.create_prim_func([x, y])})
    counts = []
    for is_separate in (False, True):
        schedule, conditions = new_schedule(mod), Conditions()
        outer, inner = schedule.split(schedule.get_loops(schedule.get_sblock("y"))[0], [None, 4])
        schedule.unroll(inner)
        if is_separate:
            separate_partial_tiles(schedule, outer)
        with tvm.transform.PassContext(instruments=[conditions]):
            function = compile_module(schedule.mod, TARGET)["main"]
        counts.append(conditions.count)
    result = tvm.runtime.tensor(np.full(13, np.nan, "float32"))
    function(tvm.runtime.tensor(np.arange(13, dtype="float32")), result)
    np.testing.assert_array_equal(result.numpy(), 3 * np.arange(13))
    assert counts[0] > 0
    assert counts[1] == 0
