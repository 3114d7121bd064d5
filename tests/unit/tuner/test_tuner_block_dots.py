"""Products of rows of int8 with weights of few bits: exact at the extremes, by the instruction that the machine has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from loopwright.codegen.cpu import block_dots
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import new_schedule, scheduled_module
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.cpu.block_dots import BlockDots
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from tests.support import rule_programs as programs

ROWS, COLUMNS, DEPTH, SIZE = 3, 32, 128, 64
RULE = BlockDots()


def scheduled(mod: tvm.IRModule, target: Any) -> tvm.runtime.Module:
    """Return the program of a rule's first seed, built."""
    program = AnalysedProgram.of(mod)
    assert program is not None
    machine, schedule = MachineLimits.of(target), new_schedule(mod)
    RULE.apply(schedule, program, machine, next(iter(RULE.seeds(program, machine))))
    return compile_module(scheduled_module(mod, json.loads(trace_to_json(schedule.trace)), target), target)


@pytest.mark.parametrize(
    ("cpu", "bits", "instruction"),
    [
        ("x86-64-v3", 4, "vpmaddubsw"),
        ("x86-64-v3", 8, "vpmaddwd"),
        ("icelake-server", 4, "vpdpbusd"),
        pytest.param("icelake-server", 8, "vpdpbusd", marks=pytest.mark.whole),
        pytest.param("skylake-avx512", 4, "vpmaddubsw", marks=pytest.mark.whole),
        pytest.param("skylake-avx512", 8, "vpmaddwd", marks=pytest.mark.whole),
    ],
)
def test_sums_are_exact_at_the_extremes(cpu: str, bits: int, instruction: str) -> None:
    """Its pairs of products would saturate int16 otherwise: 2 * 255 * 128 is over 32,767."""
    target = target_from({"kind": "llvm", "mcpu": cpu, "mattr": ["-prefer-256-bit"], "num-cores": 2})
    mod = programs.block_dots(ROWS, COLUMNS, DEPTH, SIZE, bits=bits)
    built = scheduled(mod, target)
    assert instruction in built.inspect_source("asm")
    flags = Path("/proc/cpuinfo").read_text()
    if (cpu != "x86-64-v3" and "avx512bw" not in flags) or (instruction == "vpdpbusd" and "avx512_vnni" not in flags):
        return
    drawn = np.random.default_rng(bits)
    numbers = drawn.choice(np.array([0, 1, 2**bits - 1], "uint8"), (COLUMNS, DEPTH))
    rows = drawn.choice(np.array([-128, -127, 127], "int8"), (ROWS, DEPTH))
    numbers[0], rows[0] = 2**bits - 1, -128
    zeros = drawn.integers(0, 2**bits, (DEPTH // SIZE, COLUMNS), "uint8")
    stored = numbers if bits == 8 else numbers[:, ::2] | (numbers[:, 1::2] << 4)
    ones = [np.ones((ROWS, DEPTH // SIZE), "float32"), np.ones((DEPTH // SIZE, COLUMNS), "float32")]
    arguments = [rows, ones[0], stored, ones[1], zeros, np.full((ROWS, COLUMNS), np.nan, "float32")]
    tensors = [tvm.runtime.tensor(each) for each in arguments]
    built["main"](*tensors)
    differences = numbers.astype("int64") - np.repeat(zeros.T, SIZE, 1)
    np.testing.assert_array_equal(tensors[-1].numpy(), rows.astype("int64") @ differences.T)


def test_a_product_needs_whole_vectors_and_blocks() -> None:
    machine = MachineLimits(lanes=8, registers=16, threads=2, has_maddwd=True)
    for mod in (programs.block_dots(2, 20, 64, 32), programs.block_dots(2, 32, 36, 12)):
        program = AnalysedProgram.of(mod)
        assert program is not None
        assert not RULE.knobs(program, machine)


@pytest.mark.parametrize("name", ["loopwright.block_dots_vnni_8x1", "loopwright.block_dots_sse_8x8", "block_dots"])
def test_other_names_are_no_intrinsics(name: str) -> None:
    assert not block_dots.register(name)
