"""Proposes programs whose trace and decisions are drawn at random: any of them, or those that the ranking prefers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from loopwright.codegen.kinds import Origin
from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.surrogate import Surrogate
from tuner.space.design_space import DesignSpace


@dataclass(frozen=True, slots=True)
class Random:
    space: DesignSpace
    rng: np.random.Generator
    config: SearchConfig
    surrogate: Surrogate

    def propose(self, population: Population, count: int) -> list[Individual]:
        """Select ``count`` new programs, or fewer if the space is exhausted."""
        selected: list[Individual] = []
        duplicates = rejections = 0
        while (
            len(selected) < count
            and duplicates < self.config.max_duplicates
            and rejections < self.config.max_rejections
        ):
            individual = self._draw()
            if individual is None:
                rejections += 1
            elif population.select(individual):
                selected.append(individual)
                duplicates = rejections = 0
            else:
                duplicates += 1
        return selected

    def propose_ranked(self, population: Population, count: int) -> list[Individual]:
        """Select the ``count`` programs that the surrogate prefers among `SearchConfig.ranked` new ones."""
        if count == 0:
            return []
        drawn = (self._draw() for _ in range(self.config.ranked))
        fresh = {i.program: i for i in drawn if i is not None and i.program not in population}
        selected = self.surrogate.select_batch(list(fresh.values()), count)
        for individual in selected:
            population.select(individual)
        return selected

    def _draw(self) -> Individual | None:
        """Draw a program of the space. None if the space rejects it."""
        traces = self.space.traces
        return Individual.replay(self.space, traces[int(self.rng.integers(len(traces)))], self.rng, Origin.RANDOM)
