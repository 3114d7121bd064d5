"""The tensor intrinsic of windows of lines: maxima keep NaN wherever it is, and a name carries all there is to know."""

from __future__ import annotations

import pytest
import torch
import tvm
from torch.nn import functional
from tvm import relax

from loopwright.codegen.cpu import window_reduction
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.cpu.window_reduce import WindowReduce
from tests.support.rule_programs import TARGET, lowered


@pytest.mark.parametrize(("window", "stride", "lines"), [((3, 3), (2, 2), 5), ((2, 4), (1, 3), 9)])
def test_a_maximum_is_nan_where_an_element_is(window: tuple[int, int], stride: tuple[int, int], lines: int) -> None:
    """Vectors of a line overlap: 19 columns and 13 are two of them."""
    x = torch.randn(3, 4, 2 * lines if stride[0] == 2 else lines, 38)
    x[:, 1] = -torch.inf
    for place in range(38):
        x[place % 3, 2 + place % 2, place % x.shape[2], place] = torch.nan
    expected = functional.max_pool2d(x, window, stride, (1, 1))
    mod = lowered(lambda x: relax.op.nn.max_pool2d(x, window, stride, (1, 1, 1, 1)), x.shape)
    program, schedule = AnalysedProgram.of(mod), new_schedule(mod)
    assert program is not None
    values = {"lanes": 8, "rows": 2, "lines": expected.shape[2], "parallel": 1}
    WindowReduce().apply(schedule, program, MachineLimits.of(TARGET), values)
    result = tvm.runtime.empty(expected.shape)
    compile_module(schedule.mod, TARGET)["main"](tvm.runtime.tensor(x.numpy()), result)
    torch.testing.assert_close(torch.from_numpy(result.numpy()), expected, rtol=0, atol=0, equal_nan=True)
    assert 0 < expected.isnan().sum() < expected.numel()


@pytest.mark.parametrize(
    "name",
    [
        "loopwright.window_min_float32_3x3_2x2_8x8_2x8",
        "loopwright.window_largest_int8_3x3_2x2_8x8_2x8",
        "loopwright.window_sum_float32_3x1_2x2_8x8_2x8",
        "loopwright.window_sum_float32_3x3_2x2_8x6_2x8",
        "loopwright.window_sum_float32_99x99_1x1_8x8_2x8",
        "loopwright.window_sum_float32_3x3_2x2_8x8_2x8; import os",
    ],
)
def test_a_name_of_something_else_is_not_registered(name: str) -> None:
    assert not window_reduction.register(name)
