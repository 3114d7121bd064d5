"""The rules for convolutions and poolings: what they make of a function computes the same, and can be replayed."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm
import tvm_ffi
from tvm.s_tir.schedule import Trace

from loopwright.codegen.packed_weight import packs_weight
from loopwright.codegen.schedule import apply_trace, new_schedule
from loopwright.codegen.serialization import trace_to_json
from tests.support import convolution_programs as programs
from tests.support.rule_programs import TARGET, check_program, product, softmax, with_weight
from tuner.cost_model.features import FEATURES, extract
from tuner.space.builtin import builtin_space
from tuner.space.rules import CPU_RULES
from tuner.space.rules.program import Program
from tuner.space.rules.rule import Machine, Refused
from tuner.space.rules.sketches import Sketches

rules = {rule.name: rule for rule in CPU_RULES}
PROGRAMS = {
    "conv_direct": [
        programs.conv_nhwc(9, 5, 16, 3),
        programs.conv_nhwc(13, 3, 24, 7, 2, batch=2),
        programs.conv_nhwc(10, 6, 20, 3, dilation=2),
        programs.conv_nhwc(7, 12, 8, 1),
        programs.conv_nhwc(8, 6, 17, 3),
        programs.conv_nhwc(8, 16, 1, 1),
        programs.conv_nchw(12, 4, 6, 3),
        programs.conv_nchw(15, 3, 8, 3, 2, batch=2),
        programs.conv_nchw(10, 8, 12, 3, groups=2),
        programs.conv_1d(26, 3, 5, 3),
        programs.transposed_nhwc(5, 6, 16, 2, 2, 1),
        programs.transposed_nhwc(7, 4, 8, 3, 1, 0),
    ],
    "column_reduce": [
        programs.depthwise_nhwc(11, 24, 3, 1, batch=2),
        programs.depthwise_nhwc(15, 20, 5, 2),
        programs.depthwise_nchw(14, 5, 3, 1),
        programs.pool(1, 13, 13, 16, window=3, stride=2, kind="max", layout="NHWC"),
        programs.pool(2, 3, 12, 12, window=3, stride=1, kind="avg", layout="NCHW"),
        programs.global_average_nhwc(7, 40),
        programs.column_sum(50, 36),
    ],
    "winograd": [
        programs.winograd_image(18, 21, 64),
        programs.winograd_result(18, 21, 64),
        programs.winograd_result(16, 16, 68, batch=2),
    ],
}
CASES = [(rule, place) for rule, mods in PROGRAMS.items() for place in range(len(mods))]


@pytest.mark.parametrize(("rule", "place"), CASES)
def test_what_a_rule_makes_of_a_convolution_computes_the_same(rule: str, place: int) -> None:
    mod = PROGRAMS[rule][place]
    sketches = Sketches(mod, Machine.of(TARGET), [rules[rule]])
    seeds = [_finished(sketches, mod, trace, 1) for trace in sketches.seeds()]
    assert None not in seeds
    drawn = [_finished(sketches, mod, sketches.traces[0], seed) for seed in range(1, 9)]
    other = next(schedule for schedule in drawn if schedule is not None)
    for schedule in (seeds[0], seeds[-1], other):
        again = apply_trace(mod, json.loads(trace_to_json(schedule.trace)))
        assert tvm_ffi.structural_equal(again.mod, schedule.mod)
    for schedule in (seeds[0], other):
        check_program(mod, schedule)


@pytest.mark.parametrize("mod", [programs.conv_nhwc(9, 5, 16, 3), programs.conv_nchw(12, 4, 6, 3)])
def test_every_seed_packs_a_constant_kernel_once(mod: tvm.IRModule) -> None:
    mod = with_weight(mod, 1)
    sketches = Sketches(mod, Machine.of(TARGET), [rules["conv_direct"]])
    for seed in sketches.seeds():
        schedule = _finished(sketches, mod, seed, 1)
        assert packs_weight(json.loads(trace_to_json(schedule.trace)))
    check_program(mod, schedule)


def test_a_call_has_features_where_a_line_of_a_tile_is_no_multiple_of_the_vectors() -> None:
    mod = with_weight(programs.conv_nhwc(10, 4, 8, 1, moved=True), 1)
    program, schedule = Program.of(mod), new_schedule(mod)
    assert program is not None
    values = {"rows": 5, "width": 4, "outer": 0, "lines": 1, "pack": 3}
    rules["conv_direct"].apply(schedule, program, Machine.of(TARGET), values)
    assert "LoopPartition" in {str(step.kind.name) for step in schedule.trace.insts}
    [features] = extract(builtin_space(mod, TARGET, seed=1).context, [schedule])
    assert features.shape[1] == FEATURES
    check_program(mod, schedule)


def _finished(sketches: Sketches, mod: tvm.IRModule, trace: Trace, seed: int) -> Any:
    """Return the schedule that a rule makes of a trace, with open choices drawn from a seed; None if it refuses."""
    schedule = new_schedule(mod, seed)
    trace.apply_to_schedule(schedule, remove_postproc=True)
    try:
        sketches.finish(schedule)
    except Refused:
        return None
    return schedule


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_rule_for_convolutions_is_for_nothing_else(rule: str) -> None:
    others = [mod for name, mods in PROGRAMS.items() if name != rule for mod in mods]
    for mod in (*others, product(24, 32, 16), softmax(5, 37)):
        program = Program.of(mod)
        assert program is not None
        assert not rules[rule].knobs(program, Machine.of(TARGET))
