"""Evolutionary search over a design space, guided by what was measured: as in Ansor and MetaSchedule, small batches."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from tvm.s_tir import Schedule
from tvm.s_tir.schedule import Trace

from loopwright.codegen.schedule import apply_trace_json
from tuner.cost_model.features import Features, extract, to_bytes
from tuner.cost_model.model import CostModel
from tuner.search.crossover import crossover
from tuner.search.drafts import Draft, Neighbourhood
from tuner.search.individual import Individual
from tuner.search.judge import Described, Judge
from tuner.search.mutation import mutate
from tuner.search.transfer import Adapter, recall
from tuner.space.design_space import DesignSpace
from tuner.types import Failure, FailureKind, MeasureCandidate, Measured, Origin, Outcome

_NEWCOMERS = 2
"""Programs drawn at random in each round of evolution."""
_CHILDREN = 3
"""Programs made in each round by crossover, and by TVM's mutators, which a space of one's own may bring along."""
_DRAFTS = 512
"""Drafts weighed in each round, and as many for the neighbours of the best; they cost little."""
_DRAFTED = 6
"""Of these, the programs that are made."""
_CHANGES = 3
"""Choices by which a draft may differ from its parent."""
_PARENTS = 24
"""Programs of the pool that may become parents, and as many of the measured ones."""
_POOL = 192
"""Programs kept from one round to the next: most of the work is in making them, little in scoring them anew."""
_RANDOM_SHARE = 0.03
"""Of all proposals: those that ignore the model, which looks of its own accord where it knows little."""
_EARLY_RANDOM_SHARE = 0.5
"""The same while all that is known was taught by other workloads: what it would not look at, it would not learn."""
_CROSSOVER_SHARE = 0.1
_DRAWN = 64
"""Drafts drawn between two pauses."""
_NEAR_SHARE = 0.5
"""Of what the model picks: neighbours of the best measured, whatever it thinks of the rest of the pool."""
_OPTIMISM = 1.0
"""Standard deviations that the rest of the pool is given; neighbours are taken for what is expected of them."""
_CENTRES = 3
_NEIGHBOURS = 3
"""Drafts for each neighbour that is to be made: not all are accepted."""
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
        self._awaited: dict[int, Described] = {}
        """Proposed programs without an outcome."""
        self._neighbourhood = Neighbourhood()
        self._pause: Callable[[], None] = _no_pause

    def propose(self, count: int, pause: Callable[[], None] = _no_pause) -> list[MeasureCandidate]:
        """Up to ``count`` programs that were not proposed before; fewer only where the space is exhausted.

        ``pause`` is called every few milliseconds until it returns, and not after.
        """
        self._pause = pause
        try:
            return self._proposals(count)
        finally:
            self._pause = _no_pause

    def observe(self, candidate: MeasureCandidate, outcome: Outcome) -> None:
        """Learn from a finished trial. DEVICE_LOST says nothing about the program."""
        if candidate.trace_json is None:
            return
        self._awaited.pop(self._individuals[candidate.hash].program, None)
        if isinstance(outcome, Failure) and outcome.kind is FailureKind.DEVICE_LOST:
            return
        latency = outcome.least if isinstance(outcome, Measured) else None
        if latency is not None:
            self._latency[candidate.hash] = latency
        self._judge.observe(self._described[candidate.hash], latency)

    def resume(self, candidate: MeasureCandidate) -> None:
        """Take up a candidate that the ledger already holds: it is not proposed again, and may be observed."""
        if candidate.trace_json is None:
            return
        schedule = apply_trace_json(self._space.mod, candidate.trace_json)
        individual = Individual.of(schedule, candidate.origin, candidate.parent)
        self._remember(candidate, individual, self._describe(individual))

    def _proposals(self, count: int) -> list[MeasureCandidate]:
        self._judge.fit()
        # What is known comes before everything else, but never without something else beside it.
        chosen = self._transferred(count)
        left = count - len(chosen)
        explore = min(left, int(left * self._random_share() + self._rng.random()))
        if (wanted := left - explore) > 0:
            near = round(wanted * _NEAR_SHARE) if self._latency else 0
            chosen += self._ranked(wanted - near)
            chosen += self._near(near)
        chosen += [(individual, None) for individual in self._sample(count - len(chosen))]
        candidates: list[MeasureCandidate] = []
        for individual, score in chosen:
            self._pause()
            described = self._awaited.get(individual.program) or self._describe(individual)
            candidate = individual.candidate(score, to_bytes(described.features))
            self._remember(candidate, individual, described)
            candidates.append(candidate)
        return candidates

    @cached_property
    def _adapter(self) -> Adapter:
        return Adapter(self._space, self._rng)

    def _random_share(self) -> float:
        if not self._judge.ready:
            return 1.0
        return _RANDOM_SHARE if self._judge.experienced else _EARLY_RANDOM_SHARE

    def _remember(self, candidate: MeasureCandidate, individual: Individual, described: Described) -> None:
        self._proposed.add(individual.program)
        self._awaited[individual.program] = described
        self._pool.pop(individual.program, None)
        self._individuals[candidate.hash] = individual
        self._described[candidate.hash] = described

    def _describe(self, individual: Individual) -> Described:
        self._neighbourhood.learn(individual.draft)
        return Described(individual.draft.coordinates(), lambda: self._features(individual))

    def _features(self, individual: Individual) -> Features:
        self._pause()
        return extract(self._space.context, [individual.schedule])[0]

    def _transferred(self, count: int) -> list[tuple[Individual, float | None]]:
        """Of a batch of ``count``, the programs that were measured before, or adapted from those of relatives.

        The latter are half of it, and only until the task speaks for itself: then they are weighed with all others.
        """
        found: dict[int, Individual] = {}
        while self._known and len(found) < count - 1:
            self._add(found, recall(self._space, self._known.pop(0)))
        while self._relatives and not self._judge.experienced and len(found) < count // 2:
            self._add(found, self._adapter.adapt(self._relatives.pop(0)))
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
        """The ``count`` new programs that the model likes best, of the pool and of what is added to it."""
        scores = self._scores(list(self._pool))
        best = heapq.nlargest(_PARENTS, scores, key=scores.__getitem__)
        pooled = [self._pool[program].individual for program in best]
        parents = [(individual, individual.parent) for individual in pooled] + self._measured(_PARENTS)
        fresh: dict[int, Individual] = {}
        while self._relatives and self._judge.experienced:
            self._add_to_come(fresh, self._adapter.adapt(self._relatives.pop(0)))
        for _ in range(_NEWCOMERS):
            self._add_to_come(fresh, self._newcomer())
        for _ in range(_CHILDREN):
            self._add_to_come(fresh, self._child(parents))
        for individual in self._drafted(parents, _DRAFTED, changes=_CHANGES, optimism=_OPTIMISM):
            self._add_to_come(fresh, individual)
        self._put(fresh)
        scores |= self._scores(list(fresh))
        kept = heapq.nlargest(count + _POOL, scores, key=scores.__getitem__)
        chosen = self._chosen(kept, count, _OPTIMISM)
        self._pool = {program: self._pool[program] for program in kept if program not in self._proposed}
        return chosen

    def _near(self, count: int) -> list[tuple[Individual, float | None]]:
        """Of the programs that differ in one choice from one of the best few measured, the ``count`` best liked."""
        fresh: dict[int, Individual] = {}
        for individual in self._drafted(self._measured(_CENTRES), count * _NEIGHBOURS, changes=1, optimism=0.0):
            self._add_to_come(fresh, individual)
            if len(fresh) == count:
                break
        self._put(fresh)
        return self._chosen(list(fresh), count, optimism=0.0)

    def _chosen(self, programs: list[int], count: int, optimism: float) -> list[tuple[Individual, float | None]]:
        """The ``count`` programs of the pool that are to be measured, as things stand."""
        described = [self._pool[program].described for program in programs]
        chosen: list[tuple[Individual, float | None]] = []
        for number, score in self._judge.choose(described, count, optimism, list(self._awaited.values())):
            self._awaited[programs[number]] = described[number]
            self._proposed.add(programs[number])
            chosen.append((self._pool[programs[number]].individual, score))
        return chosen

    def _measured(self, count: int) -> list[tuple[Individual, str | None]]:
        """The ``count`` fastest programs measured, with their hashes."""
        keys = heapq.nsmallest(count, self._latency, key=self._latency.__getitem__)
        return [(self._individuals[key], key) for key in keys]

    def _drafted(
        self, parents: Sequence[tuple[Individual, str | None]], count: int, changes: int, optimism: float
    ) -> Iterator[Individual]:
        """Programs made of the ``count`` drafts, of some hundred, that promise most by what they decide."""
        if not parents:
            return
        mothers = [individual.draft for individual, _ in parents]
        drafts: list[tuple[Draft, int]] = []
        guesses: list[float] = []
        drawn = self._neighbourhood.around(mothers, _DRAFTS, changes, self._rng)
        while some := list(islice(drawn, _DRAWN)):
            self._pause()
            drafts += some
            guesses += self._judge.guesses([draft.coordinates() for draft, _ in some], optimism).tolist()
        for number in heapq.nlargest(count, range(len(drafts)), key=guesses.__getitem__):
            draft, mother = drafts[number]
            self._neighbourhood.learn(draft)  # one that is refused is not to come again, either
            schedule = self._replay(draft.decided())
            if schedule:
                yield Individual.of(schedule, Origin.MUTATION, parents[mother][1])

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
            trace, origin = crossover(mother.draft.trace, father.draft.trace, self._rng), Origin.CROSSOVER
        else:
            trace, origin = mutate(self._space, mother.draft.trace, self._rng), Origin.MUTATION
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

    def _put(self, fresh: dict[int, Individual]) -> None:
        """Put individuals into the pool."""
        for program, individual in fresh.items():
            self._pool[program] = _Pooled(individual, self._describe(individual))

    def _scores(self, programs: Sequence[int]) -> dict[int, float]:
        """What is thought of programs of the pool."""
        scores = self._judge.scores([self._pool[program].described for program in programs], _OPTIMISM)
        return dict(zip(programs, map(float, scores), strict=True))
