"""On GPUs, puts the elementwise blocks after a product or a convolution into one, before TVM's rules see them.

TVM's rules compute what follows in the kernel of the reduction if it is a chain of blocks. If several blocks read one
result, as in GELU or SiLU, they write the reduction to global memory, and a second kernel reads it from there.
"""

from __future__ import annotations

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from tuner.space.design_space import REFUSALS


def inlined(mod: tvm.IRModule) -> Schedule:
    """Return a schedule in which what follows the only reduction is one block, if it is no chain of blocks.

    It has no steps if there is more than one reduction or one result, or if TVM cannot inline a block.
    """
    schedule = new_schedule(mod)
    program = AnalysedProgram.of(mod)
    if program is None or len(program.reductions) != 1 or len(program.outputs) != 1:
        return schedule
    intermediate = [block for block in _from_reduction(program) if block.name not in program.outputs]
    if any(len(program.consumers(block)) > 1 for block in intermediate):
        try:
            for block in intermediate:
                if not block.is_reduction:
                    schedule.compute_inline(schedule.get_sblock(block.name))
        except REFUSALS:
            return new_schedule(mod)
    return schedule


def _from_reduction(program: AnalysedProgram) -> list[Block]:
    """Return the reduction and the blocks that are computed from it, in order."""
    found = list(program.reductions)
    for block in program.blocks:
        if block not in found and any(block.reads(other.store.buffer) for other in found):
            found.append(block)
    return found
