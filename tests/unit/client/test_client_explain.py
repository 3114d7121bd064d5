"""What a space of one's own holds."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tvm.s_tir import Schedule

import loopwright
from loopwright.frontends.space_description import factorisations
from tests.support.programs import MM_RELU


def tiled(sch: Schedule) -> None:
    i, j, _ = sch.get_loops(sch.get_sblock("Y"))
    sch.split(i, sch.sample_perfect_tile(i, n=2))
    sch.split(j, sch.sample_perfect_tile(j, n=3, max_innermost_factor=8))
    sch.annotate(sch.get_sblock("Y"), "unroll", sch.sample_categorical([0, 16, 64], [0.3, 0.3, 0.4]))


def dependent(sch: Schedule) -> None:
    i, *_ = sch.get_loops(sch.get_sblock("Y"))
    _, inner = sch.split(i, sch.sample_perfect_tile(i, n=2))
    sch.split(inner, sch.sample_perfect_tile(inner, n=2))


def fixed(sch: Schedule) -> None:
    sch.parallel(sch.get_loops(sch.get_sblock("Y"))[0])


def moved(sch: Schedule) -> None:
    sch.compute_at(sch.get_sblock("Y"), sch.sample_compute_location(sch.get_sblock("Y")))


def brute_force(extent: int, parts: int, innermost: int) -> int:
    divisors = [d for d in range(1, extent + 1) if extent % d == 0]
    found = itertools.product(divisors, repeat=parts)
    return sum(math.prod(factors) == extent and factors[-1] <= innermost for factors in found)


@given(st.integers(1, 60), st.integers(1, 3), st.integers(1, 64))
def test_factorisations_are_counted(extent: int, parts: int, innermost: int) -> None:
    assert factorisations(extent, parts, innermost) == brute_force(extent, parts, innermost)


def test_choices_and_their_number() -> None:
    explained = loopwright.explain(tiled, MM_RELU)
    counts = [brute_force(64, 2, 16), brute_force(64, 3, 8), 3]
    ((first, second, third),) = explained.traces
    assert [choice.options for choice in (first, second, third)] == [(count, count) for count in counts]
    assert explained.size == (math.prod(counts), math.prod(counts))
    assert explained.is_exact
    text = str(explained)
    assert "SamplePerfectTile of a loop of 64 into 3, innermost at most 8" in text
    assert "SampleCategorical among 0, 16, 64: 3 options" in text
    assert f"{math.prod(counts):,} options" in text
    assert "<table>" in explained._repr_html_()


def test_a_choice_may_depend_on_those_before() -> None:
    ((_, second),) = loopwright.explain(dependent, MM_RELU).traces
    assert second.options is not None
    low, high = second.options
    assert 1 <= low < high <= 7


def test_a_fixed_schedule_is_one_program() -> None:
    explained = loopwright.explain(fixed, MM_RELU)
    assert explained.size == (1, 1)
    assert "no choices" in str(explained)


def test_what_cannot_be_counted_is_said() -> None:
    explained = loopwright.explain(moved, MM_RELU)
    assert not explained.is_exact
    assert "not counted" in str(explained)


def test_traces_are_explained_too() -> None:
    from loopwright import frontends
    from loopwright.frontends import stochastic

    trace = stochastic.trace(tiled, frontends.to_program(MM_RELU).module)
    assert loopwright.explain([trace], MM_RELU) == loopwright.explain(tiled, MM_RELU)
    assert loopwright.explain([trace, trace], MM_RELU).size[0] == 2 * loopwright.explain(tiled, MM_RELU).size[0]


def test_the_built_in_space_is_the_services() -> None:
    with pytest.raises(ValueError, match="built-in"):
        loopwright.explain(None, MM_RELU)
