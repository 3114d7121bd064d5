"""Proposes programs whose trace and decisions are drawn at random."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.surrogate import Pause
from tuner.space.design_space import DesignSpace
from tuner.types import Origin


@dataclass(frozen=True, slots=True)
class Random:
    space: DesignSpace
    rng: np.random.Generator
    config: SearchConfig

    def draw(self, pause: Pause) -> Individual | None:
        """Draw a program of the space. None if the space rejects it."""
        traces = self.space.traces
        pause()
        return Individual.replay(self.space, traces[int(self.rng.integers(len(traces)))], self.rng, Origin.RANDOM)

    def propose(self, population: Population, count: int, pause: Pause) -> list[Individual]:
        """Select ``count`` new programs, or fewer if the space is exhausted."""
        selected: list[Individual] = []
        duplicates = rejections = 0
        while (
            len(selected) < count
            and duplicates < self.config.max_duplicates
            and rejections < self.config.max_rejections
        ):
            individual = self.draw(pause)
            if individual is None:
                rejections += 1
            elif population.select(individual):
                selected.append(individual)
                duplicates = rejections = 0
            else:
                duplicates += 1
        return selected
