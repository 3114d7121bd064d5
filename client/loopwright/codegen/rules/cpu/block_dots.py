"""Products of rows of int8 with weights of few bits that have a scale for each block of the depth, in int32.

As in `block_scaled`, the weight is packed once into panels whose lanes are columns, of one vector each, whatever the
tile. A part of a block of a panel is decoded into registers for all rows of a tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from loopwright.codegen.cpu import block_dots
from loopwright.codegen.graph.rewriting import op_name
from loopwright.codegen.rules.analysis.block_sums import BlockSums
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, variables
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors, fuse, inline, largest_divisor, parallelize, vectorize
from loopwright.codegen.weights.packed_weight import PACKS

_GROUP = block_dots.GROUP
_VECTORS = (1, 2, 3, 4)
_MOST_ROWS = 8
_TILES = ((8, 1), (4, 1), (1, 1), (2, 2), (1, 2), (2, 1), (4, 2), (1, 4))
"""Rows and vectors of the seeds, the best first: rows share what is decoded."""
_SEEDS = 6
_AT_ONCE = 8
"""Groups along the depth that are decoded at a time: as many vectors for each lane are in registers."""


class BlockDots:
    name = "block_dots"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        sums = BlockSums.of(program)
        if sums is None or sums.numbers is None or sums.products.dtype != "int32" or machine.lanes not in (8, 16):
            return ()
        per_byte = _numbers_per_byte(sums)
        if per_byte is None or not (machine.has_vnni or machine.has_maddwd):
            return ()
        at_once = _at_once(sums)
        if sums.columns % machine.lanes or sums.size % (per_byte * _GROUP) or at_once < 2 or at_once % per_byte:
            return ()
        vectors = tuple(each for each in _VECTORS if sums.columns % (each * machine.lanes) == 0)
        return (Knob("rows", divisors(sums.rows, _MOST_ROWS)), Knob("vectors", vectors))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        rows, vectors = (knob.values for knob in self.knobs(program, machine))
        tiles = [tile for tile in _TILES if tile[0] in rows and tile[1] in vectors]
        for tile_rows, tile_vectors in tiles[:_SEEDS]:
            yield {"rows": tile_rows, "vectors": tile_vectors}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        sums = BlockSums.required(program)
        assert sums.numbers is not None, "the rule has no knobs for this function"
        rows, vectors, lanes = values["rows"], values["vectors"], machine.lanes
        if 2 * rows * vectors + vectors > machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        most = _most(sums.numbers.store.value)
        at_once = _at_once(sums)
        name = block_dots.intrinsic(lanes, at_once, vnni=machine.has_vnni, most=most)
        block_dots.register(name)
        per_byte = _numbers_per_byte(sums)
        assert per_byte is not None, "the rule has no knobs for this function"
        last = inline(schedule, program, frozenset((sums.numbers.name,)))[-1].name
        products, total, numbers = map(schedule.get_sblock, (sums.products.name, sums.total.name, sums.numbers.name))
        self._pack(schedule, sums, lanes)
        if last == sums.total.name:
            last = str(schedule.get(schedule.cache_write(total, 0, "global")).name_hint)
        write = schedule.get_sblock(last)
        self._reorder_depth(schedule, sums.products, sums.numbers, per_byte)
        schedule.transform_layout(
            numbers,
            ("write", 0),
            lambda b, t, j: [b, j // lanes, *_places(t, per_byte)[:1], j % lanes, *_places(t, per_byte)[1:]],
        )
        *outer, i, j, b = schedule.get_loops(total)
        io, ii = schedule.split(i, [None, rows])
        jo, iv, ix = schedule.split(j, [None, vectors, lanes])
        schedule.reorder(*outer, jo, io, b, ii, iv, ix)
        task = fuse(schedule, [*outer, jo])
        schedule.reverse_compute_at(write, io)
        schedule.compute_at(products, b, preserve_unit_loops=True)
        *_, i, _, j, group, place = schedule.get_loops(products)
        part, group = schedule.split(group, [None, at_once])
        jv, jx = schedule.split(j, [None, lanes])
        schedule.reorder(part, i, jv, jx, group, place)
        schedule.compute_at(numbers, part, preserve_unit_loops=True)
        parallelize(schedule, task)
        for loop in (ii, iv):
            schedule.unroll(loop)
        schedule.vectorize(ix)
        schedule.decompose_reduction(total, b)
        self._decode(schedule, numbers, per_byte, lanes)
        init = schedule.decompose_reduction(products, part)
        for loop in (i, jv, *schedule.get_loops(init)[-3:-1]):
            schedule.unroll(loop)
        schedule.vectorize(schedule.get_loops(init)[-1])
        schedule.tensorize(jx, name)
        vectorize(schedule, last, schedule.get_loops(write)[-1], lanes)

    def _pack(self, schedule: Schedule, sums: BlockSums, lanes: int) -> None:
        """Store the weight once as ``[columns / lanes, …, bytes / 4, lanes, 4]``."""
        copy = schedule.cache_read(schedule.get_sblock(sums.decoding.name), sums.weight_index, "global")
        column = sums.column

        def panels(*i: Any) -> list[Any]:
            others = [each for n, each in enumerate(i[:-1]) if n != column]
            return [i[column] // lanes, *others, i[-1] // _GROUP, i[column] % lanes, i[-1] % _GROUP]

        schedule.transform_layout(copy, ("write", 0), panels)
        schedule.annotate(copy, PACKS, True)
        parallelize(schedule, schedule.get_loops(copy)[0])

    def _reorder_depth(self, schedule: Schedule, part: Block, numbers: Block, per_byte: int) -> None:
        """Count along the depth of the rows and of the sums in the order in which numbers are decoded."""
        products = schedule.get_sblock(part.name)
        sources = [region.source for region in part.block.reads if not region.source.same_as(part.store.buffer)]
        rows = next(n for n, each in enumerate(sources) if not each.same_as(numbers.store.buffer))
        copy = schedule.cache_read(products, rows, "global")
        schedule.transform_layout(copy, ("write", 0), lambda i, k: [i, *_places(k, per_byte)])
        loops = schedule.get_loops(copy)
        if len(loops) > 1:
            parallelize(schedule, fuse(schedule, loops[:-1]))
        schedule.transform_block_layout(products, lambda i, b, j, t: [i, b, j, *_places(t, per_byte)])

    def _decode(self, schedule: Schedule, numbers: Any, per_byte: int, lanes: int) -> None:
        *_, t, j = schedule.get_loops(numbers)
        group, place, half = schedule.split(t, [None, _GROUP, per_byte])
        jv, jx = schedule.split(j, [None, lanes])
        schedule.reorder(group, half, jv, jx, place)
        for loop in (group, half, jv):
            schedule.unroll(loop)
        schedule.vectorize(schedule.fuse(jx, place))


def _at_once(sums: BlockSums) -> int:
    """Return how many groups of a block are decoded at a time."""
    return largest_divisor(sums.size // _GROUP, _AT_ONCE)


def _places(t: Any, per_byte: int) -> list[Any]:
    """Return the group of an element along the depth, and its place in the group.

    Numbers of bytes that are neighbours, and in the same bits of them, are a group.
    """
    width = per_byte * _GROUP
    return [t // width * per_byte + t % per_byte, t % width // per_byte]


def _numbers_per_byte(sums: BlockSums) -> int | None:
    """Return how many neighbours along the depth are in a byte of the weight, whose bytes are in order; or None."""
    assert sums.numbers is not None
    _, (t, _), _ = sums.numbers.spatial
    if sums.column == len(sums.load.indices) - 1 or int(sums.load.source.shape[-1]) % _GROUP:
        return None
    analyzer, index = tvm.sym.Analyzer(), sums.load.indices[-1]
    for per_byte in (1, 2, 4):
        place = t if per_byte == 1 else tirx.floordiv(t, tirx.IntImm("int64", per_byte))
        if not any(each.same_as(t) for each in variables(analyzer.simplify(index - place))):
            return per_byte
    return None


def _most(expr: Any) -> int:
    """Return a number that an expression of uint8 is at most."""
    if isinstance(expr, tirx.IntImm):
        return int(expr)
    if isinstance(expr, tirx.BitwiseAnd):
        return min(_most(expr.a), _most(expr.b))
    if isinstance(expr, tirx.RShift) and isinstance(expr.b, tirx.IntImm):
        return _most(expr.a) >> int(expr.b)
    if op_name(expr) == "prim.if_then_else":
        return max(map(_most, expr.args[1:]))
    return 255
