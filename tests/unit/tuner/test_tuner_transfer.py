"""Programs of related workloads, adapted: tiles that fit, choices kept, strangers refused."""

from __future__ import annotations

import math

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te

from tests.unit.tuner.programs import LLVM, elementwise
from tuner import ir
from tuner.cost_model.model import CostModel
from tuner.search.evolution import EvolutionarySearch
from tuner.search.transfer import adapt, fit_tile
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace
from tuner.types import Origin

extents = st.integers(1, 4096)


@given(st.lists(st.integers(1, 64), min_size=1, max_size=4), extents)
def test_tiles_multiply_to_the_extent(factors: list[int], extent: int) -> None:
    fitted = fit_tile(factors, extent)
    assert len(fitted) == len(factors)
    assert math.prod(fitted) == extent


@given(st.lists(st.integers(1, 16), min_size=1, max_size=4), st.integers(1, 16))
def test_inner_tiles_stay_where_the_extent_is_a_multiple(factors: list[int], times: int) -> None:
    assert fit_tile(factors, math.prod(factors) * times) == [factors[0] * times, *factors[1:]]


def test_the_nearest_divisor_is_taken() -> None:
    assert fit_tile([2, 4, 4, 4], 192) == [3, 4, 4, 4]
    assert fit_tile([4, 6], 64) in ([16, 4], [8, 8])
    assert fit_tile([1, 8, 16], 509) == [509, 1, 1]


def product(n: int) -> tvm.IRModule:
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    c = te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    return ir.wrap(te.create_prim_func([a, b, c]))


def space(n: int) -> DesignSpace:
    return builtin_space(product(n), ir.target_from(LLVM), seed=1)


def traces(of: DesignSpace, count: int) -> list[str]:
    rng = np.random.default_rng(3)
    found = []
    while len(found) < count:
        schedule = of.replay(of.traces[len(found) % len(of.traces)], int(rng.integers(1, 2**31 - 1)))
        if schedule is not None:
            found.append(ir.trace_to_json(schedule.trace))
    return found


@pytest.mark.parametrize("n", [48, 96, 37])
def test_a_relatives_program_becomes_one_of_this_space(n: int) -> None:
    here = space(n)
    for trace in traces(space(64), 6):
        individual = adapt(here, trace, np.random.default_rng(0))
        assert individual is not None
        assert individual.origin is Origin.TRANSFER
        # It replays on this workload as it stands.
        again = ir.apply_trace_json(here.mod, ir.trace_to_json(individual.schedule.trace))
        assert ir.digest(again.mod) == ir.digest(individual.schedule.mod)


def test_a_programs_own_trace_comes_back_unchanged() -> None:
    here = space(64)
    for trace in traces(here, 6):
        individual = adapt(here, trace, np.random.default_rng(0))
        assert individual is not None
        assert ir.digest(individual.schedule.mod) == ir.digest(ir.apply_trace_json(here.mod, trace).mod)


def test_a_stranger_is_refused() -> None:
    double = ir.module_from_json(elementwise().module_json)
    (trace,) = traces(builtin_space(double, ir.target_from(LLVM), seed=1), 1)
    assert adapt(space(64), trace, np.random.default_rng(0)) is None


def test_relatives_come_first_and_once() -> None:
    here = space(96)
    search = EvolutionarySearch("w", here, CostModel(0), np.random.default_rng(0), traces(space(64), 9))
    first, second = search.propose(8), search.propose(8)
    assert [c.origin for c in first].count(Origin.TRANSFER) == 7
    assert [c.origin for c in second].count(Origin.TRANSFER) == 2
    assert Origin.TRANSFER not in {c.origin for c in search.propose(8)}


def test_families_are_shapes_apart() -> None:
    assert ir.family(product(64)) == ir.family(product(96))
    assert ir.family(product(64)) != elementwise().family
    assert ir.digest(product(64)) != ir.digest(product(96))
