"""The rule for products of bytes on processors with AVX2: exact at the ends of their ranges, and for which machines."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm

from loopwright.codegen.cpu import maddwd
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.cpu.conv_maddwd import ConvMaddwd
from loopwright.codegen.rules.cpu.conv_vnni import ConvVnni
from loopwright.codegen.rules.cpu.maddwd import Maddwd
from loopwright.codegen.rules.cpu.vnni import Vnni
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from
from loopwright.codegen.weights.prepacking import split
from tests.support import rule_programs as programs
from tests.support.convolution_programs import byte_conv
from tests.support.rule_programs import TARGET, check_results
from tuner.space.builtin import builtin_space

BYTE_RULES = (Maddwd(), Vnni(), ConvMaddwd(), ConvVnni())
BYTES = [(left, right) for left in ("uint8", "int8") for right in ("uint8", "int8")]


def ends(dtype: str) -> tuple[int, int]:
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def seed_schedule(mod: tvm.IRModule, place: int = 0, target: Any = TARGET) -> list[Any]:
    """Return the trace of a seed of the rule."""
    space = builtin_space(mod, target, seed=1)
    schedule = space.replay(space.seeds[place], 1)
    assert schedule is not None
    trace: list[Any] = json.loads(trace_to_json(schedule.trace))
    return trace


@pytest.mark.parametrize("dtypes", [*BYTES, ("int16", "int8"), ("int16", "uint8")], ids="-".join)
def test_products_are_exact_at_the_ends_of_the_ranges(dtypes: tuple[str, str]) -> None:
    """Sums of two products that are int16, as vpmaddubsw's, saturate here."""
    rows, columns, depth = 6, 40, 75
    mod = programs.byte_product(rows, columns, depth, dtypes)
    program = scheduled_module(mod, seed_schedule(mod), TARGET)
    compiled = compile_module(program, TARGET)
    assert "vpmaddwd" in compiled.inspect_source("asm")
    for left in ends(dtypes[0]):
        for right in ends(dtypes[1]):
            a, b = np.full((rows, depth), left, dtypes[0]), np.full((depth, columns), right, dtypes[1])
            c = tvm.runtime.tensor(np.full((rows, columns), -1, "int32"))
            compiled["main"](tvm.runtime.tensor(a), tvm.runtime.tensor(b), c)
            assert (c.numpy() == a.astype("int64") @ b.astype("int64")).all()


@pytest.mark.parametrize(("dtypes", "zero_point"), [(("uint8", "int8"), 0), (("int8", "uint8"), 0), (BYTES[0], 255)])
def test_convolutions_are_exact_at_the_ends_of_the_ranges(dtypes: tuple[str, str], zero_point: int) -> None:
    """Padding is zero after the zero point is subtracted."""
    size, inputs, outputs = 6, 66, 16
    mod = byte_conv(size, inputs, outputs, 3, dtypes=dtypes, zero_point=zero_point, scaled=False)
    compiled = compile_module(scheduled_module(mod, seed_schedule(mod), TARGET), TARGET)
    assert "vpmaddwd" in compiled.inspect_source("asm")
    taps = np.array([2, 3, 3, 3, 3, 2])
    for left in ends(dtypes[0]):
        for right in ends(dtypes[1]):
            x, w = np.full((1, size, size, inputs), left, dtypes[0]), np.full((3, 3, inputs, outputs), right, dtypes[1])
            y = tvm.runtime.tensor(np.full((1, size, size, outputs), -1, "int32"))
            compiled["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(w), y)
            assert (y.numpy() == (np.outer(taps, taps) * (left - zero_point) * right * inputs)[None, :, :, None]).all()


def test_convolutions_of_other_numbers_are_left_to_others() -> None:
    program = AnalysedProgram.of(byte_conv(8, 4, 16, 3, dtypes=("int32", "int8")))
    assert program is not None
    assert not ConvMaddwd().knobs(program, MachineLimits.of(TARGET))


def test_channels_that_no_vector_divides_are_multiplied_in_vectors() -> None:
    mod = programs.with_weight(byte_conv(17, 19, 37, 3), 1)
    program = scheduled_module(mod, seed_schedule(mod), TARGET)
    code = compile_module(program, TARGET).inspect_source("asm")
    assert "vpmaddwd" in code
    assert "vpmulld" not in code
    check_results(mod, program)


def test_the_weights_stay_bytes() -> None:
    """Panels of int16 would be read from memory twice as slowly."""
    mod = programs.with_weight(programs.byte_product(1, 64, 20, ("int8", "int8")), 1)
    _, packed = split(scheduled_module(mod, seed_schedule(mod), TARGET))
    assert packed is not None
    assert (packed.dtype, np.prod(packed.shape)) == ("int8", 64 * 20)


@pytest.mark.parametrize(
    ("cpu", "dtypes", "rules"),
    [
        ("x86-64-v3", ("uint8", "int8"), {"maddwd"}),
        ("skylake-avx512", ("uint8", "int8"), {"maddwd"}),
        ("icelake-server", ("uint8", "int8"), {"vnni"}),
        ("icelake-server", ("int8", "int8"), {"maddwd"}),
        ("alderlake", ("uint8", "int8"), {"vnni"}),
        ("alderlake", ("uint8", "uint8"), {"maddwd"}),
        ("x86-64-v2", ("uint8", "int8"), set()),
        ("x86-64-v3", ("int16", "int16"), set()),
        ("x86-64-v3", ("int32", "int8"), set()),
    ],
)
def test_which_processors_have_the_rule(cpu: str, dtypes: tuple[str, str], rules: set[str]) -> None:
    target = target_from({"kind": "llvm", "mcpu": cpu, "mattr": ["-prefer-256-bit"], "num-cores": 2})
    for mod, prefix in (
        (programs.byte_product(12, 48, 20, dtypes), ""),
        (byte_conv(6, 4, 16, 3, dtypes=dtypes), "conv_"),
    ):
        program = AnalysedProgram.of(mod)
        assert program is not None
        found = {rule.name for rule in BYTE_RULES if rule.knobs(program, MachineLimits.of(target))}
        assert found == {prefix + rule for rule in rules}


@pytest.mark.parametrize(("rows", "columns", "weight"), [(1, 64, False), (16, 3, True)])
def test_products_that_take_less_than_their_packing_or_padding_are_left_to_others(
    rows: int, columns: int, weight: bool
) -> None:
    mod = programs.byte_product(rows, columns, 24)
    program = AnalysedProgram.of(programs.with_weight(mod, 1) if weight else mod)
    assert program is not None
    assert not Maddwd().knobs(program, MachineLimits.of(TARGET))


def test_a_neon_processor_does_not_have_the_rule() -> None:
    target = target_from({"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a76", "num-cores": 4})
    program = AnalysedProgram.of(programs.byte_product(12, 48, 20))
    assert program is not None
    assert not Maddwd().knobs(program, MachineLimits.of(target))


def test_vectors_of_512_bits_are_multiplied_where_they_are_faster() -> None:
    """They are run where the processor has them; elsewhere they are only built."""
    target = target_from({"kind": "llvm", "mcpu": "skylake-avx512", "mattr": ["-prefer-256-bit"], "num-cores": 2})
    mod = programs.byte_product(23, 70, 21, ("uint8", "uint8"))
    program = scheduled_module(mod, seed_schedule(mod, target=target), target)
    assert re.search(r"vpmaddwd\s.*%zmm", compile_module(program, target).inspect_source("asm"))
    if "avx512bw" in Path("/proc/cpuinfo").read_text():
        check_results(mod, program, target)


@pytest.mark.parametrize("name", ["loopwright.maddwd_u8u16_8x2", "loopwright.maddwd_u8s8_8x2; import os", "maddwd"])
def test_only_its_own_intrinsics_are_registered(name: str) -> None:
    assert not maddwd.register(name)
    assert maddwd.intrinsic("float32", "int8") is None
