"""Scheduling a product of matrices by tiles of its result that stay in vector registers.

The tile is ``rows`` x ``vectors`` registers: each step of the sum loads ``vectors`` vectors of the right operand, and
multiplies them with ``rows`` elements of the left one. Panels of the right operand may be packed, so that a step reads
consecutive memory: in each call, or once before all calls if the operand is a weight. Columns that are no multiple of
the tile are padded; of rows, the last tile has fewer if the loop over them is the inner one. What follows the product
is computed on the tile while it is in the first cache. (Goto and van de Geijn, ACM TOMS 34(3), 2008; Van Zee and van de
Geijn, ACM TOMS 41(3), 2015.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import (
    fetch_ahead,
    fuse,
    inline,
    largest_divisor,
    parallelize,
    separate_partial_tiles,
    vectorize,
)
from loopwright.codegen.weights.packed_weight import PACKS

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
_VECTORS = (1, 2, 3, 4)
SHARED_VECTORS = 2
"""Of a panel of a weight that several programs have. Tiles of 6 rows by 2 vectors fill the registers of AVX2 best."""
_IN_PLACE, _BY_TASK, _FIRST, _ONCE = 0, 1, 2, 3
"""The right operand: read where it is; a panel packed by the task that uses it; all panels packed before the product; a
weight's panels packed once, before all calls."""
_COLUMNS, _ROWS_OUTER = 0, 1
"""Which loop of tiles is the outer one."""
_BLOCKS = (0, 1, 2, 4, 8, 16, 32)
"""Tiles of the inner loop that are a task; 0 for all."""
_SEEDS = 6
"""Tiles to measure first, each with the order of its loops that threads share better: on one thread of AMD Zen 4, the
other order took as long within 3 % (2 weights and a product)."""
WIDENED_LOADS = (0.15, 0.5)
"""Costs of loads, for `seeds`, if bytes are widened to int16: a vector takes an instruction beside the two that
multiply and add. Fitted by eye to the tiles of a product of 512 cubed on AMD Zen 4, with AVX2."""
FLOAT_SUMS = 8
"""Vectors of float32 sums with which no addition waits for another: two units, and four cycles each (AMD Zen 4, Intel
since Skylake)."""
_PARTIAL_TILE = 0.02
"""Share of its time by which a product takes longer if its last tile has fewer rows: it is code of its own. Fitted by
eye to 2 weights (AMD Zen 4, one thread)."""
_FEW_REGISTERS = 16
_LARGE = 2**16
"""Elements of the right operand from which its panels are packed in the seeds."""


@dataclass(frozen=True, slots=True)
class Dot:
    """An instruction that adds the products of ``group`` neighbours in depth to each lane: the intrinsic's name.

    ``wide`` is the dtype in which it takes the left operand; None for the operand's own.
    """

    intrinsic: str
    group: int
    wide: str | None = None


def knobs(contraction: Contraction, packs: bool) -> tuple[Knob, ...]:
    """Return the knobs of a tile; with ``packs``, the right operand is never read in place."""
    places = (_BY_TASK, _FIRST) if packs else (_IN_PLACE, _BY_TASK, _FIRST)
    return (
        Knob("rows", _ROWS),
        Knob("vectors", _vectors(contraction)),
        # In a model, a weight comes from memory: panels are read in order, whatever a race with a warm cache says.
        Knob("pack", (_ONCE,) if contraction.right_is_weight else places),
        Knob("outer", (_COLUMNS, _ROWS_OUTER)),
        Knob("block", _BLOCKS),
        Knob("unroll", (1, 2, 4)),
    )


def float_loads(machine: MachineLimits) -> tuple[float, float]:
    """Return the costs of loads, for `seeds`, of a product of float32.

    Where there are 32 registers (AVX-512, Neon), the instruction that multiplies and adds takes the element itself.
    There, with 1 for each cost, the first choices for 4 products took 1.3 times as long as the best tile in the
    geometric mean, and with these 1.05 times (AMD Zen 4, AVX-512, one thread).
    """
    return (0.05 if machine.registers > _FEW_REGISTERS else WIDENED_LOADS[0], 0.5)


def seeds(
    contraction: Contraction,
    machine: MachineLimits,
    packs: bool,
    loads: tuple[float, float] = (1.0, 1.0),
    sums: int = 1,
) -> Iterable[Knobs]:
    """Return the tiles that load least for their work, waste least by padding and share the work best.

    ``loads`` are the costs of loading an element of the left operand and a vector of the right one, relative to what a
    vector of the tile takes in a step. A step takes as long as one of a tile of ``sums`` vectors at least. One row
    takes 0.96 times as long if the sum is not unrolled (6 weights of 256 to 2,048 rows, one thread of AMD Zen 4).
    """
    scored = []
    for rows in _ROWS:
        for vectors in _vectors(contraction):
            if registers(rows, vectors) > machine.registers:
                continue
            width = vectors * machine.lanes
            down, across = math.ceil(contraction.rows / rows), math.ceil(contraction.columns / width)

            def steps(rows: int, vectors: int = vectors) -> float:
                return max(rows * vectors, sums) + loads[0] * rows + loads[1] * vectors

            vectors_of_result = contraction.rows * contraction.columns / machine.lanes
            for outer, first, second in ((_COLUMNS, across, down), (_ROWS_OUTER, down, across)):
                is_partial = bool(contraction.rows % rows) and outer == _COLUMNS and not packs
                block, idle = _share(contraction.batches * first, second, machine.threads, has_parts=is_partial)
                down_steps = down * steps(rows)
                if is_partial:
                    down_steps += steps(contraction.rows % rows) - steps(rows)
                copies = 0.0 if contraction.rows % rows == 0 else _PARTIAL_TILE if is_partial else 0.1
                cost = across * down_steps / vectors_of_result * idle + copies
                scored.append((cost, rows, vectors, outer, block))
    tiles: dict[tuple[int, int], tuple[float, int, int, int, int]] = {}
    for each in sorted(scored):
        tiles.setdefault((each[1], each[2]), each)
    copies_right = packs or contraction.right_is_transposed or contraction.depth * contraction.columns > _LARGE
    for place, (_, rows, vectors, outer, block) in enumerate([*tiles.values()][:_SEEDS]):
        if contraction.right_is_weight:
            pack = _ONCE
        elif copies_right:
            pack = _BY_TASK if outer == _COLUMNS and not block else _FIRST
        else:
            pack = _IN_PLACE
        yield {
            "rows": rows,
            "vectors": vectors,
            "pack": pack,
            "outer": outer,
            "block": block,
            "unroll": 4 if (place % 2 == 0) == (contraction.rows > 1) else 1,
        }


class ProductTile:
    """The steps that schedule one function with a product; ``dot`` is None for one multiplication at a time."""

    def __init__(
        self,
        schedule: Schedule,
        program: AnalysedProgram,
        contraction: Contraction,
        machine: MachineLimits,
        dot: Dot | None = None,
    ) -> None:
        self._schedule = schedule
        self._program = program
        self._contraction = contraction
        self._lanes = machine.lanes
        self._registers = machine.registers
        self._dot = dot
        self._group = 1 if dot is None else dot.group
        self._wide = None if dot is None else dot.wide
        self._product: Any = None
        self._write: Any = None
        self._left_copy: Any = None
        self._right_pad: Any = None

    def apply(self, values: Knobs) -> None:
        sch, contraction = self._schedule, self._contraction
        if registers(values["rows"], values["vectors"]) > self._registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        width = values["vectors"] * self._lanes
        # Intrinsics take whole tiles, and TVM separates no part of a parallel loop.
        has_parts = self._dot is None and values["outer"] == _COLUMNS and bool(contraction.rows % values["rows"])
        self._find_blocks(1 if has_parts else values["rows"], width)
        loops = sch.get_loops(self._product)
        count = len(contraction.block.spatial)
        tiled = (contraction.row_axis, contraction.column_axis)
        batch = [loop for n, loop in enumerate(loops[:count]) if n not in tiled]
        io, ii = sch.split(loops[contraction.row_axis], [None, values["rows"]])
        jo, jv, jx = sch.split(loops[contraction.column_axis], [None, values["vectors"], self._lanes])
        depth = math.ceil(contraction.depth / self._group)
        ko, ki, kg = sch.split(loops[count], [None, math.gcd(values["unroll"], depth), self._group])
        outer, inner = (jo, io) if values["outer"] == _COLUMNS else (io, jo)
        tasks, place = [*batch, outer], inner
        if values["block"]:
            tiles = int(sch.get(inner).extent)
            block = min(tiles, values["block"]) if has_parts else largest_divisor(tiles, values["block"])
            part, place = sch.split(inner, [None, block])
            tasks.append(part)
        sch.reorder(*tasks, place, ko, ki, ii, jv, jx, kg)
        packed = self._packed_right(values["pack"], width)
        sch.reverse_compute_at(self._write, place)
        task = fuse(sch, tasks)
        parallelize(sch, task)
        for loop in (ki, ii, jv):
            sch.unroll(loop)
        if packed is not None and values["pack"] == _BY_TASK:
            sch.compute_at(packed, task)
        elif packed is not None:
            parallelize(sch, fuse(sch, sch.get_loops(packed)[: -1 if self._group == 1 else -3]))
        if values["pack"] == _ONCE:
            sch.annotate(packed, PACKS, True)
        if self._left_copy is not None:
            # LLVM makes vectors of the inner loop.
            parallelize(sch, fuse(sch, sch.get_loops(self._left_copy)[:-1]))
        if has_parts:
            separate_partial_tiles(sch, place)
        fetch_ahead(sch, place, columns=contraction.columns, depth=contraction.depth)
        self._multiply(ko, jx)
        if packed is not None and self._group == 1:
            self._vectorize(packed, self._right_pad is not None)
        if contraction.columns % width:
            self._vectorize(self._write, True)
        else:
            vectorize(sch, str(sch.get(self._write).name_hint), sch.get_loops(self._write)[-1], self._lanes)

    def _find_blocks(self, rows: int, width: int) -> None:
        """Inline what can be, pad and widen what must be, and find the product and the block that takes its result."""
        sch, contraction = self._schedule, self._contraction
        name = contraction.block.name
        left = self._program.producer(contraction.left.source) if self._wide else None
        last = inline(sch, self._program, frozenset({left.name} if left else ()))[-1].name
        self._product = sch.get_sblock(name)
        self._left_copy = sch.get_sblock(left.name) if left else None
        pads = [1] * (len(contraction.block.spatial) + 1)
        pads[contraction.row_axis], pads[contraction.column_axis], pads[-1] = rows, width, self._group
        extents = (contraction.rows, contraction.columns, contraction.depth)
        copies = []
        if any(extent % multiple for extent, multiple in zip(extents, (rows, width, self._group), strict=True)):
            copies = self._pad(pads)
        if last != name:
            for copy in copies:
                sch.compute_inline(copy)
            self._write = sch.get_sblock(last)
        else:
            self._write = copies[0] if copies else sch.cache_write(self._product, 0, "global")
        if self._wide:
            self._widen(self._wide)

    def _pad(self, pads: list[int]) -> list[Any]:
        """Pad the operands to multiples of these extents. Returns the blocks that copy the result without padding."""
        sch, contraction = self._schedule, self._contraction
        sch.pad_einsum(self._product, pads)
        producers = {str(sch.get(block).name_hint): block for block in sch.get_producers(self._product)}
        self._right_pad = producers.get(f"{contraction.right.source.name}_pad")
        left_pad = producers.get(f"{contraction.left.source.name}_pad")
        if left_pad is not None and self._left_copy is not None:
            sch.compute_inline(self._left_copy)
        self._left_copy = left_pad or self._left_copy
        return [block for block in sch.get_consumers(self._product) if "_pad" in str(sch.get(block).name_hint)]

    def _widen(self, dtype: str) -> None:
        """Keep the left operand in the instruction's dtype: where a block makes or pads it, or in a copy.

        Its values remain those of its own dtype, to which the description of the intrinsic casts them back.
        """
        sch, contraction = self._schedule, self._contraction
        if self._left_copy is None:
            self._left_copy = sch.cache_read(self._product, 1 - contraction.right_index, "global")
        if contraction.operands[0] != dtype:
            sch.unsafe_set_dtype(self._left_copy, 0, dtype)

    def _packed_right(self, pack: int, width: int) -> Any:
        """Copy the right operand into panels ``[…, columns / width, depth / group, width, group]``.

        Returns the copying block; None if the operand is read in place.
        """
        sch, contraction, group = self._schedule, self._contraction, self._group
        if pack == _IN_PLACE and self._right_pad is None:
            if contraction.right_is_transposed:
                raise RuleRefused("the right operand's columns are not contiguous")
            return None
        copy = self._right_pad
        if copy is None:
            copy = sch.cache_read(self._product, contraction.right_index, "global")
        column, depth = contraction.right_column, contraction.right_depth
        others = [n for n in range(len(contraction.right.indices)) if n not in (column, depth)]

        def panels(*i: Any) -> list[Any]:
            inner = [i[column] % width] if group == 1 else [i[column] % width, i[depth] % group]
            return [*(i[n] for n in others), i[column] // width, i[depth] // group, *inner]

        sch.transform_layout(copy, ("write", 0), panels)
        loops = sch.get_loops(copy)
        panel, inner = sch.split(loops[column], [None, width])
        step = [loops[depth]] if group == 1 else sch.split(loops[depth], [None, group])
        sch.reorder(*(loops[n] for n in others), panel, step[0], inner, *step[1:])
        return copy

    def _multiply(self, step: Any, lane: Any) -> None:
        """Separate the first zeros from the sum, and let the lanes be a vector."""
        sch = self._schedule
        if self._dot is None:
            sch.vectorize(lane)
            sch.decompose_reduction(self._product, step)
            return
        init = sch.decompose_reduction(self._product, step)
        sch.vectorize(sch.get_loops(init)[-1])
        sch.tensorize(lane, self._dot.intrinsic)

    def _vectorize(self, block: Any, is_padded: bool) -> None:
        """Run the innermost loop of a block in vectors, apart from those in which some elements are padding.

        TVM computes vectors with conditions one element after another.
        """
        vector, lane = self._schedule.split(self._schedule.get_loops(block)[-1], [None, self._lanes])
        if is_padded:
            separate_partial_tiles(self._schedule, vector)
        self._schedule.vectorize(lane)


def registers(rows: int, vectors: int) -> int:
    """Return how many vectors a step needs: the tile, the right operand's, and an element of the left one."""
    return rows * vectors + vectors + 1


def _vectors(contraction: Contraction) -> tuple[int, ...]:
    return (SHARED_VECTORS,) if contraction.right_is_shared else _VECTORS


def _share(outer: int, inner: int, threads: int, *, has_parts: bool) -> tuple[int, float]:
    """Return the block of inner tiles that makes tasks which share well, and by how much the slowest thread is late.

    With ``has_parts``, the last block may have fewer tiles.
    """

    def idle(block: int) -> float:
        tasks = outer * math.ceil(inner / block)
        return math.ceil(tasks / threads) * threads * block / (outer * inner)

    if idle(inner) < 1.1:
        return 0, idle(inner)
    blocks = [block for block in _BLOCKS[1:] if inner % block == 0 or (has_parts and block < inner)]
    block = max(blocks, key=lambda block: (-round(idle(block), 1), block))
    return block, idle(block)
