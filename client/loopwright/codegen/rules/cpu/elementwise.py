"""Functions that map elements: activations, sums of tensors, casts. One pass over each output, in vectors."""

from __future__ import annotations

import math
from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.program import AnalysedProgram, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline, largest_divisor, parallelize, vectorize

_TASKS = (0, 1, 2, 4, 8)
"""Tasks a thread; 0 is a serial loop."""


class Elementwise:
    name = "elementwise"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        if program.reductions or program.blocks[-1].name not in program.outputs:
            return ()
        return (Knob("tasks", _TASKS), Knob("vectors", (1, 2, 4)))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        best = min(_TASKS[1:], key=lambda tasks: _idle(program, machine, tasks))
        for tasks in dict.fromkeys((best, 4, 0)):
            yield {"tasks": tasks, "vectors": 1}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        for block in inline(schedule, program):
            _schedule(schedule, program, block.name, machine, values)


def _schedule(schedule: Schedule, program: AnalysedProgram, name: str, machine: MachineLimits, values: Knobs) -> None:
    loops = schedule.get_loops(schedule.get_sblock(name))
    loops = [loop for loop in loops if int(schedule.get(loop).extent) > 1]
    if not loops:
        return
    if is_flat(program):
        # With more than two axes in one, TVM does not see that the elements of a vector are neighbours.
        loops = [*loops[:-2], fuse(schedule, loops[-2:])]
    width = machine.lanes * values["vectors"]
    *outer, inner = loops
    if values["tasks"]:
        parts = _parts(int(schedule.get(inner).extent), width, values["tasks"] * machine.threads)
        if parts > 1 and not outer:
            part, inner = schedule.split(inner, [parts, None])
            outer = [part]
        if outer:
            parallelize(schedule, fuse(schedule, outer))
    vectorize(schedule, name, inner, width)


def _parts(extent: int, width: int, most: int) -> int:
    """Return how many equal parts an axis has: each is a whole number of vectors, if the axis is."""
    return largest_divisor(extent // width if extent % width == 0 else extent, most)


def _idle(program: AnalysedProgram, machine: MachineLimits, tasks: int) -> float:
    """Return how many times as long the slowest thread takes as with equal shares, to a tenth.

    Axes that are not fused have outer loops, which are shared as they are.
    """
    block = program.blocks[-1]
    *outer, inner = [extent for _, extent in block.spatial if extent > 1] or [1]
    if is_flat(program) and outer:
        inner *= outer.pop()
    parts = math.prod(outer) if outer else _parts(inner, machine.lanes, tasks * machine.threads)
    return round(math.ceil(parts / machine.threads) * machine.threads / parts, 1)


def is_flat(program: AnalysedProgram) -> bool:
    """Return whether all blocks read and write the same elements, so that the axes do not matter."""
    shape = [extent for _, extent in program.blocks[0].spatial]
    for block in program.blocks:
        axes = [axis for axis, _ in block.spatial]
        if [extent for _, extent in block.spatial] != shape:
            return False
        for access in (block.store, *block.loads):
            if len(access.indices) != len(axes) or not all(map(is_var, access.indices, axes)):
                return False
    return True
