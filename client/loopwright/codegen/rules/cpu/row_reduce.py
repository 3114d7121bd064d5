"""Softmax, normalisations and reductions along rows: all stages of some rows in one pass over a parallel loop of rows.

Every stage is computed where the results of its rows are written, so that rows stay in the first cache. With several
rows at a time, TVM's runtime is asked for memory less often. Reductions keep vectors of partial results
(`loopwright.codegen.cpu.row_reduction`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import tvm
from tvm import tirx
from tvm.s_tir import Schedule

from loopwright.codegen.cpu import row_reduction
from loopwright.codegen.cpu.row_reduction import RowReduction
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline, largest_divisor, parallelize, remains, vectorize

_SERIAL, _PARALLEL = 0, 1
_OPERATIONS = ("sum", "max", "largest")
_MAPPED = ("float32", "int8", "uint8", "float16", "bfloat16")
"""Rows may be quantised, or rounded to halves."""
_SHORT = 1024
"""Elements of rows up to which two at a time are tried first: they stay in the first cache. With rows of 70
to 900 elements, 11 functions took 0.84 times as long as with one row, or four, at a time (AMD Zen 4)."""
_WORTH_THREADS = 2000
"""Vectors of all blocks from which two threads took less time than one: softmax of 1,250 took as long on both, and
layer normalisation of 3,600 0.73 times as long on two (AMD Zen 4)."""
_MOST_AXES = 2
"""With more axes in one, TVM does not see that the elements of a vector are neighbours."""


class RowReduce:
    name = "row_reduce"
    version = 3

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        if row_axes(program) is None:
            return ()
        return (Knob("parallel", (_SERIAL, _PARALLEL)), Knob("vectors", (1, 2, 4, 8)), Knob("rows", (1, 2, 4, 8)))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        length = math.prod(extent for _, extent in program.reductions[0].reduced)
        vectors = next(n for n in (4, 2, 1) if n == 1 or 2 * n * machine.lanes <= length)
        # Terms that are computed are written to a row of their own first. Several such rows leave the first cache if
        # they are long: one at a time took from 0.3 to 0.7 times as long (AMD Zen 4, one thread).
        choices = ((4, 1), (2, 1), (4, 4)) if _computes(program) else ((4, 4), (4, 8), (4, 1))
        if length <= _SHORT:
            choices = ((vectors, 2), (vectors, 1), (vectors, 4))
        # With one thread to run it, a parallel loop took 1.0 to 1.5 times as long as a serial one.
        work = sum(block.iterations for block in program.blocks) / machine.lanes
        is_long = machine.threads > 1 and work > _WORTH_THREADS
        first, other = (_PARALLEL, _SERIAL) if is_long else (_SERIAL, _PARALLEL)
        (vectors, together), *rest = choices
        for parallel in (first, other):
            yield {"parallel": parallel, "vectors": vectors, "rows": together}
        for count, rows in rest:
            yield {"parallel": first, "vectors": count, "rows": rows}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        rows = row_axes(program)
        assert rows is not None, "the rule has no knobs for this function"
        stages = inline(schedule, program, _terms_of_largest(program))
        last = stages[-1]
        terms = {stage.name: _with_terms(schedule, program, stage, stages) for stage in stages}
        names = [name for each in terms.values() for name in each]
        result = schedule.get_sblock(last.name)
        if last.is_reduction and leading(last, rows) > 1:
            # TVM does not tensorize below the fused axes of a block itself, if they have 64 bits.
            result = schedule.cache_write(result, 0, "global")
            names.append(str(schedule.get(result).name_hint))
        # TVM moves no output to its readers: the readers of a first output are moved to it.
        first = next(stage for stage in stages if stage.name in program.outputs)
        place = len(names) - 1 if first is last else names.index(first.name)
        root = result if first is last else schedule.get_sblock(first.name)
        outer = schedule.get_loops(root)[: leading(first, rows)]
        at_once = largest_divisor(int(schedule.get(outer[-1]).extent), values["rows"])
        row, _ = schedule.split(fuse(schedule, outer), [None, at_once])
        if values["parallel"] == _PARALLEL:
            parallelize(schedule, row)
        for name in names[place + 1 :]:
            schedule.reverse_compute_at(schedule.get_sblock(name), row)
        for name in reversed(names[:place]):
            schedule.compute_at(schedule.get_sblock(name), row)
        reduced = {stage.name: stage for stage in stages if stage.is_reduction}
        for stage in reduced.values():
            if len(terms[stage.name]) > 1 and stage.name != names[-1]:
                for name in terms[stage.name]:
                    _, along, *inner = schedule.get_loops(schedule.get_sblock(name))
                    schedule.reorder(*inner, along)
            adds_exponentials = _adds_exponentials(program, stage, stages)
            _reduce(schedule, stage, machine.lanes, values["vectors"], "expsum" if adds_exponentials else None)
        for name in names:
            loops = schedule.get_loops(schedule.get_sblock(name)) if name not in reduced else []
            if len(loops) > 1:
                vectorize(schedule, name, loops[-1], machine.lanes)


def _terms_of_largest(program: AnalysedProgram) -> frozenset[str]:
    """Return the blocks whose elements a maximum that keeps NaN takes: TVM makes no rows of its terms."""
    largest = [stage for stage in program.reductions if stage.operation == "largest"]
    producers = [program.producer(load.source) for stage in largest for load in stage.loads]
    return frozenset(block.name for block in producers if block is not None and not block.is_reduction)


def _with_terms(schedule: Schedule, program: AnalysedProgram, stage: Block, stages: list[Block]) -> list[str]:
    """Return the names of a stage's blocks. Terms of a reduction become a row of their own, unless they are just read,
    or are exponentials, which are never stored."""
    if not stage.is_reduction or (len(stage.reduced) == 1 and _only_reads(program, stage, stages)):
        return [stage.name]
    if _adds_exponentials(program, stage, stages):
        return [stage.name]
    loops = schedule.get_loops(schedule.get_sblock(stage.name))
    terms = schedule.rfactor(fuse(schedule, loops[len(stage.spatial) :]), len(stage.spatial))
    return [str(schedule.get(terms).name_hint), stage.name]


def _computes(program: AnalysedProgram) -> bool:
    """Return whether a reduction of the function computes its terms."""
    return any(_computes_terms(program, each) for each in program.reductions)


def _computes_terms(program: AnalysedProgram, block: Block) -> bool:
    """Return whether a reduction combines more than the elements of one buffer, once blocks are inlined."""
    if len(block.loads) != 1 or not block.term.same_as(block.loads[0]):
        return True
    producer = program.producer(block.loads[0].source)
    return producer is not None and not remains(program, producer)


def _only_reads(program: AnalysedProgram, stage: Block, stages: list[Block]) -> bool:
    """Return whether a reduction's terms are the elements of a buffer that is still there after inlining."""
    if len(stage.loads) != 1 or not stage.term.same_as(stage.loads[0]):
        return False
    return _is_stored(program, stage.loads[0], stages)


def _adds_exponentials(program: AnalysedProgram, stage: Block, stages: list[Block]) -> bool:
    """Return whether a reduction's terms are exponentials of a row's elements less a number of the row, both stored."""
    if stage.operation != "sum" or len(stage.reduced) != 1 or len(stage.loads) != 2:
        return False
    term, (element, number), [(axis, _)] = stage.term, stage.loads, stage.reduced
    if not isinstance(term, tvm.ir.Call) or stage.calls != {"tirx.exp"} or not isinstance(term.args[0], tirx.Sub):
        return False
    if not (term.args[0].a.same_as(element) and term.args[0].b.same_as(number)):
        return False
    return not any(is_var(index, axis) for index in number.indices) and all(
        _is_stored(program, load, stages) for load in stage.loads
    )


def _is_stored(program: AnalysedProgram, load: Any, stages: list[Block]) -> bool:
    """Return whether a load is of a buffer that is still there after inlining."""
    producer = program.producer(load.source)
    return producer is None or producer in stages


def _reduce(schedule: Schedule, stage: Block, lanes: int, vectors: int, operation: str | None) -> None:
    block = schedule.get_sblock(stage.name)
    schedule.decompose_reduction(block, schedule.get_loops(block)[-1])
    block = schedule.get_sblock(f"{stage.name}_update")
    length = math.prod(extent for _, extent in stage.reduced)
    assert stage.operation is not None
    reduction = RowReduction(operation or stage.operation, length, vectors, lanes)
    row_reduction.register(reduction.name)
    schedule.tensorize(schedule.get_loops(block)[-1], reduction.name)


def row_axes(
    program: AnalysedProgram, reduced: tuple[str, ...] = ("float32",), mapped: tuple[str, ...] = _MAPPED
) -> list[int] | None:
    """Return the extents of the rows' axes, those of one element left out; None if the function is of another form.

    Reductions have one of the dtypes ``reduced``, and other blocks one of ``mapped``.
    """
    reductions = program.reductions
    if not reductions or Contraction.of(program) or program.blocks[-1].name not in program.outputs:
        return None
    rows = _extents(reductions[0])
    for block in program.blocks:
        if block.dtype not in (reduced if block.is_reduction else mapped):
            return None
        if block.is_reduction and not (_extents(block) == rows and _reduces_rows(block)):
            return None
        if block.is_reduction and block.name in program.outputs and len(program.outputs) > 1:
            return None
        # What is inlined, such as the cast of a weight, may have other axes.
        if _extents(block)[: len(rows)] != rows and _extents(block) and remains(program, block):
            return None
    return rows


def _extents(block: Block) -> list[int]:
    return [extent for _, extent in block.spatial if extent > 1]


def leading(block: Block, rows: list[int]) -> int:
    """Return how many of the block's loops are the rows' axes; loops of one element count where they come first."""
    product, count = 1, 0
    for _, extent in block.spatial:
        if product == math.prod(rows) and extent > 1:
            break
        product *= extent
        count += 1
    return count


def _reduces_rows(block: Block) -> bool:
    """Return whether the block sums, or takes the maximum, along the last axis of what it reads, or the last two."""
    axes = [axis for axis, _ in block.reduced]
    # TVM makes no parts of a reduction to the largest, nor one axis of two.
    if len(axes) > (1 if block.operation == "largest" else _MOST_AXES) or block.operation not in _OPERATIONS:
        return False
    along = [load for load in block.loads if any(is_var(index, axis) for index in load.indices for axis in axes)]
    if not along or math.prod(extent for _, extent in block.reduced) == 1:
        return False
    if not all(all(map(is_var, load.indices[-len(axes) :], axes)) for load in along):
        return False
    # What is read along the axis is a row of the result's own, or one for all rows; else it is a product of matrices.
    rows = [var for var, size in block.spatial if size > 1]
    if any(0 < sum(any(is_var(index, var) for index in load.indices) for var in rows) < len(rows) for load in along):
        return False
    return block.operation == "sum" or (len(block.loads) == 1 and block.term.same_as(block.loads[0]))
