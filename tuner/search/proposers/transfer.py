"""Proposes programs of related workloads, adapted to this workload's extents.

Related workloads differ in shapes, strides or padding only (`workload_family`). Their design spaces make the same
choices in the same order, so a decision that was good for one is likely to be good for the other.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from functools import cached_property
from typing import Any

import numpy as np

from loopwright.codegen.kinds import Origin
from loopwright.codegen.rule import KNOB, RULE
from loopwright.codegen.serialization import trace_to_json
from tuner.search.encoding import Decision, DecisionVector, Key
from tuner.search.individual import Individual
from tuner.search.population import Population
from tuner.space.design_space import DesignSpace


class Transfer:
    """Adapts traces of related workloads, in the given order.

    Tiles become the nearest divisors of this workload's extents, other decisions are taken over. A decision that the
    trace does not make, or that does not fit, is the one that was drawn once for the sketch.
    """

    def __init__(self, space: DesignSpace, rng: np.random.Generator, traces: Sequence[str] = ()) -> None:
        self._space = space
        self._rng = rng
        self._traces = list(traces)

    def propose(self, population: Population, count: int) -> list[Individual]:
        selected: list[Individual] = []
        while self._traces and len(selected) < count:
            individual = self.adapt(self._traces.pop(0))
            if individual is not None and population.select(individual):
                selected.append(individual)
        return selected

    @cached_property
    def remaining(self) -> list[DecisionVector]:
        """The vectors of all traces that `propose` has not come to, once it is not called any more."""
        return [vector for trace in self._traces for vector in self.vectors(trace)]

    def adapt(self, trace_json: str) -> Individual | None:
        """Return the program of the first vector that the space accepts; None if it accepts none."""
        for vector in self.vectors(trace_json):
            individual = Individual.replay(self._space, vector.decided_trace(), self._rng, Origin.TRANSFER)
            if individual is not None:
                return individual
        return None

    def vectors(self, trace_json: str) -> list[DecisionVector]:
        """Return a vector of each sketch of the same rule, or with the same tiles, the most similar sketch first."""
        other = _Steps.of(trace_json)
        similar = [
            (SequenceMatcher(None, own.instructions, other.instructions, autojunk=False).ratio(), vector)
            for own, vector in self._sketches
            if own.rule == other.rule and own.tile_levels == other.tile_levels
        ]
        return [_fit(vector, other.decisions) for _, vector in sorted(similar, key=lambda pair: -pair[0])]

    @cached_property
    def _sketches(self) -> list[tuple[_Steps, DecisionVector]]:
        """A vector of each sketch of the space, with decisions drawn at random."""
        drawn = [self._space.draw(trace, int(self._rng.integers(1, 2**31 - 1))) for trace in self._space.traces]
        vectors = [DecisionVector.of(s.trace.simplified(remove_postproc=True)) for s in drawn if s is not None]
        return [(_Steps.of(trace_to_json(vector.trace)), vector) for vector in vectors]


@dataclass(frozen=True, slots=True)
class _Steps:
    """The steps of a trace before postprocessing.

    ``instructions`` are JSON texts of the instructions whose results are used (`simplified` removes the others), with
    variables numbered in the order in which they are defined; ``decisions`` are by the key of their `Choice`.
    """

    instructions: list[str]
    decisions: dict[Key, Any]
    rule: str | None
    """The annotation that names the rule of Loopwright's own, if the sketch is of one."""

    @property
    def tile_levels(self) -> dict[Key, int]:
        return {key: len(decision) for key, decision in self.decisions.items() if isinstance(decision, list)}

    @classmethod
    def of(cls, trace_json: str) -> _Steps:
        instructions, decision_pairs = json.loads(trace_json)
        kinds = [kind for kind, *_ in instructions]
        end = kinds.index("EnterPostproc") if "EnterPostproc" in kinds else len(kinds)
        live: list[int] = []
        used: set[str] = set()
        for position in reversed(range(end)):
            kind, inputs, _, outputs = instructions[position]
            if not kind.startswith(("Get", "Sample")) or not used.isdisjoint(outputs):
                used.update(_strings(inputs))
                live.insert(0, position)
        decided = dict(decision_pairs)
        knobs = {
            inputs[1]: attributes[0].removeprefix(KNOB)
            for kind, inputs, attributes, _ in instructions[:end]
            if kind == "Annotate" and isinstance(inputs[1], str) and attributes[0].startswith(KNOB)
        }
        counts: Counter[str] = Counter()
        numbers: dict[str, int] = {}
        texts: list[str] = []
        decisions: dict[Key, Any] = {}
        for position in live:
            kind, inputs, attributes, outputs = instructions[position]
            texts.append(json.dumps([kind, _numbered(inputs, numbers), attributes]))
            numbers |= {output: len(numbers) + i for i, output in enumerate(outputs)}
            if kind.startswith("Sample"):
                decisions[(kind, knobs.get(outputs[0], counts[kind]))] = decided.get(position)
                counts[kind] += 1
        annotations = [attributes[0] for kind, _, attributes, _ in instructions[:end] if kind == "Annotate"]
        rule = next((name for name in annotations if name.startswith(RULE)), None)
        return cls(texts, decisions, rule)


def _strings(value: Any) -> Iterator[str]:
    """Yield all strings in an instruction's inputs, among them its variables."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


def _numbered(value: Any, numbers: dict[str, int]) -> Any:
    """Replace the variables in an instruction's inputs by their numbers."""
    if isinstance(value, list):
        return [_numbered(item, numbers) for item in value]
    return numbers.get(value, value) if isinstance(value, str) else value


def _fit(vector: DecisionVector, decisions: dict[Key, Any]) -> DecisionVector:
    """Replace the vector's decisions by those given, as far as they fit."""
    fitted: list[Decision] = []
    for choice, own in zip(vector.choices, vector.decisions, strict=True):
        given = decisions.get(choice.key)
        if choice.is_tile:
            fitted.append(tuple(fit_tile(given or own, math.prod(own))))
        elif given is None or 0 < choice.categories <= given:
            fitted.append(own)
        else:
            fitted.append((given,))
    return replace(vector, decisions=tuple(fitted))


def fit_tile(factors: Sequence[int], extent: int) -> list[int]:
    """Return factors whose product is ``extent``, near the given ones.

    Inner tiles keep their size, because they are sized for registers, vectors and caches; the outermost factor is what
    remains.
    """
    fitted: list[int] = []
    rest = extent
    for factor in reversed(factors[1:]):
        nearest = min(_divisors(rest), key=lambda divisor: (abs(math.log(divisor / factor)), divisor))
        fitted.append(nearest)
        rest //= nearest
    return [rest, *reversed(fitted)]


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in small]
