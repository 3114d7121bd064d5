"""Reductions of a whole matrix along its rows: every thread takes a part of the rows, and reads them in order.

A task reduces its rows, a few at a time, into a row of partial results, which stays in the first cache. The partial
results are reduced at the end. `column_reduce` instead keeps results in registers, and reads columns.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.cpu import column_reduction
from loopwright.codegen.cpu.column_reduction import ColumnReduction
from loopwright.codegen.rules.analysis.columns import Columns
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import divisors, inline, largest_divisor, vectorize

_PARTS = 32
"""Parts of the rows at most."""
_AT_ONCE = (2, 4, 8, 16)


class ColumnSum:
    name = "column_sum"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        block = _reduction(program)
        if block is None:
            return ()
        parts = tuple(n for n in divisors(block.reduced[0][1], _PARTS) if n > 1)
        return (Knob("parts", parts), Knob("at_once", _AT_ONCE)) if parts else ()

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        parts, _ = self.knobs(program, machine)
        shared = [n for n in parts.values if n % machine.threads == 0] or parts.values
        for at_once in (4, 16, 8):
            yield {"parts": shared[0], "at_once": at_once}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        found = _reduction(program)
        assert found is not None, "the rule has no knobs for this function"
        last = inline(schedule, program)[-1].name
        block = schedule.get_sblock(found.name)
        rows = found.reduced[0][1] // values["parts"]
        part, _ = schedule.split(schedule.get_loops(block)[-1], [values["parts"], None])
        partial = schedule.rfactor(part, 0)
        *others, lane, task, row = schedule.get_loops(partial)
        at_once = largest_divisor(rows, values["at_once"])
        step, inner = schedule.split(row, [None, at_once])
        schedule.reorder(task, step, *others, lane, inner)
        schedule.parallel(task)
        init = schedule.decompose_reduction(partial, step)
        assert found.operation is not None
        reduction = ColumnReduction(found.operation, at_once, found.spatial[-1][1], machine.lanes)
        column_reduction.register(reduction.name)
        schedule.tensorize(lane, reduction.name)
        vectorize(schedule, str(schedule.get(init).name_hint), schedule.get_loops(init)[-1], machine.lanes)
        block = schedule.get_sblock(found.name)
        # LLVM makes vectors of this loop.
        last_part = schedule.get_loops(block)[-1]
        schedule.unroll(last_part)
        schedule.decompose_reduction(block, last_part)
        if last != found.name:
            vectorize(schedule, last, schedule.get_loops(schedule.get_sblock(last))[-1], machine.lanes)


def _reduction(program: AnalysedProgram) -> Block | None:
    """Return the sum, or maximum, of the rows of a matrix that a function computes, or None."""
    columns = Columns.of(program)
    if columns is None or columns.row is not None or columns.padding is not None or len(columns.block.reduced) != 1:
        return None
    block = columns.block
    if block.dtype != "float32":
        return None
    [(row, _)] = block.reduced
    # TVM makes no parts of a reduction to the largest.
    if block.operation not in ("sum", "max") or len(block.loads) != 1 or not block.term.same_as(block.loads[0]):
        return None
    lane, indices = block.spatial[columns.lane][0], block.loads[0].indices
    is_matrix = columns.lane == len(block.spatial) - 1 and is_var(indices[-1], lane) and is_var(indices[-2], row)
    return block if is_matrix else None
