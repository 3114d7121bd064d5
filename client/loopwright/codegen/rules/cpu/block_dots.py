"""Products with weights of few bits that have a scale for each block of the depth, by intrinsics for groups of four.

Rows are of int8, and sums in int32, or they are of float32, with weights of 4 bits that AVX-512 looks up. As in
`block_scaled`, the weight is packed once into panels whose lanes are columns, of one vector each, whatever the tile. A
part of a block of a panel is decoded into registers for all rows of a tile.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import block_dots, nibble_dots
from loopwright.codegen.graph.blocks import most
from loopwright.codegen.rules.analysis.block_sums import GROUP, BlockSums
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors, fuse, inline, parallelize, vectorize
from loopwright.codegen.weights.packed_weight import PACKS

_VECTORS = (1, 2, 3, 4)
_MOST_ROWS = 8
_TILES = ((8, 1), (4, 1), (1, 1), (2, 2), (1, 2), (2, 1), (4, 2), (1, 4))
"""Rows and vectors of the seeds, the best first: rows share what is decoded."""
_SEEDS = 6
_SUMS = 4
"""Sums of float32 that no addition waits for, if vectors in a tile are fewer: they take four cycles (AMD Zen 4)."""


class BlockDots:
    name = "block_dots"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        sums = BlockSums.of(program)
        if sums is None or not (_is_of_bytes(sums, machine) or sums.is_looked_up(machine.lanes)):
            return ()
        vectors = tuple(each for each in _VECTORS if sums.is_tile(each * machine.lanes))
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
        name, at_once = _intrinsic(sums, machine, rows * vectors)
        per_byte = sums.per_byte
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
            return [i[column] // lanes, *others, i[-1] // GROUP, i[column] % lanes, i[-1] % GROUP]

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
        group, place, half = schedule.split(t, [None, GROUP, per_byte])
        jv, jx = schedule.split(j, [None, lanes])
        schedule.reorder(group, half, jv, jx, place)
        for loop in (group, half, jv):
            schedule.unroll(loop)
        schedule.vectorize(schedule.fuse(jx, place))


def _is_of_bytes(sums: BlockSums, machine: MachineLimits) -> bool:
    """Return whether the processor multiplies the bytes of such a product."""
    has_products = machine.lanes in (8, 16) and (machine.has_vnni or machine.has_maddwd)
    return has_products and sums.products.dtype == "int32" and sums.has_groups(machine.lanes)


def _intrinsic(sums: BlockSums, machine: MachineLimits, tile: int) -> tuple[str, int]:
    """Return the intrinsic for a tile of so many vectors, registered, and the groups that it multiplies."""
    assert sums.numbers is not None, "the rule has no knobs for this function"
    groups = sums.groups
    if sums.zero is None:
        largest = most(sums.numbers.store.value)
        name = block_dots.intrinsic(machine.lanes, groups, vnni=machine.has_vnni, most=largest)
        block_dots.register(name)
        return name, groups
    # What is looked up for several rows stays in registers.
    groups = groups if tile < _SUMS else 2
    name = nibble_dots.intrinsic(groups, zero=sums.zero, sums=max(1, _SUMS // tile))
    nibble_dots.register(name)
    return name, groups


def _places(t: Any, per_byte: int) -> list[Any]:
    """Return the group of an element along the depth, and its place in the group.

    Numbers of bytes that are neighbours, and in the same bits of them, are a group.
    """
    width = per_byte * GROUP
    return [t // width * per_byte + t % per_byte, t % width // per_byte]
