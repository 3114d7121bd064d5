"""Steps that several rules take."""

from __future__ import annotations

import math
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from loopwright.codegen.gpu.async_copy import ASYNC_STAGES
from loopwright.codegen.program.partial_tiles import HINT
from loopwright.codegen.program.prefetching import PREFETCHES
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, found

_COSTLY = frozenset(
    {"tirx.exp", "tirx.exp2", "tirx.log", "tirx.erf", "tirx.tanh", "tirx.sigmoid", "tirx.pow", "tirx.sqrt"}
)


_LONG_ROW = 256
"""Elements of a row from which tiles of a part of it are fetched ahead. With rows of 24 to 96 elements, a convolution
takes 0.98 to 1.07 times as long with it (one thread of AMD Zen 4)."""
_DEEP = 64
"""Terms of a sum that take as long as fetching what is stored next. Not tuned."""


def inline(schedule: Schedule, program: AnalysedProgram, keep: frozenset[str] = frozenset()) -> list[Block]:
    """Inline the blocks that only map elements, and return the blocks that remain.

    A block remains if its result is the function's, if it is to be kept, if it is more than an assignment, or if it
    would have to be computed several times and is costly.
    """
    remaining = []
    for block in program.blocks:
        if block.name in keep or remains(program, block):
            remaining.append(block)
        else:
            schedule.compute_inline(schedule.get_sblock(block.name))
    return remaining


def inline_all(schedule: Schedule, program: AnalysedProgram) -> list[Block]:
    """Inline the blocks that neither reduce nor write the result, and return the others."""
    stages = [block for block in program.blocks if block.is_reduction or block.name in program.outputs]
    for block in program.blocks:
        if block not in stages:
            schedule.compute_inline(schedule.get_sblock(block.name))
    return stages


def remains(program: AnalysedProgram, block: Block) -> bool:
    """Return whether `inline` leaves a block that it is not told to keep."""
    repeated = len(program.consumers(block)) > 1 and block.calls & _COSTLY
    is_assignment = isinstance(block.block.body, tirx.BufferStore)
    return block.is_reduction or block.name in program.outputs or not is_assignment or bool(repeated)


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


def copy_ahead(schedule: Schedule, steps: Any, stages: int) -> None:
    """Copy the operands of the next steps of a sum to a GPU's shared memory while those of a step are multiplied.

    A loop over steps has three parts: the copies of both operands, and the multiplications. ``stages`` steps are in
    shared memory at a time, two or more.
    """
    schedule.annotate(steps, "software_pipeline_stage", [0, 0, stages - 1])
    schedule.annotate(steps, "software_pipeline_order", [0, 1, 2])
    schedule.annotate(steps, ASYNC_STAGES, [0])


def largest_divisor(extent: int, most: int) -> int:
    """Return the largest divisor of an extent that is not above ``most``."""
    return max(divisor for divisor in range(1, min(extent, most) + 1) if extent % divisor == 0)


def parallelize(schedule: Schedule, loop: Any) -> None:
    """Share the iterations of a loop among the threads, if there are several."""
    if int(schedule.get(loop).extent) > 1:
        schedule.parallel(loop)


def fuse(schedule: Schedule, loops: list[Any]) -> Any:
    """Fuse any number of loops, one after another; None if there are none."""
    return schedule.fuse(*loops) if len(loops) > 1 else loops[0] if loops else None


def divisors(extent: int, most: int | None = None) -> tuple[int, ...]:
    """Return the divisors of an extent in ascending order, up to ``most``."""
    return tuple(n for n in range(1, min(extent, most or extent) + 1) if extent % n == 0)


def separate_partial_tiles(schedule: Schedule, loop: Any) -> None:
    """Compile the iterations of a loop that are whole tiles apart from the last one, which is a part of a tile.

    Conditions on the loops in a tile are then constant once those are unrolled.
    """
    schedule.annotate(loop, HINT, 1)


def fetch_ahead(schedule: Schedule, tiles: Any, *, columns: int, depth: int) -> None:
    """Fetch what each tile of a loop adds to its sums, and where it stores them, while it computes them.

    A tile is a part of rows of ``columns`` elements, and sums ``depth`` terms. Processors fetch short rows by
    themselves. In a race with a warm cache, both take the same time.
    """
    if columns >= _LONG_ROW and depth >= _DEEP:
        schedule.annotate(tiles, PREFETCHES, 1)
