"""Functions that map elements, on GPUs: one kernel without intermediate results, in accesses of up to 128 bits.

The elements of a vector are neighbours along the last axis. If the length of that axis is no multiple of the vector,
they may go on in the next row, as long as all tensors are read and written at the same indices. Otherwise, for instance
if the last axis has an odd length and a bias is added along it, the vector is shortened to a common divisor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from tvm import DataType, ir
from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.program import AnalysedProgram, found, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse
from loopwright.codegen.rules.cpu.elementwise import is_flat

_VECTORS = (1, 2, 4, 8)
_THREADS = (64, 128, 256, 512, 1024)
_REPEATS = (1, 2, 4, 8)
_MOST_GATHERED = 4
"""Elements that a vector may load from addresses that are not adjacent: CUDA has no longer vectors of indices."""


class GpuElementwise:
    name = "gpu_elementwise"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        if program.reductions or program.outputs != (program.blocks[-1].name,):
            return ()
        for block in program.blocks:
            is_mapped = len(block.spatial) == len(block.block.iter_vars)
            indices = block.store.indices
            if not is_mapped or not all(map(is_var, indices, [axis for axis, _ in block.spatial])):
                return ()
        return (
            Knob("vector", _vectors(program, machine)),
            Knob("threads", _THREADS),
            Knob("repeats", _REPEATS),
            Knob("strided", (0, 1)),
            Knob("unroll", (0, 1)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        longest = _vectors(program, machine)[-1]
        for threads, repeats in ((256, 1), (512, 2), (128, 4)):
            yield {"vector": longest, "threads": threads, "repeats": repeats, "strided": 1, "unroll": 1}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        *others, last = program.blocks
        for block in others:
            schedule.compute_inline(schedule.get_sblock(block.name))
        loops = schedule.get_loops(schedule.get_sblock(last.name))
        outer, inner, length = _last_axes(schedule, loops)
        while length % values["vector"]:
            length *= int(schedule.get(outer[-1]).extent)
            inner = schedule.fuse(outer.pop(), inner)
        steps, vector = schedule.split(inner, [None, values["vector"]])
        element = fuse(schedule, [*outer, steps])
        repeats, threads = values["repeats"], values["threads"]
        if values["strided"]:
            repeat, block, thread = schedule.split(element, [repeats, None, threads])
        else:
            block, repeat, thread = schedule.split(element, [None, repeats, threads])
        schedule.reorder(block, thread, repeat, vector)
        schedule.bind(block, "blockIdx.x")
        schedule.bind(thread, "threadIdx.x")
        if values["vector"] > 1:
            schedule.vectorize(vector)
        if values["unroll"] and repeats > 1:
            schedule.unroll(repeat)


def _last_axes(schedule: Schedule, loops: Sequence[Any]) -> tuple[list[Any], Any, int]:
    """Return the loops before the last one of more than one iteration, that loop with those after it, its extent."""
    extents = [int(schedule.get(loop).extent) for loop in loops]
    place = max((n for n, extent in enumerate(extents) if extent > 1), default=0)
    return list(loops[:place]), fuse(schedule, list(loops[place:])), extents[place]


def _vectors(program: AnalysedProgram, machine: MachineLimits) -> tuple[int, ...]:
    """Return the lengths of vectors that the function's elements make, in ascending order."""
    block = program.blocks[-1]
    large = [(axis, extent) for axis, extent in block.spatial if extent > 1]
    if not large:
        return (1,)
    length = math.prod(extent for _, extent in large[-2:]) if is_flat(program) else large[-1][1]
    most = machine.lanes * 4 // max(_bytes(program))
    if not all(_is_adjacent(program)):
        most = min(most, _MOST_GATHERED)
    return tuple(vector for vector in _VECTORS if vector <= most and length % vector == 0)


def _bytes(program: AnalysedProgram) -> set[int]:
    """Return the sizes of the elements of all buffers."""
    buffers = [access.source for block in program.blocks for access in block.loads]
    buffers += [block.store.buffer for block in program.blocks]
    return {(DataType(str(buffer.dtype)).bits + 7) // 8 for buffer in buffers}


def _is_adjacent(program: AnalysedProgram) -> Iterable[bool]:
    """Say of each access whether the last axis is its last index, or in none of its indices."""
    for block in program.blocks:
        large = [axis for axis, extent in block.spatial if extent > 1]
        for access in block.loads:
            last = max((n for n, extent in enumerate(access.source.shape) if int(extent) > 1), default=0)
            for n, index in enumerate(access.indices):
                names = [var for var in found(index, ir.Var) if large and var.same_as(large[-1])]
                yield not names or (n == last and is_var(index, large[-1]))
