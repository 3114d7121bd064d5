"""Where a program lies in its space: its decisions as numbers, such that programs that differ little lie close."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm.s_tir.schedule import Instruction, Trace
from tvm.tirx import IntImm

from tuner.cost_model.gaussian_process import Matrix

Place = tuple[object, ...]
Coordinates = dict[Place, float]
"""By place: the kind of choice, how manyeth of its kind it is, and what of it."""

Decision = tuple[int, ...]
"""A tile's factors; or the number of a category or of a place, alone."""

_TILES = ("SamplePerfectTile", "SamplePartitionedTile")


@dataclass(frozen=True, slots=True)
class Choice:
    """A sampling instruction of a trace, of the given kind, and its place among the others of its kind."""

    instruction: Instruction
    kind: str
    place: Place

    @property
    def is_tile(self) -> bool:
        return self.kind in _TILES

    @property
    def categories(self) -> int:
        """How many there are to choose from, where they are listed; otherwise 0."""
        return len(self.instruction.attrs[0]) if self.kind == "SampleCategorical" else 0

    def coordinates(self, decision: Decision) -> Coordinates:
        """Half the binary logarithms of a tile's factors, the number of a category, and a 1 for any other place."""
        if self.is_tile:
            return {(*self.place, level): _half_log2(factor) for level, factor in enumerate(decision)}
        if self.kind == "SampleCategorical":
            return {self.place: float(decision[0])}
        return {(*self.place, decision[0]): 1.0}


@dataclass(frozen=True, slots=True)
class Sketch:
    """What programs share that differ in their decisions only: an open trace's instructions.

    ``fixed`` are the coordinates that tell the sketch from others, and its annotations from each other.
    """

    choices: tuple[Choice, ...]
    fixed: Coordinates

    @classmethod
    def of(cls, trace: Trace) -> tuple[Sketch, tuple[Decision, ...]]:
        """The sketch of an open trace (that of `Individual.draft`), and what is decided for each of its choices.

        Of an open trace: any other tells also how the program came about. Choices are counted by kind, so that sketches
        share what they have in common, and tell themselves apart by a 1.
        """
        decided = dict(trace.decisions)
        seen: Counter[str] = Counter()
        made: dict[object, int] = {}
        name: list[Place] = []
        fixed: Coordinates = {}
        choices: list[Choice] = []
        decisions: list[Decision] = []
        for inst in trace.insts:
            kind = str(inst.kind.name)
            # Many a sketch differs from another only in the loop that an instruction is given.
            name.append((kind, *(made[given] for given in inst.inputs if given in made)))
            for output in inst.outputs:
                made[output] = len(made)
            if kind == "Annotate" and isinstance(inst.inputs[1], IntImm):
                fixed[(kind, str(inst.attrs[0]))] = _half_log2(1 + abs(int(inst.inputs[1])))
            if inst in decided:
                choices.append(Choice(inst, kind, (kind, seen[kind])))
                decision = decided[inst]
                decisions.append(tuple(map(int, decision)) if choices[-1].is_tile else (int(decision),))
                seen[kind] += 1
        fixed[("sketch", *name)] = 1.0
        return cls(tuple(choices), fixed), tuple(decisions)

    def coordinates(self, decisions: Sequence[Decision]) -> Coordinates:
        """Of the program with these decisions, one for each choice."""
        found = dict(self.fixed)
        for choice, decision in zip(self.choices, decisions, strict=True):
            found |= choice.coordinates(decision)
        return found


def _half_log2(number: int) -> float:
    return math.log2(number) / 2


class Places:
    """The columns of rows: the places that some programs have, and one for all that they have not."""

    def __init__(self, described: Sequence[Coordinates]) -> None:
        self._columns = {place: i for i, place in enumerate(dict.fromkeys(p for found in described for p in found))}

    def rows(self, described: Sequence[Coordinates]) -> Matrix:
        """A row for each [programs, places + 1]; 0 where one has not a place.

        Distances to the programs whose places these are count the places that those have not, too.
        """
        rows = np.zeros((len(described), len(self._columns) + 1))
        for row, found in zip(rows, described, strict=True):
            for place, value in found.items():
                column = self._columns.get(place)
                if column is None:
                    row[-1] += value**2
                else:
                    row[column] = value
        rows[:, -1] = np.sqrt(rows[:, -1])
        return rows
