"""The population: each program once, and what became of it."""

from __future__ import annotations

from functools import cache

import pytest

from loopwright.codegen.kinds import Origin
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, matmul
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.space.builtin import builtin_space


@cache
def individuals() -> list[Individual]:
    space = builtin_space(module_from_json(matmul().module_json), target_from(LLVM), 1)
    drawn = [space.replay(space.traces[seed % len(space.traces)], seed) for seed in range(1, 7)]
    return [Individual.of(space, schedule, Origin.RANDOM) for schedule in drawn if schedule is not None][:3]


@pytest.fixture
def population() -> Population:
    """One program pending, one measured in 1 ms, and a third one that it does not contain."""
    population = Population()
    _, pending, measured = individuals()
    for name, individual in (("pending", pending), ("measured", measured)):
        assert population.select(individual)
        population.submit(individual, name)
    population.observe("measured", 1e-3)
    return population


def test_a_program_may_be_selected_once(population: Population) -> None:
    new, pending, measured = individuals()
    assert new.program not in population
    assert population.select(new)
    assert new.program in population
    for known in (new, pending, measured):
        assert not population.select(known)


def test_only_the_measured_are_among_the_fastest(population: Population) -> None:
    new, pending, measured = individuals()
    population.select(new)
    [entry] = population.fastest(5)
    assert (entry.individual, entry.candidate, entry.latency) == (measured, "measured", 1e-3)
    assert population.observe("pending", None) is pending
    assert population.fastest(5) == [entry]


def test_the_fastest_come_first(population: Population) -> None:
    _, faster, slower = individuals()
    population.observe("pending", 1e-4)
    assert [entry.individual for entry in population.fastest(5)] == [faster, slower]
    assert [entry.individual for entry in population.fastest(1)] == [faster]


def test_what_was_submitted_is_no_neighbour_any_more(population: Population) -> None:
    new, pending, _ = individuals()
    assert pending.vector in population.neighbourhood
    population.select(new)
    assert new.vector not in population.neighbourhood
    population.submit(new, "new")
    assert new.vector in population.neighbourhood
