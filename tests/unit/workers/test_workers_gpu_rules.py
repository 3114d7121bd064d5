"""Loopwright's rules for GPUs: what they make computes the same, keeps a GPU's limits, and becomes machine code."""

from __future__ import annotations

import pytest
import tvm
from tvm import te, topi

from loopwright.codegen.rule import RULE
from tests.support.cases import cases
from tests.support.gpu_rules import TARGET, check_machine_code, check_rule, programs_of, source_of
from tests.support.rule_programs import function, layer_norm, mean, rms_norm, sketches_of
from tuner.space.builtin import builtin_space


def biased_tanh(shape: tuple[int, ...], dtype: str) -> tvm.IRModule:
    x, bias = te.placeholder(shape, dtype, name="X"), te.placeholder(shape[-1:], dtype, name="bias")
    return function(x, bias, topi.tanh(topi.add(x, bias)))


def tanh(shape: tuple[int, ...], dtype: str) -> tvm.IRModule:
    x = te.placeholder(shape, dtype, name="X")
    return function(x, topi.tanh(x) * x)


def transposed(rows: int, columns: int, dtype: str) -> tvm.IRModule:
    x = te.placeholder((rows, columns), dtype, name="X")
    return function(x, topi.transpose(x))


def cast(source: str, result: str) -> tvm.IRModule:
    x = te.placeholder((6, 40), source, name="X")
    return function(x, topi.cast(x, result))


ELEMENTWISE = {
    "two axes": biased_tanh((64, 1024), "float32"),
    "odd extents, fp16": biased_tanh((37, 29), "float16"),
    "five axes, bf16": biased_tanh((2, 3, 4, 5, 16), "bfloat16"),
    "axes of one element": biased_tanh((1, 8, 1, 6), "float32"),
    "a prime": tanh((997,), "float32"),
    "flat, fp16": tanh((6, 10), "float16"),
    "one element": tanh((1, 1), "float32"),
    "transposed, fp16": transposed(48, 32, "float16"),
    "cast of fp16": cast("float16", "float32"),
    "cast of int8": cast("int8", "float32"),
}
MAPPED = cases(ELEMENTWISE, "odd extents, fp16", "one element", "transposed, fp16")


@pytest.mark.parametrize(("name", "every"), MAPPED)
def test_what_the_rule_for_elements_makes_computes_the_same(name: str, every: bool) -> None:
    check_rule(ELEMENTWISE[name], "gpu_elementwise", every)


@pytest.mark.parametrize(("name", "every"), cases(ELEMENTWISE, "odd extents, fp16"))
def test_what_the_rule_for_elements_makes_becomes_machine_code(name: str, every: bool) -> None:
    check_machine_code(ELEMENTWISE[name], "gpu_elementwise", every)


@pytest.mark.parametrize(
    ("mod", "access", "count"),
    [
        (biased_tanh((64, 1024), "float32"), "*(float4*)(", 3),
        (biased_tanh((64, 1024), "float16"), "*(uint4*)(", 3),
        (biased_tanh((64, 1024), "bfloat16"), "*(uint4*)(", 3),
        (tanh((6, 10), "float32"), "*(float4*)(", 2),  # four elements may lie in two rows
        (biased_tanh((6, 10), "float32"), "*(float4*)(", 0),
        (biased_tanh((6, 10), "float32"), "*(float2*)(", 3),
        (transposed(48, 32, "float32"), "*(float4*)(", 1),  # what is written
        (biased_tanh((64, 1023), "float32"), "*(float", 0),
    ],
)
def test_the_first_seed_reads_and_writes_128_bits_at_a_time_if_elements_are_adjacent(
    mod: tvm.IRModule, access: str, count: int
) -> None:
    [first, *_] = programs_of(mod, "gpu_elementwise", 0)
    assert source_of(mod, first).count(access) >= count
    assert count > 0 or access not in source_of(mod, first)


def softmax(shape: tuple[int, ...], dtype: str) -> tvm.IRModule:
    x = te.placeholder(shape, dtype, name="X")
    return function(x, topi.nn.softmax(x))


def greatest(shape: tuple[int, ...], dtype: str) -> tvm.IRModule:
    x = te.placeholder(shape, dtype, name="X")
    return function(x, topi.max(x, axis=-1))


def half_rms_norm(rows: int, columns: int) -> tvm.IRModule:
    """In float16, with sums in float32, as models have it."""
    x, weight = (te.placeholder(shape, "float16") for shape in ((rows, columns), (columns,)))
    wide = topi.cast(x, "float32")
    scale = topi.rsqrt(topi.sum(wide * wide, axis=1, keepdims=True) / tvm.tirx.const(columns, "float32"))
    return function(x, weight, topi.multiply(topi.cast(topi.multiply(wide, scale), "float16"), weight))


ROWS = {
    "softmax": softmax((64, 256), "float32"),
    "softmax of odd extents": softmax((5, 37), "float32"),
    "softmax of four axes, fp16": softmax((2, 1, 3, 64), "float16"),
    "softmax of one row": softmax((1, 96), "float32"),
    "layer norm": layer_norm(12, 256),
    "mean": mean(7, 512),
    "greatest, bf16": greatest((3, 5, 64), "bfloat16"),
    "RMS norm": rms_norm(6, 128),
    "RMS norm, fp16": half_rms_norm(6, 128),
}


@pytest.mark.parametrize(("name", "every"), cases(ROWS, "softmax of odd extents", "greatest, bf16"))
def test_what_the_rule_for_rows_makes_computes_the_same(name: str, every: bool) -> None:
    check_rule(ROWS[name], "gpu_row_reduce", every)


@pytest.mark.parametrize(("name", "every"), cases(ROWS, "softmax of odd extents"))
def test_what_the_rule_for_rows_makes_becomes_machine_code(name: str, every: bool) -> None:
    check_machine_code(ROWS[name], "gpu_row_reduce", every)


@pytest.mark.parametrize(
    ("mod", "access"),
    [(ROWS["softmax"], "*(float4*)("), (ROWS["softmax of four axes, fp16"], "*(uint4*)(")],
)
def test_the_first_seed_copies_a_row_to_shared_memory_128_bits_at_a_time(mod: tvm.IRModule, access: str) -> None:
    [first, *_] = programs_of(mod, "gpu_row_reduce", 0)
    source = source_of(mod, first)
    copies = [line for line in source.splitlines() if "X_shared" in line and f"= {access}" in line]
    assert copies
    assert all(f"{access}X" in line for line in copies)


def test_a_function_that_the_rules_cannot_schedule_has_no_sketches_of_theirs() -> None:
    x = te.placeholder((8, 4), name="X")
    two = function(x, topi.tanh(x), topi.exp(x))
    reduced = function(x, topi.sum(x, axis=0))
    for mod in (two, reduced):
        assert not sketches_of(builtin_space(mod, TARGET, 1), RULE + "gpu")


def test_experimental_rules_are_in_the_space_and_propose_seeds_only_if_they_are_asked_for() -> None:
    spaces = {asked: builtin_space(next(iter(ROWS.values())), TARGET, 1, experimental=asked) for asked in (False, True)}
    for space in spaces.values():
        assert len(sketches_of(space, RULE + "gpu_row_reduce")) == 1
    seeded = {asked: [s for s in space.seeds if RULE + "gpu" in str(s)] for asked, space in spaces.items()}
    assert not seeded[False]
    assert seeded[True]
    assert len(spaces[True].seeds) == len(spaces[False].seeds) + len(seeded[True])
