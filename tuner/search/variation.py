"""Variation of traces: TVM's mutators, drawing one decision anew, and crossover of two traces."""

from __future__ import annotations

import numpy as np
from tvm.s_tir.schedule import Trace

from tuner.space.design_space import DesignSpace, sampling_instructions


def mutate(space: DesignSpace, trace: Trace, rng: np.random.Generator, redraw_share: float) -> Trace | None:
    """Return a neighbour of ``trace``, or None if the drawn mutator has nothing to change.

    With probability ``redraw_share``, and always in a space without mutators, one decision is drawn anew.
    """
    if not space.mutators or rng.random() < redraw_share:
        return redraw(trace, rng)
    probabilities = np.array([probability for _, probability in space.mutators])
    index = int(rng.choice(len(space.mutators), p=probabilities / probabilities.sum()))
    return space.mutate(index, trace, int(rng.integers(1, 2**31 - 1)))


def redraw(trace: Trace, rng: np.random.Generator) -> Trace | None:
    """Return the trace with one decision left open, which its replay draws. None if it has no choices."""
    choices = sampling_instructions(trace)
    if not choices:
        return None
    forgotten = choices[int(rng.integers(len(choices)))]
    decisions = {inst: value for inst, value in dict(trace.decisions).items() if not inst.same_as(forgotten)}
    return Trace(trace.insts, decisions)


def crossover(one: Trace, other: Trace, rng: np.random.Generator) -> Trace | None:
    """Return ``one`` with about half its decisions taken from ``other`` (uniform crossover).

    Returns None unless both make the same kinds of choices in the same order. A decision that does not fit its new
    place is rejected on replay.
    """
    choices, counterparts = sampling_instructions(one), sampling_instructions(other)
    if not choices or [inst.kind.name for inst in choices] != [inst.kind.name for inst in counterparts]:
        return None
    decisions, others = dict(one.decisions), dict(other.decisions)
    for inst, counterpart in zip(choices, counterparts, strict=True):
        if counterpart in others and rng.random() < 0.5:
            decisions[inst] = others[counterpart]
    return Trace(one.insts, decisions)
