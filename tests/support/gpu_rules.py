"""What Loopwright's rules for GPUs make of a function, and its CUDA source."""

from __future__ import annotations

import functools
import json
import re

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from, with_assumed_attributes
from tests.support.nvrtc import cubin
from tests.support.rule_programs import check_results, sketches_of
from tests.support.serial_kernels import serial
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace
from workers.device import cuda

ARCH = "sm_90"
TARGET = target_from({"kind": "cuda", "arch": ARCH})
_HOST = target_from({"kind": "llvm", "mcpu": "x86-64-v2", "num-cores": 2})
"""Without F16C: for x86-64-v3, LLVM makes wrong code of some loops over float16 that are unrolled as for a GPU."""


@functools.cache
def programs_of(mod: tvm.IRModule, rule: str, draws: int, *, every: bool = True) -> list[Schedule]:
    """Return the programs of a rule's seeds, or of the first and the last only, and of draws; the space accepts all."""
    space = space_of(mod)
    [sketch] = sketches_of(space, RULE + rule)
    seeds = [seed for seed in space.seeds if any(RULE + rule in str(inst.attrs) for inst in seed.insts)]
    assert len(seeds) > 1
    made = [space.replay(seed, 1) for seed in (seeds if every else (seeds[0], seeds[-1]))]
    made += [space.replay(sketch, seed) for seed in range(1, draws + 1)]
    accepted = [schedule for schedule in made if schedule is not None]
    assert len(accepted) == len(made), "the space refuses programs of the rule"
    return accepted


@functools.cache
def space_of(mod: tvm.IRModule) -> DesignSpace:
    return builtin_space(mod, TARGET, 1, experimental=True)


def check_rule(mod: tvm.IRModule, rule: str, every: bool) -> None:
    """Compare programs of a rule with the unscheduled one: three of them, or those of all seeds and three draws."""
    for schedule in programs_of(mod, rule, 3 if every else 1, every=every):
        assert not any(text in schedule.mod.script() for text in (RULE, KNOB))
        source = source_of(mod, schedule)
        assert "atomic" not in source
        # A product whose depth is split has a kernel for its parts, and one for their sum.
        is_split = rule == "gpu_product" and "rfactor" in str(schedule.trace)
        assert kernels(source) == (2 if is_split else 1)
        check_kernels(mod, schedule)


def check_machine_code(mod: tvm.IRModule, rule: str, every: bool) -> None:
    """Let NVRTC compile the first program of a rule, and, with ``every``, one drawn at random."""
    first, *others = programs_of(mod, rule, 1, every=every)
    for schedule in (first, others[-1]) if every else (first,):
        assert cubin(source_of(mod, schedule), ARCH).startswith(b"\x7fELF")


def check_kernels(mod: tvm.IRModule, schedule: Schedule) -> None:
    """Run a program for GPUs on the CPU, threads as loops, and compare it with the unscheduled one."""
    check_results(mod, serial(schedule.mod), _HOST)


def source_of(mod: tvm.IRModule, schedule: Schedule) -> str:
    """Return the CUDA source of a schedule's trace, replayed from JSON."""
    target = with_assumed_attributes(TARGET)
    return cuda.source(scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), target), target)


def kernels(source: str) -> int:
    """Return how many kernels CUDA source has."""
    return len(set(re.findall(r"__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", source)))
