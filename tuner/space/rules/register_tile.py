"""Products of matrices: a tile of the result stays in vector registers while the whole sum runs over it.

The tile is ``rows`` x ``vectors`` registers: each step of the sum loads ``vectors`` vectors of the right operand, and
multiplies them with ``rows`` elements of the left one. Panels of the right operand may be packed, so that a step reads
consecutive memory; extents that are no multiple of the tile are padded. What follows the product is computed on the
tile while it is in the first cache. (Goto and van de Geijn, ACM TOMS 34(3), 2008; Van Zee and van de Geijn, ACM TOMS
41(3), 2015.)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm.s_tir import Schedule

from tuner.space.rules.contraction import Contraction
from tuner.space.rules.program import Program
from tuner.space.rules.rule import Knob, Knobs, Machine, Refused
from tuner.space.rules.steps import fuse, inline, largest_divisor, vectorize

_ROWS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14)
_VECTORS = (1, 2, 3, 4)
_IN_PLACE, _BY_TASK, _FIRST = 0, 1, 2
"""The right operand: read where it is; a panel packed by the task that uses it; all panels packed before."""
_COLUMNS, _ROWS_OUTER = 0, 1
"""Which loop of tiles is the outer one."""
_BLOCKS = (0, 1, 2, 4, 8, 16, 32)
"""Tiles of the inner loop that are a task; 0 for all."""

_SEEDS = 8
_LARGE = 2**16
"""Elements of the right operand from which its panels are packed in the seeds."""


class RegisterTile:
    name = "register_tile"
    version = 1

    def knobs(self, program: Program, machine: Machine) -> tuple[Knob, ...]:
        contraction = Contraction.of(program)
        if contraction is None or contraction.columns < machine.lanes // 2 or contraction.rows < 2:
            return ()
        return (
            Knob("rows", _ROWS),
            Knob("vectors", _VECTORS),
            Knob("pack", (_IN_PLACE, _BY_TASK, _FIRST)),
            Knob("outer", (_COLUMNS, _ROWS_OUTER)),
            Knob("block", _BLOCKS),
            Knob("unroll", (1, 2, 4)),
        )

    def seeds(self, program: Program, machine: Machine) -> Iterable[Knobs]:
        contraction = Contraction.of(program)
        assert contraction is not None, "the rule has no knobs for this function"
        return _seeds(contraction, machine)

    def apply(self, schedule: Schedule, program: Program, machine: Machine, values: Knobs) -> None:
        contraction = Contraction.of(program)
        assert contraction is not None, "the rule has no knobs for this function"
        rows, vectors = values["rows"], values["vectors"]
        width = vectors * machine.lanes
        if rows * vectors + vectors + 1 > machine.registers:
            raise Refused("the tile has more vectors than the processor has registers")
        pads = [1] * (len(contraction.block.spatial) + 1)
        pads[contraction.row_axis], pads[contraction.column_axis] = rows, width
        tile = _Tiled(schedule, program, contraction, pads)
        tile.schedule_product(machine, values)


class _Tiled:
    """The steps for one product; ``pads`` are the multiples to which its axes are padded."""

    def __init__(self, schedule: Schedule, program: Program, contraction: Contraction, pads: list[int]) -> None:
        self._schedule = schedule
        self._contraction = contraction
        name = contraction.block.name
        last = inline(schedule, program)[-1].name
        self._product = schedule.get_sblock(name)
        row_pad = contraction.rows % pads[contraction.row_axis] != 0
        column_pad = contraction.columns % pads[contraction.column_axis] != 0
        self._right_pad: Any = None
        self._left_pad: Any = None
        self._column_pad = column_pad
        if row_pad or column_pad:
            schedule.pad_einsum(self._product, pads)
            producers = {str(schedule.get(b).name_hint): b for b in schedule.get_producers(self._product)}
            self._left_pad = producers.get(f"{contraction.left.source.name}_pad")
            self._right_pad = producers.get(f"{contraction.right.source.name}_pad")
            [copy] = schedule.get_consumers(self._product)
            if last != name:
                schedule.compute_inline(copy)
                self._write = schedule.get_sblock(last)
            else:
                self._write = copy
        elif last != name:
            self._write = schedule.get_sblock(last)
        else:
            self._write = schedule.cache_write(self._product, 0, "global")

    def schedule_product(self, machine: Machine, values: Knobs) -> None:
        sch, contraction = self._schedule, self._contraction
        loops = sch.get_loops(self._product)
        count = len(contraction.block.spatial)
        batch = [
            loop for n, loop in enumerate(loops[:count]) if n not in (contraction.row_axis, contraction.column_axis)
        ]
        io, ii = sch.split(loops[contraction.row_axis], [None, values["rows"]])
        jo, jv, jx = sch.split(loops[contraction.column_axis], [None, values["vectors"], machine.lanes])
        ko, ki = sch.split(loops[count], [None, math.gcd(values["unroll"], contraction.depth)])
        outer, inner = (jo, io) if values["outer"] == _COLUMNS else (io, jo)
        tasks, place = [*batch, outer], inner
        if values["block"]:
            blocks = largest_divisor(int(sch.get(inner).extent), values["block"])
            task, place = sch.split(inner, [None, blocks])
            tasks.append(task)
        sch.reorder(*tasks, place, ko, ki, ii, jv, jx)
        packed = self._pack_right(values["pack"], values["vectors"] * machine.lanes)
        sch.reverse_compute_at(self._write, place)
        task = fuse(sch, tasks)
        sch.parallel(task)
        sch.vectorize(jx)
        for loop in (ki, ii, jv):
            sch.unroll(loop)
        if packed is not None and values["pack"] == _BY_TASK:
            sch.compute_at(packed, task)
        elif packed is not None:
            panels = sch.get_loops(packed)
            sch.parallel(fuse(sch, panels[: len(panels) - 2]))
        if self._left_pad is not None:
            self._copy_left(machine.lanes)
        sch.decompose_reduction(self._product, ko)
        if packed is not None:
            sch.vectorize(sch.split(sch.get_loops(packed)[-1], [None, machine.lanes])[1])
        write = sch.get_loops(self._write)
        name = str(sch.get(self._write).name_hint)
        if self._column_pad:
            sch.vectorize(sch.split(write[-1], [None, machine.lanes])[1])
        else:
            vectorize(sch, name, write[-1], machine.lanes)

    def _pack_right(self, pack: int, width: int) -> Any:
        """Copy the right operand into panels ``[…, columns / width, depth, width]``; None if it is read in place."""
        sch, contraction = self._schedule, self._contraction
        if pack == _IN_PLACE and self._right_pad is None:
            if contraction.right_is_transposed:
                raise Refused("the right operand's columns are not contiguous")
            return None
        index = contraction.right_index
        copy = self._right_pad if self._right_pad is not None else sch.cache_read(self._product, index, "global")
        column, depth = contraction.right_column, contraction.right_depth
        rank = len(contraction.right.indices)
        others = [n for n in range(rank) if n not in (column, depth)]

        def panels(*i: Any) -> list[Any]:
            return [*(i[n] for n in others), i[column] // width, i[depth], i[column] % width]

        sch.transform_layout(copy, ("write", 0), panels)
        loops = sch.get_loops(copy)
        by_axis = [loops[n] for n in others]
        outer, inner = sch.split(loops[column], [None, width])
        sch.reorder(*by_axis, outer, loops[depth], inner)
        return copy

    def _copy_left(self, lanes: int) -> None:
        loops = self._schedule.get_loops(self._left_pad)
        self._schedule.parallel(fuse(self._schedule, loops[:-1]))


def _seeds(contraction: Contraction, machine: Machine) -> Iterable[Knobs]:
    """Return the tiles that load least for their work, waste least by padding and share the work best."""
    scored = []
    for rows in _ROWS:
        for vectors in _VECTORS:
            if rows * vectors + vectors + 1 > machine.registers:
                continue
            across, down = math.ceil(contraction.rows / rows), contraction.columns / (vectors * machine.lanes)
            down = math.ceil(down)
            padded = across * rows * down * vectors * machine.lanes / (contraction.rows * contraction.columns)
            loads = (rows + vectors) / (rows * vectors)
            copies = 0.1 if contraction.rows % rows else 0.0
            for outer, (first, second) in ((_COLUMNS, (down, across)), (_ROWS_OUTER, (across, down))):
                block, idle = _share(contraction.batches * first, second, machine.threads)
                scored.append((padded * (1 + loads) * idle + copies, rows, vectors, outer, block))
    scored.sort()
    large = contraction.right_is_transposed or contraction.depth * contraction.columns > _LARGE
    for place, (_, rows, vectors, outer, block) in enumerate(scored[:_SEEDS]):
        by_task = outer == _COLUMNS and not block
        yield {
            "rows": rows,
            "vectors": vectors,
            "pack": _IN_PLACE if not large else _BY_TASK if by_task else _FIRST,
            "outer": outer,
            "block": block,
            "unroll": 1 if place % 2 else 4,
        }


def _share(outer: int, inner: int, threads: int) -> tuple[int, float]:
    """Return the block of inner tiles that makes tasks which share well, and by how much the slowest thread is late."""

    def idle(tasks: int) -> float:
        return math.ceil(tasks / threads) * threads / tasks

    if idle(outer) < 1.1:
        return 0, idle(outer)
    blocks = [block for block in _BLOCKS[1:] if inner % block == 0]
    block = max(blocks, key=lambda block: (-round(idle(outer * inner // block), 1), block))
    return block, idle(outer * (inner // block))
