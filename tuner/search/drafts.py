"""Drafts: programs told by their decisions alone, so that hundreds can be weighed before one of them is replayed.

A draft differs from a program at hand in a choice or a few, and each is as likely to be changed as any other: a tile, a
number out of a list, where a block is computed, and the sketch, which may be changed with all decisions kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from tvm.s_tir.schedule import Trace

from tuner.search.coordinates import Coordinates, Decision, Sketch


@dataclass(frozen=True, slots=True)
class Draft:
    """A point of a sketch's space; ``trace`` is one of the sketch, whatever it decides."""

    trace: Trace
    sketch: Sketch
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, trace: Trace) -> Draft:
        """Where an open trace (that of `Individual.draft`) lies."""
        return cls(trace, *Sketch.of(trace))

    def coordinates(self) -> Coordinates:
        return self.sketch.coordinates(self.decisions)

    def decided(self) -> Trace:
        """The trace to be replayed, which may refuse it."""
        told = {
            choice.instruction: list(decision) if choice.is_tile else decision[0]
            for choice, decision in zip(self.sketch.choices, self.decisions, strict=True)
        }
        return Trace(self.trace.insts, told)


class Neighbourhood:
    """Drafts from programs of one space. What may be chosen where is learned from the programs that were seen of it."""

    def __init__(self) -> None:
        self._seen: set[frozenset[object]] = set()
        self._sketches: dict[tuple[object, ...], dict[frozenset[object], Draft]] = {}
        """A draft of each sketch; those stand together of which each may take the other's decisions."""
        self._places: dict[tuple[object, ...], list[Decision]] = {}
        """Only a replay could tell where a block may be computed: where others were."""

    def learn(self, seen: Draft) -> None:
        """It is not drafted any more, and others may take after it."""
        self._seen.add(_name(seen))
        self._sketches.setdefault(_alike(seen), {}).setdefault(frozenset(seen.sketch.fixed.items()), seen)
        for position, (choice, decision) in enumerate(zip(seen.sketch.choices, seen.decisions, strict=True)):
            if choice.kind == "SampleComputeLocation":
                known = self._places.setdefault(_place(seen, position), [])
                if decision not in known:
                    known.append(decision)

    def around(
        self, mothers: Sequence[Draft], draws: int, changes: int, rng: np.random.Generator
    ) -> Iterator[tuple[Draft, int]]:
        """Drafts that were not seen, none twice, out of so many draws; each with its mother's number.

        One choice is changed, every second time one more, up to ``changes``.
        """
        drawn: set[frozenset[object]] = set()
        for _ in range(draws):
            number = int(rng.integers(len(mothers)))
            draft = mothers[number]
            for _ in range(min(int(rng.geometric(0.5)), changes)):
                draft = self._changed(draft, rng)
            name = _name(draft)
            if name not in self._seen and name not in drawn:
                drawn.add(name)
                yield draft, number

    def _changed(self, draft: Draft, rng: np.random.Generator) -> Draft:
        options: list[int | None] = [n for n in range(len(draft.decisions)) if self._open(draft, n)]
        alike = self._sketches.get(_alike(draft), {}).values()
        others = [other for other in alike if other.sketch.fixed != draft.sketch.fixed]
        if others:
            options.append(None)
        if not options:
            return draft
        position = options[int(rng.integers(len(options)))]
        if position is None:
            return replace(others[int(rng.integers(len(others)))], decisions=draft.decisions)
        decisions = list(draft.decisions)
        decisions[position] = self._another(draft, position, rng)
        return replace(draft, decisions=tuple(decisions))

    def _open(self, draft: Draft, position: int) -> bool:
        """Whether a choice may be made otherwise."""
        choice, decision = draft.sketch.choices[position], draft.decisions[position]
        if choice.kind == "SamplePerfectTile":
            return len(decision) > 1 and max(decision) > 1
        return len(self._known(draft, position)) > 1

    def _known(self, draft: Draft, position: int) -> list[Decision]:
        choice = draft.sketch.choices[position]
        if choice.categories:
            return [(number,) for number in range(choice.categories)]
        return self._places.get(_place(draft, position), [])

    def _another(self, draft: Draft, position: int, rng: np.random.Generator) -> Decision:
        choice, decision = draft.sketch.choices[position], draft.decisions[position]
        if choice.kind == "SamplePerfectTile":
            return _moved(decision, int(choice.instruction.attrs[1]), rng)
        others = [other for other in self._known(draft, position) if other != decision]
        return others[int(rng.integers(len(others)))]


def _name(draft: Draft) -> frozenset[object]:
    return frozenset(draft.coordinates().items())


def _alike(draft: Draft) -> tuple[object, ...]:
    """Equal for drafts that choose the same kinds of things, of loops of the same extents."""
    choices = zip(draft.sketch.choices, draft.decisions, strict=True)
    return tuple((choice.kind, math.prod(decision) if choice.is_tile else 0) for choice, decision in choices)


def _place(draft: Draft, position: int) -> tuple[object, ...]:
    return (frozenset(draft.sketch.fixed.items()), position)


def _moved(factors: Decision, innermost: int, rng: np.random.Generator) -> Decision:
    """The tile with a divisor of one level's factor moved to another level; itself where the last would exceed
    ``innermost``."""
    givers = [level for level, factor in enumerate(factors) if factor > 1]
    giver = givers[int(rng.integers(len(givers)))]
    taker = (giver + 1 + int(rng.integers(len(factors) - 1))) % len(factors)
    divisors = [divisor for divisor in range(2, factors[giver] + 1) if factors[giver] % divisor == 0]
    divisor = divisors[int(rng.integers(len(divisors)))]
    moved = list(factors)
    moved[giver] //= divisor
    moved[taker] *= divisor
    return factors if 0 <= innermost < moved[-1] else tuple(moved)
