"""The transformations of Winograd's convolutions: one tile at a time, in registers, with vectors along the channels.

The blocks are those of `loopwright.codegen.graph.winograd`. The matrices' factors are in the program as a choice by the
element of the tile. Once the loops over a tile are unrolled, each element is a sum of a few others.
"""

from __future__ import annotations

from collections.abc import Iterable

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.graph.winograd import IMAGE, LINES, OUTPUTS, PAD, ROWS, SIZE, UNSAFE
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline, parallelize

_LANES = (4, 8, 16)
_TILES, _CHANNELS = 0, 1
"""Which loop is the inner one."""


class Winograd:
    name = "winograd"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        if program.reductions or not (_is_image(program) or _is_result(program)):
            return ()
        channels = program.block(_moved(program) or program.outputs[0]).spatial[-1][1]
        lanes = tuple(n for n in _LANES if n <= machine.lanes and channels % n == 0)
        return (Knob("lanes", lanes), Knob("inner", (_TILES, _CHANNELS))) if lanes else ()

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        lanes, _ = self.knobs(program, machine)
        for inner in (_CHANNELS, _TILES):
            yield {"lanes": lanes.values[-1], "inner": inner}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        if _is_image(program):
            _image(schedule, values)
        else:
            _result(schedule, program, values)


def _image(sch: Schedule, values: Knobs) -> None:
    lines, image, pad = (sch.get_sblock(name) for name in (LINES, IMAGE, PAD))
    element, tile, channel = sch.get_loops(image)
    a, b = sch.split(element, [SIZE, SIZE])
    channel, lane = sch.split(channel, [None, values["lanes"]])
    outer = [channel, tile] if values["inner"] == _TILES else [tile, channel]
    sch.reorder(*outer, a, b, lane)
    sch.compute_at(lines, a)
    sch.parallel(fuse(sch, outer))
    sch.unroll(a)
    sch.unroll(b)
    sch.vectorize(lane)
    *_, j, inner = sch.get_loops(lines)
    sch.unroll(j)
    sch.vectorize(inner)
    parallelize(sch, fuse(sch, sch.get_loops(pad)[:-1]))


def _result(sch: Schedule, program: AnalysedProgram, values: Knobs) -> None:
    moved = _moved(program)
    remaining = inline(sch, program, frozenset({ROWS, moved} if moved else {ROWS}))
    rows, write = (sch.get_sblock(block.name) for block in remaining[2:4])
    if moved:
        parallelize(sch, fuse(sch, sch.get_loops(sch.get_sblock(remaining[4].name))[:-1]))
    batch, y, x, channel = sch.get_loops(write)
    y, p = sch.split(y, [None, OUTPUTS])
    x, q = sch.split(x, [None, OUTPUTS])
    channel, lane = sch.split(channel, [None, values["lanes"]])
    outer = [batch, y, channel, x] if values["inner"] == _TILES else [batch, y, x, channel]
    sch.reorder(*outer, p, q, lane)
    sch.compute_at(rows, p)
    *_, b, inner = sch.get_loops(rows)
    parallelize(sch, fuse(sch, outer))
    for loop in (p, q, b):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.vectorize(inner)


def _is_image(program: AnalysedProgram) -> bool:
    return [block.name for block in program.blocks] == [PAD, LINES, IMAGE]


def _is_result(program: AnalysedProgram) -> bool:
    """Return whether outputs come from transformed products, and whatever follows keeps their order."""
    if program.blocks[0].name != UNSAFE or len(program.outputs) != 1:
        return False
    batch, rows, _, _, channels = (extent for _, extent in program.block(ROWS).spatial)
    extents = [extent for _, extent in program.block(_moved(program) or program.outputs[0]).spatial]
    return len(extents) == 4 and [*extents[:2], extents[3]] == [batch, rows, channels]


def _moved(program: AnalysedProgram) -> str | None:
    """Return the name of the block whose result the last one only copies, with its axes in another order; or None."""
    last = program.blocks[-1]
    copied = program.producer(last.store.value.source) if isinstance(last.store.value, tvm.ir.TensorLoad) else None
    return None if copied is None else copied.name
