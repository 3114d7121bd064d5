"""Recurrent layers: a tile of units and sequences stays in registers while the state is multiplied with the matrix.

The matrix is in panels already (`loopwright.codegen.graph.recurrence`), whose rows are read in order in each step. One
thread takes all steps, since a step of some hundred units takes less time than waking another thread. Threads may take
parts of the batch, each for all steps, or some of the panels in each step, which pays for large matrices.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.graph.recurrence import FINAL, PARTS
from loopwright.codegen.rules.analysis.program import STEPS_RULE, AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors

_SERIAL, _PARTS, _PANELS = 0, 1, 2
"""What threads share: nothing; the parts of the batch; the panels, in each step."""
_MOST_PANELS = 4
_SPARE_REGISTERS = 2
"""For an element of the state and a vector of the matrix."""
_LARGE = 2**17
"""Elements of the matrix from which seeds have threads share the panels. Not tuned."""
_SEED_TILES = 3


class Recurrent:
    name = STEPS_RULE
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        if not program.has_steps or any(block.dtype != "float32" for block in program.blocks):
            return ()
        rows, panels, *_ = _extents(program.reductions[0])
        return (
            Knob("threads", (_SERIAL, *((_PARTS,) if _parts(program) > 1 else ()), _PANELS)),
            Knob("panels", divisors(panels, _MOST_PANELS)),
            Knob("rows", divisors(rows)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        _, panels, rows = (knob.values for knob in self.knobs(program, machine))
        tiles = [(row, panel) for row in rows for panel in panels if _fits(program, machine, row, panel)]
        tiles.sort(key=lambda tile: (-tile[0] * tile[1], -tile[0]))  # rows share what is read of the matrix
        weight = program.reductions[0].loads[1].source.shape
        is_large = math.prod(map(int, weight)) >= _LARGE
        shared = _PARTS if _parts(program) > 1 else _PANELS if is_large else _SERIAL
        for threads in dict.fromkeys((shared if machine.threads > 1 else _SERIAL, _SERIAL)):
            for row, panel in tiles[:_SEED_TILES]:
                yield {"threads": threads, "panels": panel, "rows": row}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        if not _fits(program, machine, values["rows"], values["panels"]):
            raise RuleRefused("the tile has more vectors than the processor has registers")
        if values["threads"] == _PARTS:
            schedule.parallel(schedule.get_loops(schedule.get_sblock(PARTS))[0])
        for block in program.blocks:
            if block.is_reduction:
                _sum(schedule, block.name, machine, values)
            else:
                _map(schedule, block.name, machine)


def _sum(schedule: Schedule, name: str, machine: MachineLimits, values: Knobs) -> None:
    block = schedule.get_sblock(name)
    row, panel, depth, gate, unit = schedule.get_loops(block)
    rows, row = schedule.split(row, [None, values["rows"]])
    panels, panel = schedule.split(panel, [None, values["panels"]])
    vector, lane = schedule.split(unit, [None, machine.lanes])
    schedule.reorder(panels, rows, depth, row, panel, gate, vector, lane)
    if values["threads"] == _PANELS:
        schedule.parallel(panels)
    for loop in (row, panel, gate, vector):
        schedule.unroll(loop)
    schedule.vectorize(lane)
    schedule.decompose_reduction(block, depth)


def _map(schedule: Schedule, name: str, machine: MachineLimits) -> None:
    inner = schedule.get_loops(schedule.get_sblock(name))[-1]
    if int(schedule.get(inner).extent) % machine.lanes == 0:
        schedule.vectorize(schedule.split(inner, [None, machine.lanes])[1])


def _fits(program: AnalysedProgram, machine: MachineLimits, rows: int, panels: int) -> bool:
    """Return whether the vectors of a tile are in registers; the smallest tile is taken in any case."""
    *_, gates, width = _extents(program.reductions[0])
    vectors = rows * panels * gates * width // machine.lanes
    return rows * panels == 1 or vectors + _SPARE_REGISTERS <= machine.registers


def _parts(program: AnalysedProgram) -> int:
    """Return how many parts the batch has."""
    batch = int(program.block(FINAL).store.buffer.shape[0])
    return batch // _extents(program.reductions[0])[0]


def _extents(block: Block) -> list[int]:
    """Return the extents of a sum: sequences of a part, panels, gates, units of a panel."""
    return [extent for _, extent in block.spatial]
