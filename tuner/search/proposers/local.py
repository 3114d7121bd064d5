"""Proposes neighbours of the fastest measured programs: local search, which exploits what is known."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.proposers import Proposal
from tuner.search.screening import Screening
from tuner.search.surrogate import Pause, Surrogate


@dataclass(frozen=True, slots=True)
class Local:
    """Changes one decision at a time, and ranks the programs by the predicted mean alone (beta 0)."""

    surrogate: Surrogate
    screening: Screening
    config: SearchConfig

    def propose(self, population: Population, count: int, pause: Pause) -> list[Proposal]:
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
        programs = list(fresh.values())
        selected = self.surrogate.select_batch(programs, count, beta=0.0, pending=[])
        proposals = [Proposal(programs[index], value) for index, value in selected]
        for proposal in proposals:
            population.select(proposal.individual)
        return proposals
