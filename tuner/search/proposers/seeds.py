"""Proposes the starting points of the space's rules: programs that are good by analysis, and their neighbours."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tvm.s_tir.schedule import Trace

from loopwright.codegen.kinds import Origin
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.space.design_space import DesignSpace


class Seeds:
    """Replays decided traces of the space in the given order."""

    def __init__(self, space: DesignSpace, rng: np.random.Generator, traces: Sequence[Trace]) -> None:
        self._space = space
        self._rng = rng
        self._traces = list(traces)

    def propose(self, population: Population, count: int) -> list[Individual]:
        selected: list[Individual] = []
        while self._traces and len(selected) < count:
            individual = Individual.replay(self._space, self._traces.pop(0), self._rng, Origin.SEED)
            if individual is not None and population.select(individual):
                selected.append(individual)
        return selected
