"""DLight's schedules that are not the baseline are in the space of a GPU, and are programs like others."""

from __future__ import annotations

import functools
import json

import pytest
import tvm
from tvm import te, topi
from tvm.s_tir import Schedule
from tvm_ffi import structural_equal

from loopwright.codegen.program.defaults import default_schedule
from loopwright.codegen.program.schedule import replay
from loopwright.codegen.rule import RULE, applied_rule
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import with_assumed_attributes
from tests.support.cases import cases
from tests.support.gpu_rules import ARCH, TARGET, source_of, space_of
from tests.support.nvrtc import cubin
from tests.support.rule_programs import check_results, column_sum, function, product, sketches_of, softmax
from tests.support.serial_kernels import serial
from tuner.space.builtin import builtin_space, stock_space

NAME = RULE + "dlight"
SCALAR_MATMUL, GEMV, REDUCTION, GENERAL_REDUCTION, RMS_NORM, TRANSPOSE, FALLBACK = range(7)


def half_product(rows: int, columns: int, depth: int) -> tvm.IRModule:
    a, b = te.placeholder((rows, depth), "float16", name="A"), te.placeholder((depth, columns), "float16", name="B")
    return function(a, b, topi.nn.matmul(a, b, out_dtype="float32"))


def linear(rows: int, columns: int, depth: int) -> tvm.IRModule:
    a, b = te.placeholder((rows, depth), name="A"), te.placeholder((columns, depth), name="B")
    return function(a, b, topi.nn.dense(a, b))


def transposed(rows: int, columns: int) -> tvm.IRModule:
    x = te.placeholder((rows, columns), name="X")
    return function(x, topi.transpose(x))


def rms_norm(rows: int, columns: int) -> tvm.IRModule:
    x, scale = te.placeholder((rows, columns), name="X"), te.placeholder((columns,), name="scale")
    return function(x, scale, topi.nn.rms_norm(x, scale, [1], 1e-5))


PROGRAMS = {
    "fp16 product": (half_product(80, 80, 80), [SCALAR_MATMUL, FALLBACK]),
    "product": (product(64, 64, 64), [FALLBACK]),
    "linear": (linear(1, 64, 256), [REDUCTION, FALLBACK]),
    "transposed": (transposed(48, 40), [TRANSPOSE]),
    "RMS norm": (rms_norm(8, 64), [GENERAL_REDUCTION, FALLBACK]),
    "softmax": (softmax(8, 64), [FALLBACK]),
    "column sum": (column_sum(64, 48), [FALLBACK]),
}


@functools.cache
def made(name: str) -> dict[int, Schedule]:
    """Return the programs that the space has of DLight, by the rule."""
    space = space_of(PROGRAMS[name][0])
    seeds = [seed for seed in space.seeds if any(NAME in str(inst.attrs) for inst in seed.insts)]
    schedules = [schedule for schedule in (space.replay(seed, 1) for seed in seeds) if schedule is not None]
    rules = [applied_rule(json.loads(trace_to_json(schedule.trace))) for schedule in schedules]
    return {rule.knobs["schedule"]: schedule for rule, schedule in zip(rules, schedules, strict=True) if rule}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_space_has_what_other_rules_of_dlight_make_of_a_function(name: str) -> None:
    mod, rules = PROGRAMS[name]
    schedules = made(name)
    assert list(schedules) == rules
    bodies = [default_schedule(mod, TARGET)["main"].body, *(each.mod["main"].body for each in schedules.values())]
    assert not any(structural_equal(one, other) for place, one in enumerate(bodies) for other in bodies[:place])


@pytest.mark.parametrize(("name", "every"), cases(PROGRAMS, "fp16 product", "transposed"))
def test_what_they_make_computes_the_same_and_replays(name: str, every: bool) -> None:
    mod, target = PROGRAMS[name][0], with_assumed_attributes(TARGET)
    for schedule in made(name).values():
        check_results(mod, serial(schedule.mod))
        assert structural_equal(replay(mod, json.loads(trace_to_json(schedule.trace)), target).mod, schedule.mod)
        assert not every or cubin(source_of(mod, schedule), ARCH).startswith(b"\x7fELF")


def test_what_a_rule_of_dlight_makes_becomes_machine_code() -> None:
    source = source_of(PROGRAMS["RMS norm"][0], made("RMS norm")[GENERAL_REDUCTION])
    assert cubin(source, ARCH).startswith(b"\x7fELF")


def test_functions_whose_only_schedule_of_dlight_is_the_baseline_and_the_stock_space_have_no_such_sketch() -> None:
    x = te.placeholder((8, 4), name="X")
    assert not sketches_of(builtin_space(function(x, topi.tanh(x)), TARGET, 1), NAME)
    assert not sketches_of(stock_space(PROGRAMS["fp16 product"][0], TARGET, 1), NAME)
