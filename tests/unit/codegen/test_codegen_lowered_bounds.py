"""Programs are built only if what they were lowered to is proven to stay within the memory of its buffers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
import tvm
from tvm.s_tir import Schedule
from tvm.target import Target

from loopwright.codegen.program.bounds import unproven
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.lowered_bounds import PROVEN
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import with_assumed_attributes
from loopwright.codegen.weights.packed_weight import PACK
from loopwright.codegen.weights.prepacking import split
from tests.support import convolution_programs, gpu_programs, gpu_rules
from tests.support.rule_programs import TARGET, product, softmax
from tuner.space.builtin import builtin_space

LLVM = Target("llvm")


def copied(schedule: Schedule) -> Any:
    """Copy a factor of a product, eight columns at a time, and return the block that copies."""
    [block] = schedule.get_child_blocks(schedule.get_sblock("root"))
    tile, *_ = schedule.split(schedule.get_loops(block)[1], [8, 8])
    copy = schedule.cache_read(block, 1, "global")
    schedule.compute_at(copy, tile)
    return copy


WRONG = {
    "rows that overlap": [[0, 0, -1034, 1], [0, 1, 1024, 256]],
    "rows from high to low": [[0, 1, -16, -1], [0, 0, 1 << 20, 8]],
}
"""Values of `buffer_dim_align`, which TVM believes: a buffer, an axis, a factor and an offset of its stride."""


def built(program: tvm.tirx.PrimFunc) -> tvm.runtime.Module:
    return compile_module(tvm.IRModule({"main": program.with_attr(PROVEN, True)}), LLVM)


@pytest.mark.parametrize("align", WRONG.values(), ids=WRONG)
def test_a_schedule_whose_buffers_take_less_memory_than_it_uses_is_not_built(align: list[list[int]]) -> None:
    workload = product(64, 64, 64)
    schedule = Schedule(workload)
    copied(schedule)
    instructions, decisions = json.loads(trace_to_json(schedule.trace))
    [copy] = next(outputs for kind, _, _, outputs in instructions if kind == "CacheRead")
    instructions.append(["Annotate", [copy, align], ["buffer_dim_align"], []])
    program = scheduled_module(workload, [instructions, decisions], LLVM)
    with pytest.raises(ValueError, match=r"not proven to stay inside of its buffers: .* has 0 elements"):
        compile_module(program, LLVM)


def test_a_schedule_with_room_between_rows_is_built_and_right() -> None:
    workload = product(64, 64, 64)
    schedule = Schedule(workload)
    schedule.storage_align(copied(schedule), 0, 0, 16, 4)
    a, b = (np.random.default_rng(seed).standard_normal((64, 64), "float32") for seed in (1, 2))
    result = tvm.runtime.tensor(np.zeros((64, 64), "float32"))
    built(schedule.mod["main"])["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), result)
    np.testing.assert_allclose(result.numpy(), a @ b, rtol=1e-4, atol=1e-4)


PROGRAM = """
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "int32"), C: T.Buffer((4,), "int32")):
    S = T.sblock_alloc_buffer((1000000,), "int32")
    for i in range(4):
        with T.sblock("copy"):
            v = T.axis.spatial(4, i)
            S[v] = A[v]
    for i in range(4):
        with T.sblock("use"):
            v = T.axis.spatial(4, i)
            {use}
"""
USES = {
    "one further": "C[v + 1] = S[v]",
    "data": "C[v] = S[A[v]]",
    "a region that is narrower than what is read": """T.reads(A[v], S[0:1])
            T.sblock_attr({"explicit_read_region": [1]})
            C[v] = S[T.max(T.min(A[v], 999999), 0)]""",
    "data whose limits count on no overflow": "C[v] = S[T.max(T.min(15 - A[v] * A[v], 15), 0)]",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_program_with_another_access_than_its_workload_is_not_built(use: str) -> None:
    right, wrong = (tvm.script.from_source(PROGRAM.replace("{use}", each)) for each in ("C[v] = S[v]", use))
    assert unproven(right) == []
    built(right)
    with pytest.raises(ValueError, match="not proven to stay inside of its buffers"):
        built(wrong)


def test_a_program_is_as_unproven_as_its_workload_may_be() -> None:
    wrong = tvm.script.from_source(PROGRAM.replace("{use}", USES["data"]))
    program = scheduled_module(tvm.IRModule({"main": wrong}), [[], []], LLVM)
    assert PROVEN not in program["main"].attrs
    compile_module(program, LLVM)


def drawn(mod: tvm.IRModule, target: Target, draws: int) -> list[tvm.IRModule]:
    space = builtin_space(mod, target, 1, experimental=True)
    picked = [space.traces[seed * len(space.traces) // draws] for seed in range(draws)]
    schedules = [space.replay(trace, seed) for seed, trace in enumerate([*picked, *space.seeds[:1]], 1)]
    traces = [json.loads(trace_to_json(schedule.trace)) for schedule in schedules if schedule is not None]
    return [scheduled_module(mod, trace, with_assumed_attributes(target)) for trace in traces]


@pytest.mark.parametrize(
    ("mod", "draws"),
    [
        (product(29, 37, 11), 3),
        (softmax(5, 37), 3),
        (convolution_programs.conv_nhwc(13, 3, 24, 7, 2, batch=2), 4),
        pytest.param(convolution_programs.conv_nchw(15, 3, 8, 3, 2, batch=2), 20, marks=pytest.mark.whole),
        pytest.param(convolution_programs.winograd_image(18, 21, 64), 5, marks=pytest.mark.whole),
    ],
)
def test_what_the_space_draws_is_proven(mod: tvm.IRModule, draws: int) -> None:
    programs = drawn(mod, TARGET, draws)
    assert programs
    for program in programs:
        compile_module(program, TARGET, argument_checks=False)


@pytest.mark.whole
@pytest.mark.parametrize("name", gpu_programs.PROGRAMS)
def test_what_the_space_draws_for_a_gpu_is_proven(name: str) -> None:
    mod = tvm.IRModule({"main": gpu_programs.PROGRAMS[name]()})
    programs = drawn(mod, gpu_rules.TARGET, 8)
    assert programs
    for program in programs:
        compile_module(program, with_assumed_attributes(gpu_rules.TARGET), argument_checks=False)


def test_what_packs_a_weight_is_proven_too() -> None:
    for program in drawn(convolution_programs.conv_nhwc(8, 6, 17, 3), TARGET, 4):
        parts, packed = split(program)
        if packed is not None:
            assert all(parts[name].attrs[PROVEN] for name in ("main", PACK))
            return
    pytest.fail("no program packs its weight")
