"""Proposes mutants of the fastest measured programs: of many decision vectors, those that the surrogate prefers."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from loopwright.codegen.kinds import Origin, Predictor
from tuner.search.config import SearchConfig
from tuner.search.encoding import DecisionVector
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.proposers.transfer import Transfer
from tuner.search.surrogate import Surrogate
from tuner.space.design_space import DesignSpace


@dataclass(frozen=True, slots=True)
class Evolution:
    """Transferred programs that were not proposed compete with the mutants."""

    space: DesignSpace
    rng: np.random.Generator
    config: SearchConfig
    surrogate: Surrogate
    transfer: Transfer

    def propose(self, population: Population, count: int) -> list[Individual]:
        if count == 0:
            return []
        vectors = list(self._candidates(population))
        encodings = [vector.encode() for vector, *_ in vectors]
        values: list[float] = self.surrogate.predict(encodings).tolist()
        selected: list[Individual] = []
        for index in heapq.nlargest(self.config.tries * count, range(len(vectors)), key=values.__getitem__):
            if len(selected) == count:
                break
            vector, origin, parent = vectors[index]
            population.neighbourhood.observe(vector)  # a rejected vector is not to be tried again, either
            individual = Individual.replay(self.space, vector.decided_trace(), self.rng, origin, parent)
            if individual is not None and population.select(individual):
                individual.predicted = values[index]
                individual.predicted_by = Predictor.GAUSSIAN_PROCESS
                selected.append(individual)
        return selected

    def _candidates(self, population: Population) -> Iterator[tuple[DecisionVector, Origin, str | None]]:
        """Yield vectors that were not tried, with their origin and the candidate that they descend from."""
        neighbourhood = population.neighbourhood
        for vector in self.transfer.remaining:
            if vector not in neighbourhood:
                yield vector, Origin.TRANSFER, None
        parents = population.fastest(self.config.parents)
        vectors = [parent.individual.vector for parent in parents]
        for vector, index in neighbourhood.mutants(vectors, self.config.draws, self.config.max_changes, self.rng):
            yield vector, Origin.MUTATION, parents[index].candidate
