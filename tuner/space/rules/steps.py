"""Steps that several rules take."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from tuner.space.rules.program import Block, Program, found

_COSTLY = frozenset(
    {"tirx.exp", "tirx.exp2", "tirx.log", "tirx.erf", "tirx.tanh", "tirx.sigmoid", "tirx.pow", "tirx.sqrt"}
)


def inline(schedule: Schedule, program: Program, keep: frozenset[str] = frozenset()) -> list[Block]:
    """Inline the blocks that only map elements, and return the blocks that remain.

    A block remains if its result is the function's, if it is to be kept, or if it would have to be computed several
    times and is costly.
    """
    remaining = []
    for block in program.blocks:
        repeated = len(program.consumers(block)) > 1 and block.calls & _COSTLY
        if block.is_reduction or block.name in program.outputs or block.name in keep or repeated:
            remaining.append(block)
        else:
            schedule.compute_inline(schedule.get_sblock(block.name))
    return remaining


def vectorize(schedule: Schedule, name: str, loop: Any, lanes: int) -> None:
    """Run the innermost loop of a block in vectors of ``lanes``, and what remains of its extent in a shorter one.

    The last step for a block: afterwards its parts are blocks of their own.
    """
    extent = int(schedule.get(loop).extent)
    if extent <= 1:
        return
    if extent <= lanes:
        schedule.vectorize(loop)
        return
    if extent % lanes and _has_namesakes(schedule.get(schedule.get_sblock(name))):
        lanes = math.gcd(extent, lanes)
        if lanes == 1:
            return
    rest = extent % lanes
    if rest:
        # TVM would keep a condition in the loop, which would make it scalar.
        loop, tail = schedule.loop_partition(loop, [extent - rest, None])
        if rest > 1:
            schedule.vectorize(tail)
    schedule.vectorize(schedule.split(loop, [None, lanes])[1])


def _has_namesakes(block: Any) -> bool:
    """Return whether a block uses two buffers of one name, which TVM's `loop_partition` takes for the same."""
    buffers = [store.buffer for store in found(block.body, tirx.BufferStore)]
    buffers += [load.source for load in found(block.body, tvm.ir.TensorLoad)]
    distinct = [b for i, b in enumerate(buffers) if not any(b.same_as(other) for other in buffers[:i])]
    return len({str(buffer.name) for buffer in distinct}) < len(distinct)


def largest_divisor(extent: int, most: int) -> int:
    """Return the largest divisor of an extent that is not above ``most``."""
    return max(divisor for divisor in range(1, min(extent, most) + 1) if extent % divisor == 0)


def fuse(schedule: Schedule, loops: list[Any]) -> Any:
    """Fuse any number of loops, one after another; None if there are none."""
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0] if loops else None
