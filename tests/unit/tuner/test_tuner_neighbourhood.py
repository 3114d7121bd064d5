"""Decision vectors: a replay keeps them, mutants reach every kind of choice, and no vector comes twice."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from tvm.s_tir import Schedule

from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, matmul
from tuner.search.encoding import DecisionVector
from tuner.search.individual import Individual
from tuner.search.neighbourhood import Neighbourhood
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace


@cache
def space() -> DesignSpace:
    return builtin_space(module_from_json(matmul().module_json), target_from(LLVM), 1)


def vector_of(schedule: Schedule) -> DecisionVector:
    return Individual.of(space(), schedule, Origin.RANDOM).vector


@cache
def observed() -> list[DecisionVector]:
    traces = space().traces
    drawn = (space().replay(traces[seed % len(traces)], seed) for seed in range(1, 25))
    return [vector_of(schedule) for schedule in drawn if schedule is not None]


def neighbourhood(vectors: list[DecisionVector]) -> Neighbourhood:
    result = Neighbourhood()
    for vector in vectors:
        result.observe(vector)
    return result


def mutants(parents: list[DecisionVector], draws: int, max_changes: int) -> list[tuple[DecisionVector, int]]:
    return list(neighbourhood(observed()).mutants(parents, draws, max_changes, np.random.default_rng(0)))


def differences(one: DecisionVector, other: DecisionVector) -> list[str]:
    """Return the kinds of the decisions that differ, and whether the sketch does."""
    kinds = [
        choice.kind
        for choice, decision, counterpart in zip(one.choices, one.decisions, other.decisions, strict=True)
        if decision != counterpart
    ]
    return kinds + ["sketch"] * (one.fixed != other.fixed)


def test_a_replay_keeps_the_decisions() -> None:
    accepted = 0
    for vector, _ in mutants(observed(), 60, 3):
        schedule = space().replay(vector.decided_trace(), 1)
        if schedule is not None:
            accepted += 1
            assert vector_of(schedule).encode() == vector.encode()
    assert accepted > 40


def test_the_vector_of_a_program_replays_to_the_same_program() -> None:
    schedule = space().replay(space().traces[0], 3)
    assert schedule is not None
    again = space().replay(vector_of(schedule).decided_trace(), 99)
    assert again is not None
    programs = [Individual.of(space(), one, Origin.RANDOM).program for one in (schedule, again)]
    assert programs[0] == programs[1]
    assert vector_of(again).encode() == vector_of(schedule).encode()


def test_a_single_change_reaches_each_kind_of_choice() -> None:
    changed = [differences(observed()[parent], vector) for vector, parent in mutants(observed(), 400, 1)]
    assert all(len(kinds) == 1 for kinds in changed)
    assert {kind for [kind] in changed} >= {"SamplePerfectTile", "SampleCategorical", "sketch"}


def test_several_decisions_may_change() -> None:
    most = max(len(differences(observed()[parent], vector)) for vector, parent in mutants(observed(), 400, 3))
    assert most == 3


def test_tiles_keep_their_extents_and_limits() -> None:
    for vector, parent in mutants(observed(), 400, 3):
        decisions = zip(vector.choices, vector.decisions, observed()[parent].decisions, strict=True)
        for choice, decision, original in decisions:
            if choice.kind == "SamplePerfectTile":
                assert math.prod(decision) == math.prod(original)
                assert decision[-1] <= int(choice.instruction.attrs[1])


def test_no_mutant_comes_twice_and_none_was_observed() -> None:
    parents = observed()[:1]
    names = [frozenset(vector.encode().items()) for vector, _ in mutants(parents, 600, 1)]
    assert len(names) == len(set(names)) > 20
    assert not set(names) & {frozenset(vector.encode().items()) for vector in observed()}
    known = neighbourhood(observed())
    for vector, _ in mutants(parents, 600, 1):
        known.observe(vector)
    assert len(list(known.mutants(parents, 600, 1, np.random.default_rng(0)))) == 0


def test_a_program_without_choices_has_no_mutants() -> None:
    schedule = new_schedule(space().mod, 1)
    only = DecisionVector.of(schedule.trace)
    assert only.decisions == ()
    assert list(neighbourhood([only]).mutants([only], 50, 3, np.random.default_rng(0))) == []
