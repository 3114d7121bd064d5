"""Traces that keep values in int16: allowed for bytes only, of which int16 has all values."""

from __future__ import annotations

import json

import pytest
import tvm

from loopwright.codegen.serialization import trace_to_json
from tests.support import rule_programs as programs
from tuner.guard.widening import TO_INT16, dtype_changes, lost_values


def widened(mod: tvm.IRModule, index: int) -> tvm.s_tir.Schedule:
    """Return a schedule that keeps a copy of an operand of a product in int16."""
    schedule = tvm.s_tir.Schedule(mod)
    schedule.unsafe_set_dtype(schedule.cache_read("C", index, "global"), 0, "int16")
    return schedule


@pytest.mark.parametrize("index", [0, 1])
def test_bytes_may_be_widened(index: int) -> None:
    mod = programs.byte_product(3, 8, 4)
    assert lost_values(mod["main"], widened(mod, index).mod["main"]) == []


def test_padded_bytes_may_be_widened() -> None:
    mod = programs.byte_product(3, 8, 5)
    schedule = tvm.s_tir.Schedule(mod)
    schedule.pad_einsum("C", [1, 1, 2])
    schedule.unsafe_set_dtype("A_pad", 0, "int16")
    assert lost_values(mod["main"], schedule.mod["main"]) == []


def test_other_numbers_may_not_be_kept_in_int16() -> None:
    mod = programs.product(3, 8, 4)
    assert lost_values(mod["main"], widened(mod, 0).mod["main"]) == ["the elements of A_global"]


def test_a_function_with_int16_of_its_own_may_not_be_widened() -> None:
    """There, sums that int16 does not hold cannot be told from bytes."""
    mod = programs.quantised_linear(3, 8, 4)
    assert lost_values(mod["main"], widened(mod, 1).mod["main"]) == ["main, which has int16 itself"]


def test_the_step_of_a_rule_is_the_one_that_is_allowed() -> None:
    schedule = widened(programs.byte_product(3, 8, 4), 0)
    assert dtype_changes(json.loads(trace_to_json(schedule.trace))) == [TO_INT16]
