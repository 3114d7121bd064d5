"""Encoding: the decisions of a program as numbers, such that programs that differ little lie close together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tvm.s_tir.schedule import Instruction, Trace
from tvm.tirx import IntImm

from loopwright.codegen.rule import knob_names
from tuner.cost_model.gaussian_process import FloatArray

Key = tuple[object, ...]
"""Name of a feature: instruction kind, index among the instructions of its kind, part of the decision."""
Encoding = dict[Key, float]
"""The features of one program by name. A feature that is missing has the value 0."""

Decision = tuple[int, ...]
"""The factors of a tile, or the index of a category or of a loop as the only item."""

_TILES = ("SamplePerfectTile", "SamplePartitionedTile")


@dataclass(frozen=True, slots=True)
class SampledChoice:
    """A sampling instruction of a trace, with its kind and the key (kind, index among its kind).

    ``categories`` is the number of those of a categorical choice, ``max_innermost`` the limit on the last factor of a
    perfect tile (-1: none); both are 0 for other kinds.
    """

    instruction: Instruction
    kind: str
    key: Key
    categories: int
    max_innermost: int

    @classmethod
    def of(cls, instruction: Instruction, kind: str, key: Key) -> SampledChoice:
        categories = len(instruction.attrs[0]) if kind == "SampleCategorical" else 0
        max_innermost = int(instruction.attrs[1]) if kind == "SamplePerfectTile" else 0
        return cls(instruction, kind, key, categories, max_innermost)

    @property
    def is_tile(self) -> bool:
        return self.kind in _TILES

    def encode(self, decision: Decision) -> Encoding:
        """Return half the binary logarithm of each tile factor, the index of a category, or a one-hot compute location.

        The half makes a step from one divisor to another as long as a step from one category to the next.
        """
        if self.is_tile:
            return {(*self.key, level): _half_log2(factor) for level, factor in enumerate(decision)}
        if self.kind == "SampleCategorical":
            return {self.key: float(decision[0])}
        return {(*self.key, decision[0]): 1.0}


@dataclass(frozen=True, slots=True)
class DecisionVector:
    """A program as its sketch, the instructions of an open trace, and a decision for each choice of the sketch.

    ``trace`` is any trace of the sketch; ``fixed`` encodes what no decision changes: a one-hot feature for the sketch,
    and the values of its annotations; ``sketch`` is the same to compare. ``layout`` is equal for vectors with the same
    choices: over equal extents, or of as many categories.
    """

    trace: Trace
    choices: tuple[SampledChoice, ...]
    fixed: Encoding
    sketch: frozenset[object]
    layout: tuple[object, ...]
    decisions: tuple[Decision, ...]

    @classmethod
    def of(cls, trace: Trace) -> DecisionVector:
        """Return the decision vector of a trace without postprocessing, whose instructions depend on the sketch only.

        Choices are counted by kind, so that sketches share features where they are alike; a rule's knobs have names.
        """
        decided = dict(trace.decisions)
        knobs = knob_names(trace.insts)
        counts: Counter[str] = Counter()
        numbers: dict[object, int] = {}
        name: list[Key] = []
        fixed: Encoding = {}
        choices: list[SampledChoice] = []
        decisions: list[Decision] = []
        for inst in trace.insts:
            kind = str(inst.kind.name)
            # Some sketches differ only in the loop that an instruction takes, so the name includes the inputs.
            name.append((kind, *(numbers[value] for value in inst.inputs if value in numbers)))
            for output in inst.outputs:
                numbers[output] = len(numbers)
            if kind == "Annotate" and isinstance(inst.inputs[1], IntImm):
                fixed[(kind, str(inst.attrs[0]))] = _half_log2(1 + abs(int(inst.inputs[1])))
            if inst in decided:
                key = (kind, counts[kind]) if inst.outputs[0] not in knobs else (kind, knobs[inst.outputs[0]])
                choices.append(SampledChoice.of(inst, kind, key))
                decision = decided[inst]
                decisions.append(tuple(map(int, decision)) if choices[-1].is_tile else (int(decision),))
                counts[kind] += 1
        fixed[("sketch", *name)] = 1.0
        layout = tuple(
            (choice.key, math.prod(decision) if choice.is_tile else choice.categories)
            for choice, decision in zip(choices, decisions, strict=True)
        )
        return cls(trace, tuple(choices), fixed, frozenset(fixed.items()), layout, tuple(decisions))

    def encode(self) -> Encoding:
        encoding = dict(self.fixed)
        for choice, decision in zip(self.choices, self.decisions, strict=True):
            encoding |= choice.encode(decision)
        return encoding

    def decided_trace(self) -> Trace:
        """Return the trace with these decisions. Its replay may reject them."""
        decided = {
            choice.instruction: list(decision) if choice.is_tile else decision[0]
            for choice, decision in zip(self.choices, self.decisions, strict=True)
        }
        return Trace(self.trace.insts, decided)


def _half_log2(number: int) -> float:
    return math.log2(number) / 2


class Vectorizer:
    """Turns encodings into rows, with a column for each feature of the given encodings and one for all others."""

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self._columns = {key: i for i, key in enumerate(dict.fromkeys(key for e in encodings for key in e))}

    def transform(self, encodings: Sequence[Encoding]) -> FloatArray:
        """Return float64 [encodings, features + 1].

        The last column is the Euclidean norm of the unknown features, so that distances between a known and an unknown
        program are those of their whole encodings.
        """
        rows = np.zeros((len(encodings), len(self._columns) + 1))
        for row, encoding in zip(rows, encodings, strict=True):
            for key, value in encoding.items():
                column = self._columns.get(key)
                if column is None:
                    row[-1] += value**2
                else:
                    row[column] = value
        rows[:, -1] = np.sqrt(rows[:, -1])
        return rows
