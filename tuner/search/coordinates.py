"""Where a program lies in its space: its decisions as numbers, such that programs that differ little lie close."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
from tvm.s_tir.schedule import Trace
from tvm.tirx import IntImm

from tuner.cost_model.gaussian_process import Matrix

Coordinates = dict[tuple[object, ...], float]
"""By place: the kind of choice, how manyeth of its kind it is, and what of it."""


def describe(trace: Trace) -> Coordinates:
    """Half the binary logarithms of tile factors and annotated numbers, the numbers of categories, and a 1 for each
    other place that was chosen.

    Of an open trace (`Individual.open_trace`): any other tells also how the program came about. Choices are counted by
    kind, so that sketches share what they have in common, and tell themselves apart by a 1.
    """
    decided = dict(trace.decisions)
    seen: Counter[str] = Counter()
    kinds: list[str] = []
    found: Coordinates = {}
    for inst in trace.insts:
        kind = inst.kind.name
        kinds.append(kind)
        if kind == "Annotate" and isinstance(inst.inputs[1], IntImm):
            found[(kind, str(inst.attrs[0]))] = _half_log2(1 + abs(int(inst.inputs[1])))
        if inst not in decided:
            continue
        place, decision = (kind, seen[kind]), decided[inst]
        seen[kind] += 1
        if kind in ("SamplePerfectTile", "SamplePartitionedTile"):
            found |= {(*place, level): _half_log2(int(factor)) for level, factor in enumerate(decision)}
        elif kind == "SampleCategorical":
            found[place] = float(decision)
        else:
            found[(*place, int(decision))] = 1.0
    found[("sketch", *kinds)] = 1.0
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
