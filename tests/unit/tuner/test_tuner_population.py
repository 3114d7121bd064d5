"""The population: each program once, and what became of it."""

from __future__ import annotations

from functools import cache

import pytest

from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, matmul
from tuner.search.individual import Individual
from tuner.search.population import Population, State
from tuner.space.builtin import builtin_space
from tuner.types import Origin


@cache
def individuals() -> list[Individual]:
    space = builtin_space(module_from_json(matmul().module_json), target_from(LLVM), 1)
    drawn = [space.replay(space.traces[seed % len(space.traces)], seed) for seed in range(1, 9)]
    return [Individual.of(space, schedule, Origin.RANDOM) for schedule in drawn if schedule is not None][:4]


@pytest.fixture
def population() -> Population:
    """Two pooled programs, one pending and one measured in 1 ms."""
    population = Population()
    first, second, pending, measured = individuals()
    population.pool([first, second])
    for name, individual in (("pending", pending), ("measured", measured)):
        assert population.select(individual)
        population.submit(individual, name)
    population.observe("measured", 1e-3)
    return population


def test_every_program_is_in_one_state(population: Population) -> None:
    first, second, pending, measured = individuals()
    assert population.pooled() == [first, second]
    assert population.pending() == [pending]
    assert [entry.individual for entry in population.fastest(5)] == [measured]
    assert all(individual.program in population for individual in individuals())


def test_a_pooled_program_may_be_selected_once(population: Population) -> None:
    first, second, pending, measured = individuals()
    assert population.select(first)
    assert not population.select(first)
    assert not population.select(pending)
    assert not population.select(measured)
    assert population.pooled() == [second]


def test_a_selected_program_is_pending_once_it_is_submitted(population: Population) -> None:
    first, _, pending, _ = individuals()
    population.select(first)
    assert population.pending() == [pending]
    population.submit(first, "first")
    assert population.pending() == [pending, first]


def test_a_failed_program_is_neither_pending_nor_among_the_fastest(population: Population) -> None:
    pending = individuals()[2]
    assert population.observe("pending", None) is pending
    assert population[pending.program].state is State.FAILED
    assert population.pending() == []
    assert len(population.fastest(5)) == 1


def test_the_fastest_come_first(population: Population) -> None:
    _, _, faster, slower = individuals()
    population.observe("pending", 1e-4)
    assert [entry.individual for entry in population.fastest(5)] == [faster, slower]
    assert [entry.individual for entry in population.fastest(1)] == [faster]


def test_retain_drops_pooled_programs_only(population: Population) -> None:
    first, second, pending, measured = individuals()
    population.retain([measured.program, second.program])
    assert population.pooled() == [second]
    assert first.program not in population
    assert pending.program in population


def test_children_descend_from_the_candidate_that_was_submitted(population: Population) -> None:
    first, _, pending, _ = individuals()
    assert population[pending.program].ancestor == "pending"
    assert population[first.program].ancestor is None
