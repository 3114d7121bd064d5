"""Transfer: programs of related workloads, made for this one's extents.

Workloads are related where they differ in shapes, strides or padding only (`workload_family`): then their design spaces
make the same choices in the same order, and a decision found for one is a good guess for the other.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from loopwright.codegen.schedule import apply_trace_json
from loopwright.codegen.serialization import trace_to_json
from tuner.search.coordinates import Decision, Place
from tuner.search.drafts import Draft
from tuner.search.individual import Individual
from tuner.space.design_space import DesignSpace
from tuner.types import Origin


def recall(space: DesignSpace, trace_json: str) -> Individual | None:
    """The program of this very workload's trace as it is, in the space or not. None if it does not apply."""
    try:
        return Individual.of(apply_trace_json(space.mod, trace_json), Origin.TRANSFER)
    except (RuntimeError, ValueError, TypeError, LookupError):
        return None


@dataclass(frozen=True, slots=True)
class _Steps:
    """What a trace does before its post-processors.

    ``instructions`` are comparable text: without those whose result is not used, which some traces have been rid of,
    and with variables numbered as they are made. ``decisions`` are those of the choices among them, by `Choice.place`.
    """

    instructions: list[str]
    decisions: dict[Place, Any]

    @classmethod
    def of(cls, trace_json: str) -> _Steps:
        instructions, told = json.loads(trace_json)
        kinds = [kind for kind, *_ in instructions]
        end = kinds.index("EnterPostproc") if "EnterPostproc" in kinds else len(kinds)
        live: list[int] = []
        used: set[str] = set()
        for position in reversed(range(end)):
            kind, inputs, _, outputs = instructions[position]
            if not kind.startswith(("Get", "Sample")) or not used.isdisjoint(outputs):
                used.update(_texts(inputs))
                live.insert(0, position)
        decided = dict(told)
        seen: Counter[str] = Counter()
        numbers: dict[str, int] = {}
        texts: list[str] = []
        decisions: dict[Place, Any] = {}
        for position in live:
            kind, inputs, attributes, outputs = instructions[position]
            texts.append(json.dumps([kind, _renamed(inputs, numbers), attributes]))
            numbers |= {output: len(numbers) + i for i, output in enumerate(outputs)}
            if kind.startswith("Sample"):
                decisions[(kind, seen[kind])] = decided.get(position)
                seen[kind] += 1
        return cls(texts, decisions)


class Adapter:
    """Makes programs of one space of other workloads' traces.

    Tiles become the nearest divisors of this workload's extents, other choices are taken as they are; what a trace does
    not choose, or does not fit, is left as it was drawn once for the sketch.
    """

    def __init__(self, space: DesignSpace, rng: np.random.Generator) -> None:
        self._space = space
        self._rng = rng
        self._sketches: list[tuple[_Steps, Draft]] = []
        for open_trace in space.traces:
            schedule = space.draw(open_trace, self._seed())
            if schedule is None:
                continue
            drawn = Draft.of(schedule.trace.simplified(remove_postproc=True))
            self._sketches.append((_Steps.of(trace_to_json(drawn.trace)), drawn))

    def drafts(self, trace_json: str) -> list[Draft]:
        """One of each sketch that makes the same tiles, the likest first. A replay tells whether it is accepted."""
        theirs = _Steps.of(trace_json)
        tiled = _tiled(theirs)
        alike = [
            (SequenceMatcher(None, own.instructions, theirs.instructions, autojunk=False).ratio(), drawn)
            for own, drawn in self._sketches
            if _tiled(own) == tiled
        ]
        return [_fitted(drawn, theirs.decisions) for _, drawn in sorted(alike, key=lambda pair: -pair[0])]

    def adapt(self, trace_json: str) -> Individual | None:
        """The first of these that is accepted; None where none is."""
        for draft in self.drafts(trace_json):
            schedule = self._space.replay(draft.decided(), self._seed())
            if schedule is not None:
                return Individual.of(schedule, Origin.TRANSFER)
        return None

    def _seed(self) -> int:
        return int(self._rng.integers(1, 2**31 - 1))


def _texts(given: Any) -> Iterator[str]:
    """All text in an instruction's inputs: its variables, and what cannot be mistaken for one."""
    if isinstance(given, str):
        yield given
    elif isinstance(given, list):
        for one in given:
            yield from _texts(one)


def _renamed(given: Any, numbers: dict[str, int]) -> Any:
    if isinstance(given, list):
        return [_renamed(one, numbers) for one in given]
    return numbers.get(given, given) if isinstance(given, str) else given


def _tiled(steps: _Steps) -> dict[Place, int]:
    """In how many levels each loop is tiled."""
    return {place: len(decision) for place, decision in steps.decisions.items() if isinstance(decision, list)}


def _fitted(drawn: Draft, decisions: dict[Place, Any]) -> Draft:
    fitted: list[Decision] = []
    for choice, own in zip(drawn.sketch.choices, drawn.decisions, strict=True):
        wanted = decisions.get(choice.place)
        if choice.is_tile:
            fitted.append(tuple(fit_tile(wanted or own, math.prod(own))))
        elif wanted is None or 0 < choice.categories <= wanted:
            fitted.append(own)
        else:
            fitted.append((wanted,))
    return replace(drawn, decisions=tuple(fitted))


def fit_tile(factors: Sequence[int], extent: int) -> list[int]:
    """Factors that multiply to ``extent``, near to the given ones.

    Inner tiles keep their size, for registers, vectors and caches are what they are sized for; the outermost loop only
    counts them, and takes the rest.
    """
    fitted: list[int] = []
    left = extent
    for factor in reversed(factors[1:]):
        nearest = min(_divisors(left), key=lambda divisor: (abs(math.log(divisor / factor)), divisor))
        fitted.append(nearest)
        left //= nearest
    return [left, *reversed(fitted)]


def _divisors(number: int) -> list[int]:
    small = [n for n in range(1, math.isqrt(number) + 1) if number % n == 0]
    return small + [number // n for n in small]
