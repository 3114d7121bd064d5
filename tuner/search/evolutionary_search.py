"""The search of one task, with an ask-and-tell interface: it proposes batches and observes their outcomes."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

import numpy as np

from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.schedule import apply_trace_json
from tuner.cost_model.model import CostModel
from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.search.proposers import Proposer
from tuner.search.proposers.evolution import Evolution
from tuner.search.proposers.known import Known
from tuner.search.proposers.random import Random
from tuner.search.proposers.seeds import Seeds
from tuner.search.proposers.transfer import Transfer
from tuner.search.surrogate import Surrogate
from tuner.space.design_space import REFUSALS, DesignSpace
from tuner.types import LOSSES, Failure, MeasureCandidate, Measured, Outcome


class EvolutionarySearch:
    """Deterministic for a given ``rng``. ``relatives``, ``known`` and ``barred`` as in `tuner.types.TaskSpec`."""

    def __init__(
        self,
        name: str,
        space: DesignSpace,
        model: CostModel,
        rng: np.random.Generator,
        relatives: Sequence[str] = (),
        known: Sequence[str] = (),
        barred: Sequence[str] = (),
        config: SearchConfig = SearchConfig(),
    ) -> None:
        self._space = space
        self._population = Population()
        self._surrogate = Surrogate(name, model, config)
        self._known: Proposer = Known(space, known)
        self._seeds: Proposer = Seeds(space, rng, [*space.seeds, *space.neighbours])
        self._transfer = Transfer(space, rng, relatives)
        self._random = Random(space, rng, config, self._surrogate)
        self._evolution: Proposer = Evolution(space, rng, config, self._surrogate, self._transfer)
        for trace in barred:
            self._bar(trace)

    def propose(self, count: int) -> list[MeasureCandidate]:
        """Return up to ``count`` programs that were not proposed before; fewer only if the space is exhausted."""
        population = self._population
        # New programs get one place of a batch of several at least, and half of it while no trials of the task guide
        # the search. A single program is the most promising one, which no model selects.
        promising = max(1, count - 1)
        batch = self._known.propose(population, promising)
        if count > 1:
            self._surrogate.fit()
        if self._surrogate.experienced:
            batch += self._seeds.propose(population, count // 2 - len(batch))
            batch += self._evolution.propose(population, count - len(batch))
        else:
            batch += self._transfer.propose(population, count // 2 - len(batch))
            batch += self._seeds.propose(population, promising - len(batch))
            if self._surrogate.ready:
                batch += self._random.propose_ranked(population, count - len(batch))
        batch += self._random.propose(population, count - len(batch))
        return [self._submit(individual) for individual in batch]

    def observe(self, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Learn from a finished trial. `LOSSES` say nothing about the program's latency."""
        if candidate.trace_json is None:
            return
        latency = outcome.least if isinstance(outcome, Measured) else None
        individual = self._population.observe(candidate.hash, latency)
        if not (isinstance(outcome, Failure) and outcome.kind in LOSSES):
            self._surrogate.observe(individual, latency)

    def resume(self, candidate: MeasureCandidate) -> None:
        """Take up a candidate of an earlier run: it is not proposed again, and may be observed."""
        if candidate.trace_json is not None:
            schedule = apply_trace_json(self._space.mod, candidate.trace_json)
            individual = Individual.of(self._space, schedule, candidate.origin, candidate.parent)
            self._population.submit(individual, candidate.hash)

    def _bar(self, trace_json: str) -> None:
        """Keep a program from being proposed. A trace that cannot be applied any more proposes none."""
        with contextlib.suppress(*REFUSALS):
            schedule = apply_trace_json(self._space.mod, trace_json)
            self._population.select(Individual.of(self._space, schedule, Origin.TRANSFER))

    def _submit(self, individual: Individual) -> MeasureCandidate:
        candidate = individual.candidate()
        self._population.submit(individual, candidate.hash)
        return candidate
