"""What a scheduled program computes does not depend on the number of threads, to the last bit."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import ScheduleError

from loopwright.codegen.arrays import Array, poison, random_array
from loopwright.codegen.functions import write_only
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import trace_to_json
from tests.support import convolution_programs as convolutions
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET
from tuner.space.builtin import builtin_space
from tuner.workload import tensor_args

SUMS = {
    "softmax": programs.softmax(9, 37),
    "layer_norm": programs.layer_norm(11, 50),
    "mean": programs.mean(7, 301),
    "column_sum": programs.column_sum(96, 37),
    "vector times matrix": programs.product(1, 1024, 256),
    "product": programs.product(29, 37, 51),
    "attention": programs.attention(3, 13, 24, 16),
    "convolution": convolutions.conv_nhwc(8, 6, 17, 3),
    "depthwise": convolutions.depthwise_nchw(42, 40, 3, 1),
}
"""Functions whose sums another order of terms would round otherwise."""


@pytest.fixture
def threads() -> Iterator[Any]:
    """Set the number of threads of this thread's pool; whatever it was is set again."""
    configure = tvm.get_global_func("runtime.config_threadpool")
    number = int(tvm.get_global_func("runtime.NumThreads")())
    yield lambda count: configure(1, count)
    configure(1, number)


def results(mod: tvm.IRModule, function: Any) -> list[Array]:
    """Return all arguments after a call."""
    rng = np.random.default_rng(3)
    outputs = write_only(mod["main"])
    infos = list(zip(tensor_args(mod["main"]), outputs, strict=True))
    arguments = [
        tvm.runtime.tensor(poison(info, "normal") if output else random_array(info, "normal", rng, 1))
        for info, output in infos
    ]
    function(*arguments)
    return [argument.numpy() for argument, output in zip(arguments, outputs, strict=True) if output]


@pytest.mark.parametrize("name", SUMS)
def test_results_have_the_same_bits_with_any_number_of_threads(name: str, threads: Any) -> None:
    """Of the first seeds of the rules; for some functions of a program of each sketch, with those of stock TVM."""
    func = SUMS[name]
    space = builtin_space(func, TARGET, seed=1)
    sketches = space.traces if name in ("column_sum", "product") else []
    schedules = [space.replay(trace, 1) for trace in (*space.seeds[:2], *sketches)]
    scheduled = [scheduled_module(func, json.loads(trace_to_json(each.trace)), TARGET) for each in schedules if each]
    assert any("T.parallel" in each.script() for each in scheduled), "no program uses several threads"
    for program in scheduled:
        built = compile_module(program, TARGET)["main"]
        bits = []
        for count in (1, 2, 3):
            threads(count)
            bits.append([result.tobytes() for result in results(func, built)])
        assert bits[0] == bits[1] == bits[2]


def test_no_schedule_divides_a_sum_among_threads() -> None:
    """TVM refuses it: partial sums are blocks of their own, and how many there are is part of the schedule."""
    schedule = Schedule(programs.column_sum(96, 37))
    block = schedule.get_sblock("x_red")
    [reduction] = [
        loop
        for loop, each in zip(schedule.get_loops(block), schedule.get(block).iter_vars, strict=True)
        if each.iter_type == each.CommReduce
    ]
    with pytest.raises(ScheduleError):
        schedule.parallel(reduction)
