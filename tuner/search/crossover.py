"""Crossing two traces of one design space: each choice from one parent or the other."""

from __future__ import annotations

import numpy as np
from tvm.s_tir.schedule import Trace

from tuner.space.design_space import sampling_instructions


def crossover(mother: Trace, father: Trace, rng: np.random.Generator) -> Trace | None:
    """The mother's instructions with about half the father's decisions. None where they do not line up.

    Parents line up when they make the same kinds of choices in the same order; a decision that does not fit
    its new place is refused on replay.
    """
    mine, theirs = sampling_instructions(mother), sampling_instructions(father)
    if not mine or [inst.kind.name for inst in mine] != [inst.kind.name for inst in theirs]:
        return None
    decisions = dict(mother.decisions)
    given = dict(father.decisions)
    for inst, other in zip(mine, theirs, strict=True):
        if other in given and rng.random() < 0.5:
            decisions[inst] = given[other]
    return Trace(mother.insts, decisions)
