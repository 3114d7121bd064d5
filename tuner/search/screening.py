"""Screening: many decision vectors are mutated and ranked, and only the best are replayed into programs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tuner.search.encoding import DecisionVector
from tuner.search.individual import Individual
from tuner.search.population import Entry, Population
from tuner.search.surrogate import Pause, Surrogate
from tuner.space.design_space import DesignSpace
from tuner.types import Origin

_CHUNK = 64
"""Vectors mutated and ranked between two pauses, which takes a few milliseconds."""


@dataclass(frozen=True, slots=True)
class Screening:
    space: DesignSpace
    surrogate: Surrogate
    rng: np.random.Generator
    draws: int

    def programs(
        self,
        population: Population,
        parents: Sequence[Entry],
        count: int,
        *,
        max_changes: int,
        beta: float,
        pause: Pause,
    ) -> Iterator[Individual]:
        """Yield the programs of the ``count`` mutants with the highest acquisition that the space accepts."""
        if not parents:
            return
        vectors: list[tuple[DecisionVector, int]] = []
        values: list[float] = []
        neighbourhood = population.neighbourhood
        mutants = neighbourhood.mutants(
            [parent.individual.vector for parent in parents], self.draws, max_changes, self.rng
        )
        while chunk := list(islice(mutants, _CHUNK)):
            pause()
            vectors += chunk
            values += self.surrogate.predict_encodings([vector.encode() for vector, _ in chunk], beta).tolist()
        for index in heapq.nlargest(count, range(len(vectors)), key=values.__getitem__):
            vector, parent = vectors[index]
            neighbourhood.observe(vector)  # a rejected vector is not to be tried again, either
            pause()
            program = Individual.replay(
                self.space, vector.decided_trace(), self.rng, Origin.MUTATION, parents[parent].ancestor
            )
            if program is not None:
                yield program
