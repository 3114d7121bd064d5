"""Loopwright's own rules: what they make of a function computes the same, and is a trace that anybody can replay."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax, topi
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.cpu import tile_transpose
from loopwright.codegen.kinds import Origin, Values
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import apply_trace, new_schedule, scheduled_module
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.rules import CPU_RULES
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.sketches import Sketches
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.packed_weight import packs_weight
from tests.support import convolution_programs as convolutions
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET, check_program
from tests.support.tuner_programs import LLVM, matmul
from tuner.cost_model.features import FEATURES, extract
from tuner.cost_model.model import CostModel
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.space.builtin import builtin_space, stock_space
from tuner.workload import tensor_args

MACHINE = MachineLimits.of(TARGET)
RULES = {rule.name: rule for rule in CPU_RULES}
COLUMN_SUMS = [programs.column_sum(32, 48, lambda y: topi.nn.relu(y)), convolutions.column_sum(50, 36)]
"""Their columns are a whole number of vectors: `column_reduce` is for them, too."""
BYTE_DEPTHWISE = convolutions.byte_depthwise(9, 24, 3, 2)
PROGRAMS = {
    "elementwise": [programs.two_maps(4, 37), programs.silu(3, 5, 40), programs.silu(77), programs.silu(4, 33)],
    "row_reduce": [
        programs.summed_norm(2, 3, 44),
        programs.softmax(5, 37),
        programs.log_softmax(3, 100),
        programs.layer_norm(6, 50),
        programs.quantised_layer_norm(5, 44),
        programs.ranges(6, 75),
        programs.largest_magnitude(7, 40),
        programs.largest(5, 43),
        programs.mean(7, 19),
        programs.log_sum_exp(1, (6, 45)),
    ],
    "column_stages": [
        programs.lowered(lambda x: relax.op.nn.softmax(x, 1), (2, 5, 3, 7)),
        programs.log_sum_exp(0, (9, 48)),
        programs.lowered(lambda x: relax.op.nn.log_softmax(x, 1), (3, 6, 11)),
    ],
    "register_tile": [
        programs.product(24, 32, 16),
        programs.product(29, 37, 11, lambda c: topi.nn.relu(c)),
        programs.linear(10, 48, 24),
        programs.batched(3, 12, 20, 8),
    ],
    "maddwd": [
        programs.byte_product(24, 32, 16),
        programs.quantised_linear(13, 37, 11),
        programs.byte_product(5, 24, 30, ("int8", "uint8"), batch=3),
    ],
    "block_scaled": [
        programs.block_scaled(1, 48, 64, 32),
        programs.looked_up(2, 32, 64, 16),
        programs.block_scaled(6, 32, 48, 16, lambda c: topi.nn.relu(c)),
    ],
    "block_dots": [
        programs.block_dots(5, 64, 64, 32),
        programs.block_dots(1, 32, 48, 16, lambda c: topi.nn.relu(c), bits=8),
    ],
    "attention": [
        programs.attention(2, 3, 96, 16, moved=True, cached=True, blocks=6),
        programs.padded_attention(3, 21, 29, 24, masked=True),
        programs.attention(2, 13, 24, 16),
        programs.padded_attention(None, 43, 20, 8),
        programs.attention(3, 5, 32, 16, moved=True, cached=True),
        programs.attention(2, 32, 32, 8, moved=True),
        programs.attention(2, 1, 48, 8, moved=True, cached=True),
        programs.attention(1, 1, 32, 16, moved=True, cached=True),
        programs.attention(2, 1, 32, 16, moved=True),
        programs.attention(2, 11, 24, 16, rounded=True),
        programs.attention(2, 9, 64, 24, moved=True, blocks=2),
    ],
    "column_sum": [programs.column_sum(30, 37), COLUMN_SUMS[0]],
    "gemv": [programs.product(1, 96, 40), programs.by_columns(1, 36, 48, "bfloat16"), programs.linear(1, 30, 16)],
    "conv_direct": [
        convolutions.scaled_nhwc(6, 13, 24),
        convolutions.conv_nhwc(13, 3, 24, 7, 2, batch=2),
        convolutions.conv_nhwc(8, 6, 17, 3),
        convolutions.conv_nchw(15, 3, 8, 3, 2, batch=2),
        convolutions.conv_nchw(10, 8, 12, 3, groups=2),
        convolutions.transposed_nhwc(5, 6, 16, 2, 2, 1, lacking=1),
    ],
    "conv_maddwd": [
        convolutions.byte_conv(17, 6, 21, 3, turned=True),
        convolutions.byte_conv(9, 3, 40, 3, 2, batch=2, dtypes=("int8", "int8"), zero_point=5),
        convolutions.byte_conv(7, 10, 16, 1, dtypes=("uint8", "uint8"), scaled=False, turned=True),
    ],
    "transpose": [programs.turned(32, 3, 24), programs.turned(3, 5, 20, pads=(0, 0, 0, 1, 1, 2, 1, 0))],
    "column_reduce": [
        convolutions.pooled_depthwise_nhwc(15, 20, 5, 2),
        convolutions.depthwise_nhwc(15, 20, 5, 2),
        convolutions.pool(1, 13, 13, 16, window=3, stride=2, kind="max", layout="NHWC"),
    ],
    "window_reduce": [
        convolutions.depthwise_nchw(14, 5, 3, 2),
        programs.lowered(lambda x: relax.op.nn.max_pool2d(x, (3, 3), (2, 2), (1, 1, 1, 1)), (1, 3, 13, 19)),
        convolutions.depthwise_nchw(13, 3, 5, 1),
        convolutions.pool(1, 2, 41, 41, window=3, stride=2, kind="max", layout="NCHW", dtype="int8"),
    ],
    "winograd": [convolutions.winograd_image(18, 21, 64), convolutions.winograd_result(16, 16, 68, batch=2)],
    "recurrent": [programs.recurrent("gru", 8, 37, resets_state=True), programs.recurrent("lstm", 2, 160)],
}
"""Each branch of a rule is taken by one of its programs here, and odd extents and what follows are among them."""
MORE = {
    "row_reduce": [
        programs.lowered(lambda x: relax.op.max(x, -1, keepdims=True), (2, 3, 40)),
        programs.lowered(lambda x: relax.op.sum(relax.op.abs(x), -1), (3, 2, 36)),
        programs.softmax(2, 3, 64),
        programs.rms_norm(6, 50),
        programs.summed_norm(6, 50, kind="rms"),
        programs.average_pool(3, 5, 7),
    ],
    "attention": [programs.attention(3, 12, 24, 16)],
    "gemv": [programs.linear(1, 24, 32)],
    "conv_direct": [
        convolutions.conv_nhwc(9, 5, 16, 3),
        convolutions.conv_nhwc(10, 6, 20, 3, dilation=2),
        convolutions.conv_nhwc(7, 12, 8, 1),
        convolutions.conv_nhwc(8, 16, 1, 1),
        convolutions.conv_nchw(12, 4, 6, 3),
        convolutions.conv_1d(26, 3, 5, 3),
        convolutions.conv_1d(21, 6, 24, 5, 2, activated=True),
        convolutions.conv_3d(5, 3, 16, 3, batch=2),
        convolutions.transposed_nhwc(7, 4, 8, 3, 1, 0),
    ],
    "conv_maddwd": [
        convolutions.byte_conv(10, 6, 24, 3, turned=True),
        convolutions.byte_conv(19, 5, 3, 3, scaled=False),
        convolutions.byte_conv(6, 7, 1, 1, zero_point=9),
    ],
    "column_reduce": [
        convolutions.pooled_depthwise_nhwc(16, 24, 3, 1),
        convolutions.depthwise_nhwc(11, 24, 3, 1, batch=2),
        convolutions.global_average_nhwc(7, 40),
        BYTE_DEPTHWISE,
    ],
    "window_reduce": [
        convolutions.pool(2, 3, 12, 12, window=3, stride=1, kind="avg", layout="NCHW"),
        convolutions.pool(1, 2, 29, 29, window=3, stride=3, kind="max", layout="NCHW"),
        programs.lowered(lambda x: relax.op.nn.max_pool1d(x, (3,), (2,), (1, 1)), (2, 3, 37)),
        programs.lowered(lambda x: relax.op.nn.avg_pool2d(x, (2, 2), (2, 2), count_include_pad=False), (1, 3, 15, 22)),
    ],
    "transpose": [programs.turned(16, 2, 32), programs.turned(5, 6, 9)],
    "winograd": [convolutions.winograd_result(18, 21, 64)],
    "recurrent": [programs.recurrent("gru", 1, 50, is_backward=True, has_lengths=True)],
}
CASES = [
    pytest.param("column_reduce", COLUMN_SUMS[1], id="column_reduce of a sum"),
    pytest.param("column_reduce", BYTE_DEPTHWISE, id="column_reduce of bytes"),
    *(
        pytest.param(rule, mod, marks=pytest.mark.whole if place >= kept else (), id=f"{rule} {place}{sign}")
        for table, kept, sign in ((PROGRAMS, 2, ""), (MORE, 0, "+"))
        for rule, mods in table.items()
        for place, mod in enumerate(mods)
    ),
]


def finished(sketches: Sketches, mod: tvm.IRModule, trace: Trace, seed: int = 1) -> Any:
    """Return the schedule that a rule makes of a trace, with open choices drawn from a seed; None if it refuses."""
    schedule = new_schedule(mod, seed)
    trace.apply_to_schedule(schedule, remove_postproc=True)
    try:
        sketches.finish(schedule)
    except RuleRefused:
        return None
    return schedule


@pytest.mark.parametrize(("rule", "mod"), CASES)
def test_what_a_rule_makes_computes_the_same_and_can_be_replayed(rule: str, mod: tvm.IRModule) -> None:
    sketches = Sketches(mod, MACHINE, [RULES[rule]])
    seeds = [finished(sketches, mod, trace) for trace in sketches.seeds()]
    assert None not in seeds
    drawn = next(filter(None, (finished(sketches, mod, sketches.traces[0], seed) for seed in range(1, 9))))
    assert len({tvm_ffi.structural_hash(schedule.mod) for schedule in (*seeds, drawn)}) > 1
    assert not any(text in seed.mod.script() for seed in seeds for text in (RULE, KNOB))
    for schedule in (seeds[0], seeds[-1], drawn):
        again = apply_trace(mod, json.loads(trace_to_json(schedule.trace)))
        assert tvm_ffi.structural_equal(again.mod, schedule.mod)
        check_program(mod, schedule)


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_rule_is_for_its_own_functions(rule: str) -> None:
    for table in (PROGRAMS, MORE):
        for name, mods in table.items():
            for mod in mods:
                program = AnalysedProgram.of(mod)
                assert program is not None
                is_for_both = (rule == "elementwise" and name in ("transpose", "winograd")) or (
                    rule == "column_reduce" and mod in COLUMN_SUMS
                )
                applies = program.admits(rule) and bool(RULES[rule].knobs(program, MACHINE))
                assert applies == (name == rule or is_for_both)


def test_the_space_has_the_sketches_of_the_rules_and_leaves_a_function_as_it_was() -> None:
    """TVM changes statements in place that nobody else refers to."""
    mod = programs.linear(1, 24, 32)
    before = mod.script()
    space = builtin_space(mod, TARGET, seed=1)
    for trace in (*space.seeds, *space.traces):
        space.replay(trace, 1)
    assert mod.script() == before
    assert programs.sketches_of(space, f"{RULE}gemv")
    assert all(space.replay(seed, 1) for seed in space.seeds)
    assert all(decision is not None for seed in space.seeds for decision in seed.decisions.values())


@pytest.mark.parametrize(
    ("rule", "mod"),
    [
        ("register_tile", programs.product(29, 37, 11, lambda c: topi.nn.relu(c))),
        ("register_tile", programs.linear(10, 48, 24)),
        ("register_tile", programs.product(1, 96, 40)),
        ("maddwd", programs.quantised_linear(13, 37, 11)),
        ("maddwd", programs.byte_product(1, 64, 20, ("int8", "int8"))),
        ("conv_direct", convolutions.conv_nhwc(9, 5, 16, 3)),
        ("conv_direct", convolutions.conv_nchw(12, 4, 6, 3)),
        ("conv_maddwd", convolutions.byte_conv(6, 4, 16, 3)),
    ],
)
def test_every_seed_packs_a_weight_once(rule: str, mod: tvm.IRModule) -> None:
    mod = programs.with_weight(mod, 1)
    sketches = Sketches(mod, MACHINE, [RULES[rule]])
    schedules = [finished(sketches, mod, seed) for seed in sketches.seeds()]
    assert schedules
    assert all(packs_weight(json.loads(trace_to_json(schedule.trace))) for schedule in schedules)
    check_program(mod, schedules[-1])


@pytest.mark.parametrize(
    "mod",
    [
        convolutions.conv_1d(19, 5, 24, 3, activated=True),
        convolutions.conv_1d(30, 3, 16, 4, 3),
        convolutions.conv_nchw(11, 8, 32, 3, 2, groups=2),
        convolutions.conv_3d(5, 2, 16, 3),
    ],
)
def test_vectors_run_along_the_channels_of_images_with_the_channels_first(mod: tvm.IRModule) -> None:
    mod = programs.with_weight(mod, 1)
    program, sketches = AnalysedProgram.of(mod), Sketches(mod, MACHINE, [RULES["conv_direct"]])
    assert program is not None
    values = next(each for each in RULES["conv_direct"].seeds(program, MACHINE) if each["lanes"] == 1)
    schedule = new_schedule(mod)
    RULES["conv_direct"].apply(schedule, program, MACHINE, values)
    check_program(mod, schedule)
    with pytest.raises(RuleRefused, match="vectors along this axis"):
        RULES["conv_direct"].apply(new_schedule(mod), program, MACHINE, dict(values) | {"width": 7})
    assert None not in [finished(sketches, mod, seed) for seed in sketches.seeds()]


def test_convolutions_of_halves_are_tiled_as_those_of_float32() -> None:
    mod = programs.with_weight(convolutions.conv_nhwc(9, 5, 24, 3, 2, dtype="float16"), 1)
    sketches = Sketches(mod, MACHINE, [RULES["conv_direct"]])
    check_program(mod, finished(sketches, mod, sketches.seeds()[0]))


def test_rows_may_be_rounded_to_halves() -> None:
    mod = programs.lowered(lambda x: relax.op.astype(relax.op.nn.softmax(x), "float16"), (6, 50))
    sketches = Sketches(mod, MACHINE, [RULES["row_reduce"]])
    check_program(mod, finished(sketches, mod, sketches.seeds()[0]))


def test_a_call_has_features_where_a_line_of_a_tile_is_no_multiple_of_the_vectors() -> None:
    mod = programs.with_weight(convolutions.conv_nhwc(10, 4, 8, 1, moved=True), 1)
    program, schedule = AnalysedProgram.of(mod), new_schedule(mod)
    assert program is not None
    values = {"rows": 5, "width": 4, "lanes": 1, "outer": 0, "lines": 1, "pack": 3, "image": 0}
    RULES["conv_direct"].apply(schedule, program, MACHINE, values)
    assert "LoopPartition" in {str(step.kind.name) for step in schedule.trace.insts}
    [features] = extract(builtin_space(mod, TARGET, seed=1).context, [schedule])
    assert features.shape[1] == FEATURES
    check_program(mod, schedule)


def test_attention_skips_blocks_of_keys_that_are_hidden_in_each_stage() -> None:
    mod = programs.attention(2, 3, 96, 16, moved=True, cached=True, blocks=6)
    space = builtin_space(mod, TARGET, 1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    program = scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), TARGET)
    # Products, masks, maxima, exponentials and sums.
    assert len(re.findall(r"if seen\[", program.script())) == 6


@pytest.mark.parametrize("cached", [True, False], ids=["heads first", "heads behind rows"])
def test_attention_turns_whole_vectors_of_keys_in_registers(cached: bool) -> None:
    space = builtin_space(programs.attention(2, 13, 24, 16, moved=True, cached=cached), TARGET, 1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    names = {str(step.attrs[0]) for step in schedule.trace.insts if str(step.kind.name) == "Tensorize"}
    assert tile_transpose.intrinsic(MACHINE.lanes, 0 if cached else 1) in names


def test_only_the_weight_itself_is_packed_once() -> None:
    """The left operand may be a constant, too."""
    program = AnalysedProgram.of(programs.with_weight(PROGRAMS["register_tile"][0], 0))
    assert program is not None
    contraction = Contraction.required(program)
    assert not contraction.right_is_weight


def test_a_tile_with_more_vectors_than_registers_is_refused() -> None:
    mod = PROGRAMS["register_tile"][0]
    program = AnalysedProgram.of(mod)
    assert program is not None
    assert MachineLimits(lanes=8, registers=16, threads=2, has_maddwd=True) == MACHINE
    values = {"rows": 14, "vectors": 4, "pack": 0, "outer": 0, "block": 0, "unroll": 1}
    with pytest.raises(RuleRefused, match="registers"):
        RULES["register_tile"].apply(Schedule(mod), program, MACHINE, values)


@pytest.mark.parametrize(
    ("cpu", "attributes", "vector", "mod"),
    [
        ("icelake-server", ["-prefer-256-bit"], "zmm", programs.byte_product(20, 40, 30)),
        ("icelake-server", [], "ymm", programs.byte_product(20, 40, 30)),
        ("alderlake", [], "ymm", programs.byte_product(20, 40, 30)),
        ("icelake-server", ["-prefer-256-bit"], "zmm", convolutions.byte_conv(9, 8, 32, 3, 2, batch=2, turned=True)),
        ("icelake-server", ["-prefer-256-bit"], "ymm", convolutions.byte_conv(6, 7, 24, 1, scaled=False)),
    ],
    ids=["512 bits", "256 bits", "AVX-VNNI", "a convolution", "a convolution with a missing channel"],
)
def test_sums_of_bytes_use_the_instruction_for_them(
    cpu: str, attributes: list[str], vector: str, mod: tvm.IRModule
) -> None:
    """They are run where the processor has it; elsewhere they are only built."""
    target = target_from({"kind": "llvm", "mcpu": cpu, "mattr": attributes, "num-cores": 2})
    space = builtin_space(mod, target, seed=1)
    assert len(space.seeds) > 3
    for seed in space.seeds[:2]:
        schedule = space.replay(seed, 1)
        assert schedule is not None
        program = scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), target)
        assert re.search(rf"vpdpbusd\s.*%{vector}", compile_module(program, target).inspect_source("asm"))
        if cpu == "icelake-server" and "avx512_vnni" in Path("/proc/cpuinfo").read_text():
            check_program(mod, schedule, target)


@pytest.mark.parametrize("rows", [1, 6])
def test_numbers_of_4_bits_are_looked_up_by_one_rule_where_the_processor_can(rows: int) -> None:
    """So that programs for one row and for many pack the weight alike."""
    mod = programs.looked_up(rows, 48, 96, 32)
    target = target_from({"kind": "llvm", "mcpu": "icelake-server", "mattr": ["-prefer-256-bit"], "num-cores": 2})
    space = builtin_space(mod, target, seed=1)
    assert not programs.sketches_of(space, f"{RULE}block_scaled")
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    program = scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), target)
    assert re.search(r"vperm(ps|d)\s.*%zmm", compile_module(program, target).inspect_source("asm"))
    if "avx512_vnni" in Path("/proc/cpuinfo").read_text():
        check_program(mod, schedule, target)


@pytest.mark.parametrize("operator", [relax.op.argmax, relax.op.argmin], ids=["largest", "smallest"])
def test_the_place_of_nan_is_found_in_any_order(operator: Any) -> None:
    mod = programs.lowered(lambda x: operator(x, 1), (2, 512))
    assert tensor_args(mod["main"])[0].values is Values.ANY
    space = builtin_space(mod, TARGET, 1)
    schedules = list(filter(None, (space.replay(trace, seed) for trace in space.traces for seed in (1, 2))))
    assert len({tvm_ffi.structural_hash(schedule.mod) for schedule in schedules}) > 1
    for schedule in schedules:
        check_program(mod, schedule)


def test_where_tvms_rules_raise_the_others_remain() -> None:
    mod = programs.attention(4, 64, 64, 32, in_order=True)
    (trace,) = stock_space(mod, TARGET, 1).traces
    assert not trace.insts
    space = builtin_space(mod, TARGET, 1)
    schedule = space.replay(space.seeds[0], 1)
    assert schedule is not None
    check_program(mod, schedule)
    assert stock_space(mod, TARGET, 1).replay(trace, 1) is not None


def test_the_stock_space_has_none_of_the_rules() -> None:
    mod = module_from_json(matmul().module_json)
    assert not stock_space(mod, target_from(LLVM), 1).seeds
    assert len(stock_space(mod, target_from(LLVM), 1).traces) < len(builtin_space(mod, target_from(LLVM), 1).traces)


def test_a_search_begins_with_the_seeds() -> None:
    space = builtin_space(PROGRAMS["register_tile"][0], TARGET, seed=1)
    first = EvolutionarySearch("w", space, CostModel(0), np.random.default_rng(0)).propose(8)
    assert [candidate.origin for candidate in first].count(Origin.SEED) == 7
    assert len({candidate.hash for candidate in first}) == 8
