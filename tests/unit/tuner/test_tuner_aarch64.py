"""Spaces of aarch64 targets: every sketch builds, for Neon's registers, with nothing of x86."""

from __future__ import annotations

import json
import re

import pytest
from tvm import topi

from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rule import RULE
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.prepacking import split
from tests.support import rule_programs as programs
from tests.support.cases import cases
from tuner.space.builtin import builtin_space

TARGET = target_from({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76", "num-cores": 4})


def test_neon_has_32_registers_of_four_floats() -> None:
    assert MachineLimits.of(TARGET) == MachineLimits(lanes=4, registers=32, threads=4)


@pytest.mark.parametrize("kind", ["generic-rv64", "sifive-u74"])
def test_riscv_has_32_registers(kind: str) -> None:
    assert MachineLimits.of(target_from({"kind": "llvm", "mtriple": "riscv64-linux-gnu", "mcpu": kind})).registers == 32


PROGRAMS = {
    "product": programs.product(29, 36, 11, lambda c: topi.nn.relu(c)),
    "gemv": programs.product(1, 96, 40),
    "softmax": programs.softmax(5, 37),
    "silu": programs.silu(3, 5, 40),
    "column_sum": programs.column_sum(32, 48),
    "attention": programs.attention(3, 12, 24, 16),
}


@pytest.mark.parametrize(("name", "every"), cases(PROGRAMS, *PROGRAMS))
def test_every_sketch_builds(name: str, every: bool) -> None:
    """The round builds the first seed, the last sketch, which is one of a rule, and the first one of TVM."""
    mod = PROGRAMS[name]
    space = builtin_space(mod, TARGET, 1)
    assert RULE in trace_to_json(space.traces[-1])
    traces = [*space.traces, *space.seeds] if every else [space.seeds[0], space.traces[-1], space.traces[0]]
    built = [schedule for schedule in (space.replay(trace, 1) for trace in traces) if schedule is not None]
    assert built
    for schedule in built:
        applied, _ = split(scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), TARGET))
        assembly = str(compile_module(applied, TARGET, argument_checks=False).inspect_source("asm"))
        assert re.search(r"\tadd\tx\d+, x\d+", assembly), assembly
