"""Maps of elements whose result lies in another order: computed as the operand lies, and moved afterwards.

Vectors run along the last axis of the operand where elements are computed, and tiles of bytes are turned in registers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import tvm
from tvm.s_tir import Schedule

from loopwright.codegen.cpu import byte_transpose
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, found, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline, parallelize, remains, vectorize

_SHORT = 4
"""Elements of the last axis of the result, as the channels of a picture, which are moved without a loop."""


@dataclass(frozen=True)
class _Transpose:
    """``moved`` are the last blocks, which only move elements, of those that ``computed`` writes.

    ``row`` is the axis of the result along which the operand's neighbours lie, and ``tiles`` are the rows of the tiles
    that can be turned in registers.
    """

    computed: Block
    moved: tuple[Block, ...]
    row: int | None
    tiles: tuple[int, ...]

    @staticmethod
    def of(program: AnalysedProgram) -> _Transpose | None:
        """Return how a function computes and moves elements; None if it does not do both, one after the other."""
        blocks = list(program.blocks)
        if program.reductions or program.outputs != (blocks[-1].name,):
            return None
        moved: list[Block] = []
        while blocks and _moves(blocks[-1]):
            moved.insert(0, blocks.pop())
        if not moved or not blocks or any(remains(program, block) for block in blocks):
            return None
        computed, last = blocks[-1], moved[-1]
        chain = [computed, *moved]
        if any(not after.reads(before.store.buffer) for before, after in itertools.pairwise(chain)):
            return None
        indices = [load.indices for block in moved for load in block.loads]
        if all(is_var(block.store.indices[-1], load.indices[-1]) for block in moved for load in block.loads):
            return None
        if len(moved) > 1:
            return _Transpose(computed, tuple(moved), None, ())
        [index] = indices
        if not all(isinstance(each, tvm.ir.Var) for each in index) or len(index) < 2:
            return _Transpose(computed, tuple(moved), None, ())
        row = next(n for n, (axis, _) in enumerate(last.spatial) if is_var(index[-1], axis))
        extents = [extent for _, extent in last.spatial]
        fits = row != len(extents) - 1 and extents[-1] % byte_transpose.WIDTH == 0
        sizes = [n for n in (16, 8) if fits and extents[row] % n == 0 and byte_transpose.intrinsic(last.dtype, n)]
        return _Transpose(computed, tuple(moved), row, tuple(sizes))


class Transpose:
    name = "transpose"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        transpose = _Transpose.of(program)
        return () if transpose is None else (Knob("rows", (*transpose.tiles, 1)), Knob("vectors", (1, 2, 4)))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        rows, _ = self.knobs(program, machine)
        for vectors in (1, 4):
            for each in rows.values:
                yield {"rows": each, "vectors": vectors}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        transpose = _Transpose.of(program)
        assert transpose is not None, "the rule has no knobs for this function"
        inline(schedule, program, frozenset({transpose.computed.name}))
        if values["rows"] > 1:
            _lay_columns_last(schedule, transpose)
        *outer, inner = schedule.get_loops(schedule.get_sblock(transpose.computed.name))
        parallelize(schedule, fuse(schedule, outer))
        vectorize(schedule, transpose.computed.name, inner, machine.lanes * values["vectors"])
        loops = schedule.get_loops(schedule.get_sblock(transpose.moved[-1].name))
        if values["rows"] > 1:
            _turn(schedule, transpose, loops, values["rows"])
            return
        *outer, last, inner = loops
        parallelize(schedule, fuse(schedule, outer) if outer else last)
        if int(schedule.get(inner).extent) <= _SHORT:
            schedule.unroll(inner)


def _lay_columns_last(sch: Schedule, transpose: _Transpose) -> None:
    """Let the axis that the result has last be the last but one of what is computed: tiles are of the last two."""
    [load] = transpose.moved[-1].loads
    place = next(n for n, index in enumerate(load.indices) if is_var(index, transpose.moved[-1].spatial[-1][0]))

    def laid(*i: Any) -> list[Any]:
        return [*(each for n, each in enumerate(i[:-1]) if n != place), i[place], i[-1]]

    sch.transform_layout(sch.get_sblock(transpose.computed.name), ("write", 0), laid)


def _turn(sch: Schedule, transpose: _Transpose, loops: list[Any], rows: int) -> None:
    """Turn tiles of bytes in registers."""
    name = byte_transpose.intrinsic(transpose.moved[-1].dtype, rows)
    assert name is not None, "the knob has no such value"
    assert transpose.row is not None, "the knob has no such value"
    byte_transpose.register(name)
    row, row_in_tile = sch.split(loops[transpose.row], [None, rows])
    column, column_in_tile = sch.split(loops[-1], [None, byte_transpose.WIDTH])
    outer = [loop for n, loop in enumerate(loops[:-1]) if n != transpose.row]
    sch.reorder(*outer, row, column, row_in_tile, column_in_tile)
    parallelize(sch, fuse(sch, outer) if outer else row)
    sch.tensorize(row_in_tile, name)


def _moves(block: Block) -> bool:
    """Return whether a block writes elements of another one as they are, or a constant."""
    value = block.store.value
    if isinstance(value, tvm.ir.Call) and str(getattr(value.op, "name", "")) == "prim.if_then_else":
        _, value, other = value.args
        if found(other, tvm.ir.TensorLoad):
            return False
    return isinstance(value, tvm.ir.TensorLoad)
