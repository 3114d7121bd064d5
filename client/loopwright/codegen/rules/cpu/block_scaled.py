"""Products with weights of few bits that have a scale for each block of the depth, decoded in registers.

The weight is packed once into panels whose lanes are columns, so that a vector of bytes is decoded for all columns of a
lane at once. The sum of a block stays in registers until it is scaled; several rows share what is decoded.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.block_sums import BlockSums
from loopwright.codegen.rules.analysis.product_tile import SHARED_VECTORS, registers
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors, fuse, inline, parallelize, vectorize
from loopwright.codegen.weights.packed_weight import PACKS

_VECTORS = (1, 2, 3, 4)
_MOST_ROWS = 8
_UNROLL = (4, 8, 16, 32)
_TILES = ((8, 1), (4, 2), (4, 1), (2, 2), (1, 2), (1, 4), (1, 1))
"""Rows and vectors of the seeds, the best first: rows share what is decoded."""
_SEEDS, _SEED_UNROLL = 5, 8
"""The number of seeds, and how far they are unrolled, as far as a block has that many elements."""


class BlockScaled:
    name = "block_scaled"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        parts = BlockSums.of(program)
        if parts is None or parts.products.dtype != "float32" or parts.columns % machine.lanes:
            return ()
        if parts.is_looked_up(machine.lanes):  # by `block_dots`: programs that share a weight have the same panels
            return ()
        vectors = tuple(each for each in _VECTORS if parts.is_tile(each * machine.lanes))
        if _is_shared(program, parts, machine.lanes):
            vectors = tuple(each for each in vectors if each % SHARED_VECTORS == 0 or SHARED_VECTORS % each == 0)
        unroll = tuple(each for each in _UNROLL if parts.size % each == 0)
        return (
            Knob("rows", divisors(parts.rows, _MOST_ROWS)),
            Knob("vectors", vectors),
            Knob("unroll", unroll or (1,)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        rows, vectors, unroll = (knob.values for knob in self.knobs(program, machine))
        tiles = [tile for tile in _TILES if tile[0] in rows and tile[1] in vectors]
        for tile_rows, tile_vectors in tiles[:_SEEDS]:
            yield {
                "rows": tile_rows,
                "vectors": tile_vectors,
                "unroll": max(each for each in unroll if each <= max(_SEED_UNROLL, unroll[0])),
            }

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        parts = BlockSums.required(program)
        rows, vectors, lanes = values["rows"], values["vectors"], machine.lanes
        if registers(rows, vectors) > machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        last = inline(schedule, program)[-1].name
        products, total = (schedule.get_sblock(block.name) for block in (parts.products, parts.total))
        self._pack(schedule, parts, _width(program, parts, vectors, lanes))
        if last == parts.total.name:
            last = str(schedule.get(schedule.cache_write(total, 0, "global")).name_hint)
        write = schedule.get_sblock(last)
        *outer, i, j, b = schedule.get_loops(total)
        io, ii = schedule.split(i, [None, rows])
        jo, jv, jx = schedule.split(j, [None, vectors, lanes])
        schedule.reorder(*outer, jo, io, b, ii, jv, jx)
        task = fuse(schedule, [*outer, jo])
        schedule.reverse_compute_at(write, io)
        schedule.compute_at(products, b, preserve_unit_loops=True)
        parallelize(schedule, task)
        for loop in (ii, jv):
            schedule.unroll(loop)
        schedule.vectorize(jx)
        schedule.decompose_reduction(total, b)
        *_, i, _, j, t = schedule.get_loops(products)
        to, ti = schedule.split(t, [None, values["unroll"]])
        jv, jx = schedule.split(j, [None, lanes])
        schedule.reorder(to, ti, i, jv, jx)
        for loop in (ti, i, jv):
            schedule.unroll(loop)
        schedule.vectorize(jx)
        schedule.decompose_reduction(products, to)
        vectorize(schedule, last, schedule.get_loops(write)[-1], lanes)

    def _pack(self, schedule: Schedule, parts: BlockSums, width: int) -> None:
        """Store the weight once as ``[columns / width, bytes, width]``."""
        products = schedule.get_sblock(parts.products.name)
        # As they are once the numbers are inlined.
        sources = [str(region.source.name) for region in schedule.get(products).reads]
        copy = schedule.cache_read(products, sources.index(str(parts.load.source.name)), "global")
        column = parts.column
        schedule.transform_layout(
            copy,
            ("write", 0),
            lambda *i: [i[column] // width, *(each for n, each in enumerate(i) if n != column), i[column] % width],
        )
        schedule.annotate(copy, PACKS, True)
        parallelize(schedule, schedule.get_loops(copy)[0])


def _is_shared(program: AnalysedProgram, parts: BlockSums, lanes: int) -> bool:
    """Return whether other programs have the panels of the weight, too: tiles are then a part of one, or several."""
    return program.shares_weight and parts.columns % (SHARED_VECTORS * lanes) == 0


def _width(program: AnalysedProgram, parts: BlockSums, vectors: int, lanes: int) -> int:
    """Return the columns of a panel."""
    return (SHARED_VECTORS if _is_shared(program, parts, lanes) else vectors) * lanes
