"""Programs of related workloads, adapted: tiles that fit, choices kept, strangers refused."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import tvm
from hypothesis import given
from hypothesis import strategies as st
from tvm import te

from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.digest import normal_form, workload_digest, workload_family
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, elementwise
from tuner.cost_model.model import CostModel
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.search.individual import Individual
from tuner.search.neighbourhood import Neighbourhood
from tuner.search.proposers.transfer import Transfer, fit_tile
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from tuner.types import Measured

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
    return normal_form(te.create_prim_func([a, b, c]))


def space(n: int) -> DesignSpace:
    return builtin_space(product(n), target_from(LLVM), seed=1)


def traces(of: DesignSpace, count: int) -> list[str]:
    rng = np.random.default_rng(3)
    found: list[str] = []
    while len(found) < count:
        schedule = of.replay(of.traces[len(found) % len(of.traces)], int(rng.integers(1, 2**31 - 1)))
        if schedule is not None:
            found.append(trace_to_json(schedule.trace))
    return found


@pytest.mark.parametrize("n", [48, 96, 37])
def test_a_relatives_program_becomes_one_of_this_space(n: int) -> None:
    here = space(n)
    for trace in traces(space(64), 6):
        individual = Transfer(here, np.random.default_rng(0)).adapt(trace)
        assert individual is not None
        assert individual.origin is Origin.TRANSFER
        # It replays on this workload as it stands.
        again = apply_trace_json(here.mod, trace_to_json(individual.schedule.trace))
        assert workload_digest(again.mod) == workload_digest(individual.schedule.mod)


def test_a_programs_own_trace_comes_back_unchanged() -> None:
    here = space(64)
    for trace in traces(here, 6):
        individual = Transfer(here, np.random.default_rng(0)).adapt(trace)
        assert individual is not None
        assert workload_digest(individual.schedule.mod) == workload_digest(apply_trace_json(here.mod, trace).mod)


def test_a_stranger_is_refused() -> None:
    double = module_from_json(elementwise().module_json)
    (trace,) = traces(builtin_space(double, target_from(LLVM), seed=1), 1)
    assert Transfer(space(64), np.random.default_rng(0)).adapt(trace) is None


def test_a_sketch_that_cannot_be_drawn_is_passed_over() -> None:
    """As one of a user's space may be."""
    here = space(96)
    stranger = builtin_space(module_from_json(elementwise().module_json), target_from(LLVM), seed=1)
    mixed = DesignSpace(here.mod, here.context, [*stranger.traces, *here.traces])
    assert mixed.draw(mixed.traces[0], 1) is None
    (trace,) = traces(space(64), 1)
    assert Transfer(mixed, np.random.default_rng(0)).adapt(trace) is not None


def test_a_program_is_the_same_without_what_it_does_not_use() -> None:
    # As in the traces of all programs that were changed from others.
    there, here = space(64), space(96)
    transfer = Transfer(here, np.random.default_rng(0))
    for trace in traces(there, 6):
        schedule = apply_trace_json(there.mod, trace)
        simplified = trace_to_json(schedule.trace.simplified(remove_postproc=True))
        assert len(json.loads(simplified)[0]) < len(json.loads(trace)[0])
        assert transfer.vectors(simplified) == transfer.vectors(trace) != []


def convolution(padding: int, kernel: int) -> DesignSpace:
    data, weights = te.placeholder((1, 32, 16), name="I"), te.placeholder((kernel, 16, 32), name="W")

    def padded(n: tvm.tirx.Var, i: tvm.tirx.Var, c: tvm.tirx.Var) -> tvm.tirx.PrimExpr:
        if padding == 0:
            return data[n, i, c]
        inside = tvm.tirx.all(i >= padding, i < 32 + padding)
        return tvm.tirx.if_then_else(inside, data[n, i - padding, c], tvm.tirx.const(0.0, "float32"))

    wide = te.compute((1, 32 + 2 * padding, 16), padded, name="P")
    k, c = te.reduce_axis((0, kernel), name="k"), te.reduce_axis((0, 16), name="c")
    out = te.compute(
        (1, 33 + 2 * padding - kernel, 32),
        lambda n, i, o: te.sum(wide[n, i + k, c] * weights[k, c, o], axis=[k, c]),
        name="O",
    )
    return builtin_space(normal_form(te.create_prim_func([data, weights, out])), target_from(LLVM), seed=1)


def test_a_sketch_with_other_choices_but_the_same_tiles_is_taken() -> None:
    """Where nothing is padded the padding is inlined, and nothing is chosen for it."""
    padded, plain = convolution(1, 3), convolution(0, 1)
    there, here = ({str(inst.kind.name) for trace in of.traces for inst in trace.insts} for of in (padded, plain))
    assert there - here == {"SampleComputeLocation", "ComputeAt"}
    for mine, theirs in ((plain, padded), (padded, plain)):
        transfer = Transfer(mine, np.random.default_rng(0))
        for trace in traces(theirs, 6):
            individual = transfer.adapt(trace)
            assert individual is not None
            tiles = [d for d in transfer.vectors(trace)[0].decisions if len(d) > 1]
            assert [d for d in individual.vector.decisions if len(d) > 1] == tiles


def test_relatives_are_half_of_the_first_batches() -> None:
    here = space(96)
    search = EvolutionarySearch("w", here, CostModel(0), np.random.default_rng(0), traces(space(64), 9))
    batches = [[candidate.origin for candidate in search.propose(8)] for _ in range(4)]
    assert [origins.count(Origin.TRANSFER) for origins in batches] == [4, 4, 1, 0]


def neighbours(of: DesignSpace, count: int) -> list[str]:
    """Return traces of programs that differ from one program in a single decision."""
    rng = np.random.default_rng(5)
    centre = Individual.of(of, apply_trace_json(of.mod, traces(of, 1)[0]), Origin.RANDOM).vector
    vectors = [vector for vector, _ in Neighbourhood().mutants([centre], 500, 1, rng)]
    schedules = filter(None, (of.replay(vector.decided_trace(), 1) for vector in vectors))
    return [trace_to_json(schedule.trace) for schedule in schedules][:count]


@pytest.mark.parametrize("theirs", [1.0, 1e-5])
def test_relatives_have_to_compete_once_the_task_speaks_for_itself(theirs: float) -> None:
    relatives = neighbours(space(64), 24)
    here = stock_space(product(96), target_from(LLVM), seed=1)
    search = EvolutionarySearch("w", here, CostModel(0), np.random.default_rng(0), relatives)
    for candidate in search.propose(8):
        seconds = theirs if candidate.origin is Origin.TRANSFER else 1e-3
        search.observe(candidate, Measured((seconds,), "worker"))
    later = [candidate.origin for candidate in search.propose(8)]
    assert (Origin.TRANSFER in later) == (theirs < 1e-3)


def test_families_are_shapes_apart() -> None:
    assert workload_family(product(64)) == workload_family(product(96))
    assert workload_family(product(64)) != elementwise().family
    assert workload_digest(product(64)) != workload_digest(product(96))
