"""The neighbourhood of programs: mutations of decision vectors, which need no replay of a trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from tuner.search.encoding import Decision, DecisionVector

_Identity = tuple[frozenset[object], tuple[Decision, ...]]
"""What two vectors of the same program have in common: the sketch and its decisions."""


class Neighbourhood:
    """Mutates decision vectors of one space.

    A mutation changes a tile, a category, a compute location or the sketch, each with the same probability. Sketches
    and compute locations that are possible are learned from the vectors that were observed.
    """

    def __init__(self) -> None:
        self._observed: set[_Identity] = set()
        self._sketches: dict[tuple[object, ...], dict[frozenset[object], DecisionVector]] = {}
        """Layout of the decisions -> a vector of each sketch of that layout: their decisions are interchangeable."""
        self._locations: dict[tuple[object, ...], list[Decision]] = {}
        """Sketch and position -> compute locations observed there. Only a replay could tell which others are valid."""

    def observe(self, vector: DecisionVector) -> None:
        """Learn the sketch and the compute locations of a vector, and never return the vector as a mutant."""
        self._observed.add(_identity(vector))
        self._sketches.setdefault(vector.layout, {}).setdefault(vector.sketch, vector)
        for position, (choice, decision) in enumerate(zip(vector.choices, vector.decisions, strict=True)):
            if choice.kind == "SampleComputeLocation":
                known = self._locations.setdefault((vector.sketch, position), [])
                if decision not in known:
                    known.append(decision)

    def __contains__(self, vector: DecisionVector) -> bool:
        """Return whether the vector was observed."""
        return _identity(vector) in self._observed

    def mutants(
        self, parents: Sequence[DecisionVector], draws: int, max_changes: int, rng: np.random.Generator
    ) -> Iterator[tuple[DecisionVector, int]]:
        """Yield the distinct vectors of ``draws`` mutations that were not observed, each with its parent's index.

        A mutation changes one decision, and with probability 1/2 each time another one, up to ``max_changes``.
        """
        drawn: set[_Identity] = set()
        for _ in range(draws if parents else 0):
            index = int(rng.integers(len(parents)))
            vector = parents[index]
            for _ in range(min(int(rng.geometric(0.5)), max_changes)):
                vector = self._mutate(vector, rng)
            identity = _identity(vector)
            if identity not in self._observed and identity not in drawn:
                drawn.add(identity)
                yield vector, index

    def _mutate(self, vector: DecisionVector, rng: np.random.Generator) -> DecisionVector:
        positions: list[int | None] = [n for n in range(len(vector.decisions)) if self._is_open(vector, n)]
        compatible = self._sketches.get(vector.layout, {}).values()
        others = [other for other in compatible if other.sketch != vector.sketch]
        if others:
            positions.append(None)
        if not positions:
            return vector
        position = positions[int(rng.integers(len(positions)))]
        if position is None:
            return replace(others[int(rng.integers(len(others)))], decisions=vector.decisions)
        decisions = list(vector.decisions)
        decisions[position] = self._another(vector, position, rng)
        return replace(vector, decisions=tuple(decisions))

    def _is_open(self, vector: DecisionVector, position: int) -> bool:
        """Return whether a choice has more than one known decision."""
        choice, decision = vector.choices[position], vector.decisions[position]
        if choice.kind == "SamplePerfectTile":
            return len(decision) > 1 and max(decision) > 1
        return (choice.categories or len(self._known_locations(vector, position))) > 1

    def _known_locations(self, vector: DecisionVector, position: int) -> Sequence[Decision]:
        return self._locations.get((vector.sketch, position), ())

    def _another(self, vector: DecisionVector, position: int, rng: np.random.Generator) -> Decision:
        choice, decision = vector.choices[position], vector.decisions[position]
        if choice.kind == "SamplePerfectTile":
            return _move_divisor(decision, choice.max_innermost, rng)
        alternatives: Sequence[Decision] = [(index,) for index in range(choice.categories)]
        others = [other for other in alternatives or self._known_locations(vector, position) if other != decision]
        return others[int(rng.integers(len(others)))]


def _identity(vector: DecisionVector) -> _Identity:
    return vector.sketch, vector.decisions


def _move_divisor(factors: Decision, max_innermost: int, rng: np.random.Generator) -> Decision:
    """Move a random divisor of one level's factor to another level.

    Returns the tile unchanged if the innermost factor would exceed ``max_innermost`` (-1: no limit).
    """
    sources = [level for level, factor in enumerate(factors) if factor > 1]
    source = sources[int(rng.integers(len(sources)))]
    target = (source + 1 + int(rng.integers(len(factors) - 1))) % len(factors)
    divisors = _divisors(factors[source])
    divisor = divisors[int(rng.integers(len(divisors)))]
    moved = list(factors)
    moved[source] //= divisor
    moved[target] *= divisor
    return factors if 0 <= max_innermost < moved[-1] else tuple(moved)


@cache
def _divisors(number: int) -> list[int]:
    """Return the divisors of a number above 1, in order."""
    return [divisor for divisor in range(2, number + 1) if number % divisor == 0]
