"""Proposes the best of a population that grows by mutation, crossover and screening, and is ranked again each time."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Entry, Population
from tuner.search.proposers.random import Random
from tuner.search.proposers.transfer import Transfer
from tuner.search.screening import Screening
from tuner.search.surrogate import Pause, Surrogate
from tuner.search.variation import crossover, mutate
from tuner.space.design_space import DesignSpace
from tuner.types import Origin


@dataclass(frozen=True, slots=True)
class Evolution:
    space: DesignSpace
    rng: np.random.Generator
    config: SearchConfig
    surrogate: Surrogate
    screening: Screening
    random: Random
    transfer: Transfer

    def propose(self, population: Population, count: int, pause: Pause) -> list[Individual]:
        values = self._predict(population.pooled(), pause)
        parents = [population[program] for program in _best(values, self.config.parents)]
        parents += population.fastest(self.config.parents)
        fresh: dict[int, Individual] = {}
        for individual in self._arrivals(population, parents, pause):
            if individual is not None and individual.program not in population:
                fresh.setdefault(individual.program, individual)
        population.pool(fresh.values())
        values |= self._predict(list(fresh.values()), pause)
        kept = _best(values, count + self.config.pool)
        individuals = [population[program].individual for program in kept]
        selected = self.surrogate.select_batch(individuals, count, beta=self.config.beta, pending=population.pending())
        for individual in selected:
            population.select(individual)
        population.retain(kept)
        return selected

    def _arrivals(self, population: Population, parents: Sequence[Entry], pause: Pause) -> Iterator[Individual | None]:
        """Yield what joins the population; None for a program that the space rejects."""
        config = self.config
        if self.surrogate.experienced:
            yield from self.transfer.remaining(pause)
        for _ in range(config.newcomers):
            yield self.random.draw(pause)
        for _ in range(config.offspring if parents else 0):
            yield self._child(parents, pause)
        yield from self.screening.programs(
            population, parents, config.screened, max_changes=config.max_changes, beta=config.beta, pause=pause
        )

    def _child(self, parents: Sequence[Entry], pause: Pause) -> Individual | None:
        parent = self._draw(parents)
        trace = parent.individual.vector.trace
        if self.rng.random() < self.config.crossover_share:
            other = self._draw(parents).individual.vector.trace
            child, origin = crossover(trace, other, self.rng), Origin.CROSSOVER
        else:
            child, origin = mutate(self.space, trace, self.rng, self.config.redraw_share), Origin.MUTATION
        pause()
        return None if child is None else Individual.replay(self.space, child, self.rng, origin, parent.ancestor)

    def _draw(self, parents: Sequence[Entry]) -> Entry:
        return parents[int(self.rng.integers(len(parents)))]

    def _predict(self, individuals: Sequence[Individual], pause: Pause) -> dict[int, float]:
        """Return acquisition values by program."""
        values = self.surrogate.predict(individuals, self.config.beta, pause)
        return {individual.program: float(value) for individual, value in zip(individuals, values, strict=True)}


def _best(values: dict[int, float], count: int) -> list[int]:
    return heapq.nlargest(count, values, key=values.__getitem__)
