"""The neighbours of a scheduled program, each with one decision replaced. Runs in a disposable child."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from loopwright.codegen.functions import write_only
from loopwright.codegen.kinds import Origin
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.inspection.answers import Variant, Variants
from tuner.inspection.decisions import changes
from tuner.search.encoding import Decision, DecisionVector, SampledChoice
from tuner.search.individual import Individual
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace

_OF_A_DECISION = 2
"""Neighbours of one decision: the nearest on either side. Not tuned."""
_SEED = 1


def variants(module_json: str, target_json: str, trace_json: str, most: int) -> Iterator[Variants]:
    """Yield up to ``most`` neighbours of a program in the built-in space, from all decisions in turn.

    A program whose trace has no decisions, as one that was imported, has none. Neighbours that the space refuses, or
    that are the same program, are left out.
    """
    mod = module_from_json(module_json)
    space = builtin_space(mod, target_from(target_json), _SEED)
    found = itertools.islice(_neighbours(space, trace_json), most)
    yield Variants(write_only(mod["main"]), tuple(Variant(changes(mod, trace_json, trace), trace) for trace in found))


def _neighbours(space: DesignSpace, trace_json: str) -> Iterator[str]:
    own = Individual.of(space, apply_trace_json(space.mod, trace_json), Origin.SEED)
    programs = {own.program}
    rng = np.random.default_rng(_SEED)
    # One of each decision, then a second one of each.
    ways = [_of_decision(own.vector, position) for position in range(len(own.vector.choices))]
    for decisions in itertools.chain.from_iterable(itertools.zip_longest(*ways)):
        if decisions is None:
            continue
        trace = replace(own.vector, decisions=decisions).decided_trace()
        variant = Individual.replay(space, trace, rng, Origin.MUTATION)
        if variant is not None and variant.program not in programs:
            programs.add(variant.program)
            yield trace_to_json(variant.schedule.trace)


def _of_decision(vector: DecisionVector, position: int) -> list[tuple[Decision, ...]]:
    others = list(_others(vector.choices[position], vector.decisions[position]))
    return [
        (*vector.decisions[:position], other, *vector.decisions[position + 1 :]) for other in others[:_OF_A_DECISION]
    ]


def _others(choice: SampledChoice, decision: Decision) -> Iterator[Decision]:
    """Yield the nearest other decisions of a choice. A replay may refuse them."""
    if not choice.is_tile:
        [index] = decision
        for other in (index + 1, index - 1):
            if not choice.categories or 0 <= other < choice.categories:
                yield (other,)
        return
    # The innermost level decides the most: its factor becomes smaller, or larger.
    for source, target in ((len(decision) - 1, len(decision) - 2), (len(decision) - 2, len(decision) - 1)):
        if decision[source] > 1:
            divisor = _least_divisor(decision[source])
            moved = list(decision)
            moved[source] //= divisor
            moved[target] *= divisor
            yield tuple(moved)


def _least_divisor(number: int) -> int:
    return next(divisor for divisor in itertools.count(2) if number % divisor == 0)
