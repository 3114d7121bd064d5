"""Transfer: fast programs of related workloads, adapted to this one's extents as the first to be tried.

Workloads are related where they differ in shapes, strides or padding only (`tuner.ir.family`): then their design spaces
make the same choices in the same order, and a decision found for one is a good guess for the other.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from tvm.s_tir.schedule import Trace

from tuner import ir
from tuner.search.individual import Individual
from tuner.space.design_space import DesignSpace
from tuner.types import Origin


def recall(space: DesignSpace, trace_json: str) -> Individual | None:
    """The program of this very workload's trace as it is, in the space or not. None if it does not apply."""
    try:
        return Individual.of(ir.apply_trace_json(space.mod, trace_json), Origin.TRANSFER)
    except (RuntimeError, ValueError, TypeError, LookupError):
        return None


def adapt(space: DesignSpace, trace_json: str, rng: np.random.Generator) -> Individual | None:
    """The program of another workload's trace, made for this space. None where no trace of it makes the same choices.

    Tiles become the nearest divisors of this workload's extents; other choices are taken as they are, and drawn anew
    where they do not fit.
    """
    instructions, decisions = json.loads(trace_json)
    wanted = _before_postproc(instructions)
    given = {position: decision for position, decision in decisions if position < len(wanted)}
    here = {number: _before_postproc(json.loads(ir.trace_to_json(t))[0]) for number, t in enumerate(space.traces)}
    alike = {number: _likeness(own, wanted) for number, own in here.items()}
    for number in sorted((n for n in alike if alike[n] > 0), key=lambda n: -alike[n]):
        open_trace = space.traces[number]
        adapted = _decisions(space, open_trace, given, rng)
        schedule = space.replay(Trace(open_trace.insts, adapted), int(rng.integers(1, 2**31 - 1)))
        if schedule is not None:
            return Individual.of(schedule, Origin.TRANSFER)
    return None


def _before_postproc(instructions: list[Any]) -> list[Any]:
    kinds = [kind for kind, *_ in instructions]
    return instructions[: kinds.index("EnterPostproc")] if "EnterPostproc" in kinds else instructions


def _likeness(own: list[Any], wanted: list[Any]) -> int:
    """How many instructions are equal where the kinds are the same throughout; otherwise 0. Numbers may be extents."""
    if [kind for kind, *_ in own] != [kind for kind, *_ in wanted]:
        return 0
    return sum(one == other for one, other in zip(own, wanted, strict=True))


def _decisions(
    space: DesignSpace, open_trace: Trace, given: dict[int, Any], rng: np.random.Generator
) -> dict[Any, Any]:
    """For the open trace's choices, the given decisions by position, fitted."""
    schedule = ir.new_schedule(space.mod, int(rng.integers(1, 2**31 - 1)))
    open_trace.apply_to_schedule(schedule, remove_postproc=True)
    # A tile's factors multiply to its loop's extent, whatever was drawn.
    drawn = dict(schedule.trace.decisions)
    here: list[Any] = [drawn.get(inst) for inst in schedule.trace.insts]
    adapted: dict[Any, Any] = {}
    for position, inst in enumerate(open_trace.insts):
        if position not in given:
            continue
        decision = given[position]
        if str(inst.kind.name) == "SamplePerfectTile":
            own = [int(factor) for factor in here[position]]
            if len(own) != len(decision):
                continue
            decision = fit_tile([int(factor) for factor in decision], math.prod(own))
        adapted[inst] = decision
    return adapted


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
