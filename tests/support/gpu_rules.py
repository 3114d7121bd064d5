"""What Loopwright's rules for GPUs make of a function, and its CUDA source."""

from __future__ import annotations

import json
import re

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.rule import RULE
from loopwright.codegen.schedule import scheduled_module
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from, with_assumed_attributes
from tests.support.rule_programs import check_results, sketches_of
from tests.support.serial_kernels import serial
from tuner.space.builtin import builtin_space
from workers import cuda

ARCH = "sm_90"
TARGET = target_from({"kind": "cuda", "arch": ARCH})
_HOST = target_from({"kind": "llvm", "mcpu": "x86-64-v2", "num-cores": 2})
"""Without F16C: for x86-64-v3, LLVM makes wrong code of some loops over float16 that are unrolled as for a GPU."""


def programs_of(mod: tvm.IRModule, rule: str, count: int) -> list[Schedule]:
    """Return the programs of all seeds of a rule and of ``count`` draws; every one is accepted."""
    space = builtin_space(mod, TARGET, 1, experimental=True)
    [sketch] = sketches_of(space, RULE + rule)
    seeds = [seed for seed in space.seeds if any(RULE + rule in str(inst.attrs) for inst in seed.insts)]
    assert len(seeds) > 1
    made = [space.replay(seed, 1) for seed in seeds]
    made += [space.replay(sketch, seed) for seed in range(1, count + 1)]
    accepted = [schedule for schedule in made if schedule is not None]
    assert len(accepted) == len(made), "the space refuses programs of the rule"
    return accepted


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
