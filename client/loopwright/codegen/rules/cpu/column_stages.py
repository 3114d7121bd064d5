"""Softmax, its logarithm and logarithms of sums of exponentials along an axis that is not the last one.

Vectors run along the last axis, and every lane reduces for itself. A task computes all stages of a panel, some
neighbours along the last axis, so that the panel stays in a near cache.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline, parallelize, remains, vectorize

_SERIAL, _PARALLEL = 0, 1
_OPERATIONS = ("sum", "max", "largest")
_MAPPED = ("float32", "float16", "bfloat16")
_VECTORS = (1, 2, 4, 8)
_WHOLE = 4
"""Vectors up to which all of an axis is one vector of LLVM's, if it is no whole number of them."""
_NEAR = 2**15
"""Elements of a panel, 128 KB, up to which it is in a near cache. Not tuned."""
_WORTH_THREADS = 2000
"""Vectors of all blocks from which threads share the panels, as for `row_reduce`."""


class ColumnStages:
    name = "column_stages"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        axis = _reduced_axis(program)
        if axis is None or not _widths(program, machine):
            return ()
        return (Knob("width", tuple(_widths(program, machine))), Knob("parallel", (_SERIAL, _PARALLEL)))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        widths, length = _widths(program, machine), program.reductions[0].reduced[0][1]
        near = [width for width in widths if width * length <= _NEAR and width <= 4 * widths[0]]
        best = near[-1] if near else widths[0]
        work = sum(block.iterations for block in program.blocks) / machine.lanes
        is_long = machine.threads > 1 and work > _WORTH_THREADS
        first, other = (_PARALLEL, _SERIAL) if is_long else (_SERIAL, _PARALLEL)
        yield {"width": best, "parallel": first}
        for width in (widths[0], widths[-1]):
            if width != best:
                yield {"width": width, "parallel": first}
        yield {"width": best, "parallel": other}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        axis = _reduced_axis(program)
        assert axis is not None, "the rule has no knobs for this function"
        lanes = _lanes(_columns(program), machine)
        stages = inline(schedule, program)
        *producers, last = stages
        loops = schedule.get_loops(schedule.get_sblock(last.name))
        along = [loops.pop(axis)] if len(last.spatial) > len(program.reductions[0].spatial) else []
        *others, column = loops
        panel, inner = schedule.split(column, [None, values["width"]])
        schedule.reorder(*others, panel, *along, inner)
        task = fuse(schedule, [*others, panel])
        if values["parallel"] == _PARALLEL:
            parallelize(schedule, task)
        for stage in reversed(producers):
            schedule.compute_at(schedule.get_sblock(stage.name), task)
        for stage in stages:
            if stage.is_reduction:
                _reduce(schedule, stage, lanes)
            else:
                vectorize(schedule, stage.name, schedule.get_loops(schedule.get_sblock(stage.name))[-1], lanes)


def _reduce(schedule: Schedule, stage: Block, lanes: int) -> None:
    """Reduce all vectors of a panel in one pass, with their results in registers."""
    block = schedule.get_sblock(stage.name)
    *_, column, along = schedule.get_loops(block)
    vector, lane = schedule.split(column, [None, lanes])
    schedule.reorder(along, vector, lane)
    schedule.unroll(vector)
    schedule.vectorize(lane)
    schedule.decompose_reduction(block, along)


def _columns(program: AnalysedProgram) -> int:
    """Return the extent of the last axis."""
    return program.reductions[0].spatial[-1][1]


def _lanes(extent: int, machine: MachineLimits) -> int:
    """Return how many lanes vectors along an axis have, all of which are of equal length."""
    lanes = next(n for n in range(machine.lanes, 0, -1) if extent % n == 0)
    return extent if 2 * lanes <= machine.lanes and extent <= _WHOLE * machine.lanes else lanes


def _widths(program: AnalysedProgram, machine: MachineLimits) -> list[int]:
    """Return the numbers of lanes that a panel may have: whole numbers of vectors that divide the axis."""
    extent = _columns(program)
    lanes = _lanes(extent, machine)
    return [lanes * n for n in _VECTORS if extent % (lanes * n) == 0] if lanes > 1 else []


def _reduced_axis(program: AnalysedProgram) -> int | None:
    """Return which axis several stages reduce, not the last one; None if the function is of another form."""
    if len(program.reductions) < 2 or Contraction.of(program) or program.outputs != (program.blocks[-1].name,):
        return None
    shape = [extent for _, extent in program.reductions[0].spatial]
    axes = {_axis(block) for block in program.reductions}
    if len(axes) != 1 or any([extent for _, extent in block.spatial] != shape for block in program.reductions):
        return None
    [axis] = axes
    if axis is None or axis == len(shape) or shape[-1] == 1:
        return None
    full = [*shape[:axis], program.reductions[0].reduced[0][1], *shape[axis:]]
    kept = [block for block in program.blocks if not block.is_reduction and remains(program, block)]
    known = all([extent for _, extent in block.spatial] in (shape, full) and block.dtype in _MAPPED for block in kept)
    return axis if known else None


def _axis(block: Block) -> int | None:
    """Return the place of the axis that a block reduces among those of the elements that it reads."""
    if block.dtype != "float32" or block.operation not in _OPERATIONS or len(block.reduced) != 1:
        return None
    [(reduced, length)] = block.reduced
    axes: list[Any] = [axis for axis, _ in block.spatial]
    found: set[int] = set()
    for load in block.loads:
        places = [place for place, index in enumerate(load.indices) if is_var(index, reduced)]
        expected = [*axes[: places[0]], reduced, *axes[places[0] :]] if places else axes
        if len(load.indices) != len(expected) or not all(map(is_var, load.indices, expected)):
            return None
        found |= set(places)
    return found.pop() if len(found) == 1 and length > 1 else None
