"""Loopwright's own rules: what they make of a function computes the same, and is a trace that anybody can replay."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import topi

from loopwright.codegen.build import compile_module
from loopwright.codegen.packed_weight import packs_weight
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.schedule import apply_trace, new_schedule, scheduled_module
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import rule_programs as programs
from tests.support.rule_programs import TARGET, check_program, sketches_of
from tests.support.tuner_programs import LLVM, matmul
from tuner.cost_model.model import CostModel
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.rules import CPU_RULES
from tuner.space.rules.contraction import Contraction
from tuner.space.rules.program import Program
from tuner.space.rules.rule import Machine, Refused
from tuner.space.rules.sketches import Sketches
from tuner.types import Origin

PROGRAMS = {
    "elementwise": [programs.silu(3, 5, 40), programs.silu(77), programs.silu(4, 33)],
    "row_reduce": [
        programs.softmax(5, 37),
        programs.softmax(2, 3, 64),
        programs.log_softmax(3, 100),
        programs.layer_norm(6, 50),
        programs.rms_norm(6, 50),
        programs.largest_magnitude(7, 40),
        programs.mean(7, 19),
        programs.average_pool(3, 5, 7),
    ],
    "register_tile": [
        programs.product(24, 32, 16),
        programs.product(29, 37, 11, lambda c: topi.nn.relu(c)),
        programs.linear(10, 48, 24),
        programs.batched(3, 12, 20, 8),
    ],
    "attention": [
        programs.attention(3, 12, 24, 16),
        programs.attention(2, 32, 32, 8, moved=True),
        programs.attention(2, 13, 24, 16),
    ],
    "column_sum": [programs.column_sum(30, 37), programs.column_sum(32, 48, lambda y: topi.nn.relu(y))],
    "gemv": [programs.product(1, 96, 40), programs.linear(1, 24, 32), programs.linear(1, 30, 16)],
}
CASES = [(rule, place) for rule, mods in PROGRAMS.items() for place in range(len(mods))]


@pytest.mark.parametrize(("rule", "place"), CASES)
def test_what_a_rule_makes_computes_the_same_and_can_be_replayed(rule: str, place: int) -> None:
    mod = PROGRAMS[rule][place]
    space = builtin_space(mod, TARGET, seed=1)
    [sketch] = sketches_of(space, RULE + rule)
    drawn = [space.replay(sketch, seed) for seed in range(1, 9)]
    seeds = [space.replay(seed, 1) for seed in space.seeds if rule in str(seed.insts)]
    made = {tvm_ffi.structural_hash(s.mod): s for s in (*seeds, *drawn) if s is not None}
    assert len(made) > 1
    for schedule in list(made.values())[:3]:
        again = apply_trace(mod, json.loads(trace_to_json(schedule.trace)))
        assert tvm_ffi.structural_equal(again.mod, schedule.mod)
        check_program(mod, schedule)


@pytest.mark.parametrize(("rule", "place"), CASES)
def test_every_seed_makes_a_program_and_leaves_no_annotation(rule: str, place: int) -> None:
    space = builtin_space(PROGRAMS[rule][place], TARGET, seed=1)
    for seed in space.seeds:
        schedule = space.replay(seed, 1)
        assert schedule is not None
        assert RULE not in schedule.mod.script()
        assert KNOB not in schedule.mod.script()
        assert all(decision is not None for decision in seed.decisions.values())


def test_a_function_is_left_as_it_was() -> None:
    """TVM changes statements in place that nobody else refers to."""
    mod = programs.linear(1, 24, 32)
    before = mod.script()
    space = builtin_space(mod, TARGET, seed=1)
    for trace in (*space.seeds, *space.traces):
        space.replay(trace, 1)
    assert mod.script() == before


@pytest.mark.parametrize("rule", [rule for rule in CPU_RULES if rule.name in PROGRAMS], ids=lambda rule: rule.name)
def test_a_rule_is_for_its_own_functions(rule: object) -> None:
    machine = Machine.of(TARGET)
    for name, mods in PROGRAMS.items():
        for mod in mods:
            program = Program.of(mod)
            assert program is not None
            applies = name == rule.name or (rule.name, name) == ("column_reduce", "column_sum")  # type: ignore[attr-defined]
            assert bool(rule.knobs(program, machine)) == applies  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "mod", [programs.product(29, 37, 11, lambda c: topi.nn.relu(c)), programs.linear(10, 48, 24), PROGRAMS["gemv"][0]]
)
def test_every_seed_packs_a_weight_once(mod: tvm.IRModule) -> None:
    mod = programs.with_weight(mod, 1)
    [rule] = [rule for rule in CPU_RULES if rule.name == "register_tile"]
    sketches = Sketches(mod, Machine.of(TARGET), [rule])
    assert sketches.seeds()
    for seed in sketches.seeds():
        schedule = new_schedule(mod)
        seed.apply_to_schedule(schedule, remove_postproc=True)
        assert sketches.finish(schedule)
        assert packs_weight(json.loads(trace_to_json(schedule.trace)))
    check_program(mod, schedule)


def test_only_the_weight_itself_is_packed_once() -> None:
    """The left operand may be a constant, too."""
    program = Program.of(programs.with_weight(PROGRAMS["register_tile"][0], 0))
    assert program is not None
    contraction = Contraction.required(program)
    assert not contraction.right_is_weight


def test_a_tile_with_more_vectors_than_registers_is_refused() -> None:
    mod = PROGRAMS["register_tile"][0]
    [rule] = [rule for rule in CPU_RULES if rule.name == "register_tile"]
    program, machine = Program.of(mod), Machine.of(TARGET)
    assert program is not None
    assert machine == Machine(lanes=8, registers=16, threads=2)
    values = {"rows": 14, "vectors": 4, "pack": 0, "outer": 0, "block": 0, "unroll": 1}
    with pytest.raises(Refused, match="registers"):
        rule.apply(tvm.s_tir.Schedule(mod), program, machine, values)


def test_products_of_bytes_use_the_instruction_for_them() -> None:
    """They are run where the processor has it; elsewhere they are only built."""
    mod = programs.byte_product(20, 40, 30)
    target = target_from({"kind": "llvm", "mcpu": "icelake-server", "mattr": ["-prefer-256-bit"], "num-cores": 2})
    space = builtin_space(mod, target, seed=1)
    schedules = [space.replay(seed, 1) for seed in space.seeds]
    assert len(schedules) == 8
    for schedule in schedules[:2]:
        assert schedule is not None
        program = scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), target)
        assert "vpdpbusd" in compile_module(program, target).inspect_source("asm")
        if "avx512_vnni" in Path("/proc/cpuinfo").read_text():
            check_program(mod, schedule, target)


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
