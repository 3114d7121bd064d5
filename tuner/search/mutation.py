"""Small changes to a trace: TVM's mutators, and drawing one decision anew."""

from __future__ import annotations

import numpy as np
from tvm.s_tir.meta_schedule import _ffi_api
from tvm.s_tir.schedule import Trace

from tuner.space.design_space import DesignSpace, sampling_instructions

_REDRAW = 0.15
"""Share of mutations that draw one decision anew: TVM's mutators know only the choices of its own rules."""


def mutate(space: DesignSpace, trace: Trace, rng: np.random.Generator) -> Trace | None:
    """A neighbour of ``trace``, or None where the drawn mutator has nothing to change."""
    if not space.mutators or rng.random() < _REDRAW:
        return redraw(trace, rng)
    probabilities = np.array([probability for _, probability in space.mutators])
    index = rng.choice(len(space.mutators), p=probabilities / probabilities.sum())
    mutator, _ = space.mutators[index]
    return _ffi_api.MutatorApply(mutator, trace, int(rng.integers(1, 2**31 - 1)))


def redraw(trace: Trace, rng: np.random.Generator) -> Trace | None:
    """The trace with one decision left open, to be drawn on replay. None where it makes no choice."""
    choices = sampling_instructions(trace)
    if not choices:
        return None
    forgotten = choices[int(rng.integers(len(choices)))]
    decisions = {inst: value for inst, value in dict(trace.decisions).items() if not inst.same_as(forgotten)}
    return Trace(trace.insts, decisions)
