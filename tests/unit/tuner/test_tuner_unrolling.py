"""Calls of elementary functions in the loops that TVM unrolls, and programs with too many of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import tvm
import tvm_ffi
from tvm.ir.instrument import pass_instrument
from tvm.s_tir import Schedule

from loopwright.codegen.program.build import compile_module
from tests.support.rule_programs import TARGET, softmax
from tuner.space import design_space
from tuner.space.builtin import stock_space
from tuner.space.design_space import DesignSpace
from tuner.space.unrolling import MOST_CALLS, unrolled_calls


@pass_instrument
class _AfterUnrolling:
    """Counts exponentials once loops are unrolled."""

    def __init__(self) -> None:
        self.found = 0

    def run_after_pass(self, mod: tvm.IRModule, info: tvm.ir.transform.PassInfo) -> None:
        if str(info.name).endswith("UnrollLoop"):
            calls: list[tvm.ir.Call] = []
            for func in mod.functions.values():
                tvm_ffi.structural_walk(func.body, (tvm.ir.Call, calls.append), order="pre")
            self.found = sum(getattr(call.op, "name", "") == "tirx.exp" for call in calls)


def drawn(space: DesignSpace, count: int) -> Iterator[Schedule]:
    for seed in range(1, count + 1):
        schedule = space.replay(space.traces[seed % len(space.traces)], seed)
        if schedule is not None:
            yield schedule


def test_calls_are_counted_as_tvm_unrolls_them() -> None:
    counts = set()
    for schedule in drawn(stock_space(softmax(3, 20), TARGET, 3), 20):
        counted, unrolled = unrolled_calls(schedule.mod), _AfterUnrolling()
        if counted > 2:
            with tvm.transform.PassContext(instruments=[unrolled]):
                compile_module(schedule.mod, TARGET)
            outside = unrolled.found - counted
            assert 0 <= outside <= 2, schedule.mod.script()
            counts.add(counted)
    assert len(counts) > 2


def test_a_program_with_too_many_calls_in_unrolled_loops_is_not_in_the_space(monkeypatch: pytest.MonkeyPatch) -> None:
    space = stock_space(softmax(8, 300), TARGET, 7)
    kept = [unrolled_calls(schedule.mod) for schedule in drawn(space, 18)]
    monkeypatch.setattr(design_space, "MOST_CALLS", 1 << 20)
    every = [unrolled_calls(schedule.mod) for schedule in drawn(space, 18)]
    assert max(every) == 2 * 300
    assert kept == [count for count in every if count <= MOST_CALLS]
