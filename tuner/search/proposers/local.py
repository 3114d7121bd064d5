"""Proposes neighbours of the fastest measured programs: local search, which exploits what is known."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.screening import Screening
from tuner.search.surrogate import Pause, Surrogate


@dataclass(frozen=True, slots=True)
class Local:
    """Changes one decision at a time, and ranks the programs by the predicted mean alone (beta 0)."""

    surrogate: Surrogate
    screening: Screening
    config: SearchConfig

    def propose(self, population: Population, count: int, pause: Pause) -> list[Individual]:
        fresh: dict[int, Individual] = {}
        for individual in self.screening.programs(
            population,
            population.fastest(self.config.local_centres),
            count * self.config.local_tries,
            max_changes=1,
            beta=0.0,
            pause=pause,
        ):
            if individual.program not in population:
                fresh.setdefault(individual.program, individual)
            if len(fresh) == count:
                break
        selected = self.surrogate.select_batch(list(fresh.values()), count, beta=0.0, pending=[])
        for individual in selected:
            population.select(individual)
        return selected
