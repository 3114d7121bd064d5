"""Proposes programs of traces that were measured for the same workload before, so that no search ends below another."""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.schedule import apply_trace_json
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.space.design_space import REFUSALS, DesignSpace


class Known:
    """Replays traces as they are, whether they are in the space or not, in the given order."""

    def __init__(self, space: DesignSpace, traces: Sequence[str]) -> None:
        self._space = space
        self._traces = list(traces)

    def propose(self, population: Population, count: int) -> list[Individual]:
        selected: list[Individual] = []
        while self._traces and len(selected) < count:
            try:
                schedule = apply_trace_json(self._space.mod, self._traces.pop(0))
            except REFUSALS:
                continue
            individual = Individual.of(self._space, schedule, Origin.TRANSFER)
            if population.select(individual):
                selected.append(individual)
        return selected
