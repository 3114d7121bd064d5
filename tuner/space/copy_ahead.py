"""Sketches for tensor cores that copy factors to shared memory while they multiply others (``cp.async``).

TVM's own software pipelines load the next factors to registers, and store them in shared memory afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

import tvm_ffi
from tvm.s_tir import SBlock, Schedule

from loopwright.codegen.rules.analysis.steps import copy_ahead

_STAGES = 3
"""Steps whose factors are in shared memory at a time."""
_FACTORS = 2


def copying_ahead(schedules: Iterable[Schedule]) -> list[Schedule]:
    """Give sketches such copies, and return those that have them: one loop has the copies of both factors."""
    return [schedule for schedule in schedules if _copies_ahead(schedule)]


def _copies_ahead(schedule: Schedule) -> bool:
    blocks: list[SBlock] = []
    tvm_ffi.structural_walk(schedule.mod["main"].body, (SBlock, blocks.append), order="pre")
    copies = [schedule.get_sblock(block.name_hint) for block in blocks if _copies_to_shared_memory(block)]
    if len(copies) != _FACTORS:
        return False
    first, second = ([schedule.get_sref(loop) for loop in schedule.get_loops(copy)] for copy in copies)
    around = [place for place, loop in enumerate(first) if any(loop.same_as(other) for other in second)]
    copy_ahead(schedule, schedule.get_loops(copies[0])[around[-1]], _STAGES)
    return True


def _copies_to_shared_memory(block: SBlock) -> bool:
    """Return whether a block copies from global memory to dynamic shared memory."""
    written = [region.source.scope() for region in block.writes]
    return written == ["shared.dyn"] and all(region.source.scope() == "global" for region in block.reads)
