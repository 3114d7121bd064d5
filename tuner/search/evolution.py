"""Evolutionary search over a design space, guided by what was measured: as in Ansor and MetaSchedule, small batches."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from tuner import ir
from tuner.cost_model.features import extract, to_bytes
from tuner.cost_model.model import CostModel
from tuner.search.coordinates import describe
from tuner.search.crossover import crossover
from tuner.search.individual import Individual
from tuner.search.judge import Described, Judge
from tuner.search.mutation import mutate
from tuner.search.transfer import adapt, recall
from tuner.space.design_space import DesignSpace
from tuner.types import Failure, FailureKind, MeasureCandidate, Measured, Origin, Outcome

_NEWCOMERS = 8
"""Programs drawn at random in each round of evolution."""
_GENERATIONS = 2
_CHILDREN = 12
"""Of each generation."""
_PARENTS = 24
"""Programs of the pool that may become parents."""
_POOL = 192
"""Programs kept from one round to the next: most of the work is in making them, little in scoring them anew."""
_ELITE = 24
"""Measured programs that may become parents."""
_RANDOM_SHARE = 0.15
"""Of a batch: proposals that ignore the model, so that it also learns where it is not looking."""
_CROSSOVER_SHARE = 0.1
_EXTRACTED = 8
"""Programs whose features are taken between two pauses."""
_NEAR_SHARE = 0.5
"""Of what the model picks: neighbours of the best measured, whatever it thinks of the rest of the pool."""
_OPTIMISM = 1.0
"""Standard deviations that the rest of the pool is given; neighbours are taken for what is expected of them."""
_CENTRES = 3
_NEIGHBOURS = 4
"""Neighbours made for each that is picked."""
_KNOWN = 128
"""Replays that bring only known programs, after which a space counts as exhausted."""
_REFUSED = 512
"""Replays that are refused, after which it does, too: of some spaces for GPUs one program in a hundred is accepted."""


def _no_pause() -> None:
    """For who computes alone."""


@dataclass(frozen=True, slots=True)
class _Pooled:
    individual: Individual
    described: Described


class EvolutionarySearch:
    """Proposes candidates of one task and learns from their outcomes. Deterministic for a given ``rng``."""

    def __init__(
        self,
        name: str,
        space: DesignSpace,
        model: CostModel,
        rng: np.random.Generator,
        relatives: Sequence[str] = (),
        known: Sequence[str] = (),
    ) -> None:
        self._space = space
        self._judge = Judge(name, model)
        self._rng = rng
        self._relatives = list(relatives)
        self._known = list(known)
        self._proposed: set[int] = set()
        self._described: dict[str, Described] = {}
        self._individuals: dict[str, Individual] = {}
        self._latency: dict[str, float] = {}
        self._pool: dict[int, _Pooled] = {}
        self._pause: Callable[[], None] = _no_pause

    def propose(self, count: int, pause: Callable[[], None] = _no_pause) -> list[MeasureCandidate]:
        """Up to ``count`` programs that were not proposed before; fewer only where the space is exhausted.

        ``pause`` is called every few milliseconds.
        """
        self._pause = pause
        self._judge.fit()
        explore = count if not self._judge.ready else max(1, round(count * _RANDOM_SHARE))
        # What is known comes before everything else, but never without something random beside it.
        chosen = self._transferred(count - max(1, round(count * _RANDOM_SHARE)))
        if (wanted := count - explore - len(chosen)) > 0:
            near = round(wanted * _NEAR_SHARE)
            chosen += self._ranked(wanted - near)
            chosen += self._near(near)
        chosen += [(individual, None) for individual in self._sample(count - len(chosen))]
        candidates: list[MeasureCandidate] = []
        described = self._describe([individual for individual, _ in chosen])
        for (individual, score), description in zip(chosen, described, strict=True):
            candidate = individual.candidate(score, to_bytes(description.features))
            self._remember(candidate, individual, description)
            candidates.append(candidate)
        return candidates

    def observe(self, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Learn from a finished trial. DEVICE_LOST says nothing about the program."""
        if candidate.trace_json is None or (isinstance(outcome, Failure) and outcome.kind is FailureKind.DEVICE_LOST):
            return
        latency = outcome.median if isinstance(outcome, Measured) else None
        if latency is not None:
            self._latency[candidate.hash] = latency
        self._judge.observe(self._described[candidate.hash], latency)

    def resume(self, candidate: MeasureCandidate) -> None:
        """Take up a candidate that the ledger already holds: it is not proposed again, and may be observed."""
        if candidate.trace_json is None:
            return
        schedule = ir.apply_trace_json(self._space.mod, candidate.trace_json)
        individual = Individual.of(schedule, candidate.origin, candidate.parent)
        self._remember(candidate, individual, self._describe([individual])[0])

    def _remember(self, candidate: MeasureCandidate, individual: Individual, described: Described) -> None:
        self._proposed.add(individual.program)
        self._pool.pop(individual.program, None)
        self._individuals[candidate.hash] = individual
        self._described[candidate.hash] = described

    def _describe(self, individuals: Sequence[Individual]) -> list[Described]:
        features = extract(self._space.context, [individual.schedule for individual in individuals])
        coordinates = [describe(individual.open_trace()) for individual in individuals]
        return [Described(rows, found) for rows, found in zip(features, coordinates, strict=True)]

    def _transferred(self, count: int) -> list[tuple[Individual, float | None]]:
        """Up to ``count`` programs that were measured before, or adapted from those of relatives; each is used once."""
        found: dict[int, Individual] = {}
        while self._known and len(found) < count:
            self._add(found, recall(self._space, self._known.pop(0)))
        while self._relatives and len(found) < count:
            self._add(found, adapt(self._space, self._relatives.pop(0), self._rng))
        self._proposed.update(found)
        return [(individual, None) for individual in found.values()]

    def _sample(self, count: int) -> list[Individual]:
        """Up to ``count`` new programs, decisions drawn at random from traces drawn at random."""
        found: dict[int, Individual] = {}
        known = refused = 0
        while len(found) < count and known < _KNOWN and refused < _REFUSED:
            individual = self._newcomer()
            if individual is None:
                refused += 1
            elif self._add(found, individual):
                known = refused = 0
            else:
                known += 1
        for individual in found.values():
            self._proposed.add(individual.program)
        return list(found.values())

    def _ranked(self, count: int) -> list[tuple[Individual, float | None]]:
        """The ``count`` new programs that the model likes best after some generations."""
        elite = heapq.nsmallest(_ELITE, self._latency, key=self._latency.__getitem__)
        measured: list[tuple[Individual, str | None]] = [(self._individuals[key], key) for key in elite]
        scores = self._scores(list(self._pool), _OPTIMISM)
        fresh: dict[int, Individual] = {}
        for _ in range(_NEWCOMERS):
            self._add_to_come(fresh, self._newcomer())
        for _ in range(_GENERATIONS):
            best = heapq.nlargest(_PARENTS, scores, key=scores.__getitem__)
            pooled = [self._pool[program].individual for program in best]
            parents = [(individual, individual.parent) for individual in pooled] + measured
            for _ in range(_CHILDREN):
                self._add_to_come(fresh, self._child(parents))
            scores |= self._pooled(fresh, _OPTIMISM)
            fresh = {}
        best = heapq.nlargest(count + _POOL, scores, key=scores.__getitem__)
        chosen: list[tuple[Individual, float | None]] = [
            (self._pool[program].individual, scores[program]) for program in best[:count]
        ]
        self._proposed.update(best[:count])
        self._pool = {program: self._pool[program] for program in best[count:]}
        return chosen

    def _near(self, count: int) -> list[tuple[Individual, float | None]]:
        """Of small changes to the best few programs measured, the ``count`` that the model likes best."""
        centres = heapq.nsmallest(_CENTRES, self._latency, key=self._latency.__getitem__)
        parents: list[tuple[Individual, str | None]] = [(self._individuals[key], key) for key in centres]
        fresh: dict[int, Individual] = {}
        for _ in range(count * _NEIGHBOURS):
            self._add_to_come(fresh, self._child(parents))
        scores = self._pooled(fresh, optimism=0.0)
        best = heapq.nlargest(count, scores, key=scores.__getitem__)
        self._proposed.update(best)
        return [(fresh[program], scores[program]) for program in best]

    def _newcomer(self) -> Individual | None:
        traces = self._space.traces
        schedule = self._replay(traces[int(self._rng.integers(len(traces)))])
        return Individual.of(schedule, Origin.RANDOM) if schedule else None

    def _child(self, parents: list[tuple[Individual, str | None]]) -> Individual | None:
        if not parents:
            return None
        mother, key = parents[int(self._rng.integers(len(parents)))]
        if self._rng.random() < _CROSSOVER_SHARE:
            father, _ = parents[int(self._rng.integers(len(parents)))]
            trace, origin = crossover(mother.open_trace(), father.open_trace(), self._rng), Origin.CROSSOVER
        else:
            trace, origin = mutate(self._space, mother.open_trace(), self._rng), Origin.MUTATION
        schedule = self._replay(trace) if trace is not None else None
        return Individual.of(schedule, origin, key) if schedule else None

    def _replay(self, trace: Trace) -> Schedule | None:
        self._pause()
        return self._space.replay(trace, int(self._rng.integers(1, 2**31 - 1)))

    def _add(self, found: dict[int, Individual], individual: Individual | None) -> bool:
        """Take an individual up if it is new; says whether it was. One that waits in the pool is new, too."""
        if individual is None or individual.program in self._proposed or individual.program in found:
            return False
        found[individual.program] = individual
        return True

    def _add_to_come(self, fresh: dict[int, Individual], individual: Individual | None) -> None:
        """Take an individual up for the pool, if it is not there."""
        if individual is not None and individual.program not in self._pool:
            self._add(fresh, individual)

    def _pooled(self, fresh: dict[int, Individual], optimism: float) -> dict[int, float]:
        """Put individuals into the pool; returns what is thought of them."""
        individuals = list(fresh.values())
        for start in range(0, len(individuals), _EXTRACTED):
            self._pause()
            some = individuals[start : start + _EXTRACTED]
            for individual, described in zip(some, self._describe(some), strict=True):
                self._pool[individual.program] = _Pooled(individual, described)
        return self._scores(list(fresh), optimism)

    def _scores(self, programs: Sequence[int], optimism: float) -> dict[int, float]:
        """What is thought of programs of the pool."""
        scores = self._judge.scores([self._pool[program].described for program in programs], optimism)
        return dict(zip(programs, map(float, scores), strict=True))
