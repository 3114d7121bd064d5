"""Products of a vector and a matrix, which take as long as reading the matrix: it is read once, in order.

A task has a block of columns, whose sums stay in the first cache while the rows of the block are added to them, a few
rows at a time. A matrix that is stored by columns (``[columns, depth]``) is multiplied in dot products instead: some
columns at a time, each with a vector of partial sums.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import fuse, inline, largest_divisor, parallelize, vectorize

_BLOCKS = (64, 128, 256, 512, 1024, 2048)
_AT_ONCE = (1, 2, 4, 8)
_LEAST_LANES = 4
"""With shorter vectors, TVM's own sketches are as good."""


class Gemv:
    name = "gemv"
    version = 2

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        contraction = Contraction.of(program)
        if contraction is None or contraction.rows > 1 or contraction.columns < machine.lanes:
            return ()
        if not contraction.right_is_transposed and contraction.columns % _LEAST_LANES:
            return ()
        return (Knob("block", _BLOCKS), Knob("at_once", _AT_ONCE))

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        if Contraction.required(program).right_is_weight:
            return  # `register_tile` packs a weight once, and keeps the sums in registers
        for at_once in (8, 4):
            yield {"block": 256, "at_once": at_once}
        yield {"block": 64, "at_once": 4}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        contraction = Contraction.required(program)
        last = inline(schedule, program)[-1].name
        name = contraction.block.name
        product = schedule.get_sblock(name)
        if contraction.right_is_transposed:
            _dot_products(schedule, contraction, last, machine, values)
            return
        if last == name:
            last = str(schedule.get(schedule.cache_write(product, 0, "global")).name_hint)
        write = schedule.get_sblock(last)
        loops = schedule.get_loops(product)
        count = len(contraction.block.spatial)
        others = [loop for n, loop in enumerate(loops[:count]) if n != contraction.column_axis]
        lanes = math.gcd(contraction.columns, machine.lanes)
        vectors = largest_divisor(contraction.columns // lanes, values["block"] // lanes)
        task, vector, lane = schedule.split(loops[contraction.column_axis], [None, vectors, lanes])
        rest, at_once = schedule.split(loops[count], [None, largest_divisor(contraction.depth, values["at_once"])])
        schedule.reorder(*others, task, rest, vector, at_once, lane)
        tasks = fuse(schedule, [*others, task])
        schedule.reverse_compute_at(write, tasks)
        parallelize(schedule, tasks)
        schedule.vectorize(lane)
        schedule.unroll(at_once)
        schedule.decompose_reduction(product, rest)
        vectorize(schedule, last, schedule.get_loops(write)[-1], lanes)


def _dot_products(
    schedule: Schedule, contraction: Contraction, last: str, machine: MachineLimits, values: Knobs
) -> None:
    """Split the sum into a vector of partial sums, for some columns at a time."""
    lanes = machine.lanes
    if contraction.depth % lanes or contraction.depth == lanes:
        raise RuleRefused("the depth is no whole number of vectors, or one vector")
    name = contraction.block.name
    product = schedule.get_sblock(name)
    count = len(contraction.block.spatial)
    _, lane = schedule.split(schedule.get_loops(product)[count], [None, lanes])
    parts = schedule.rfactor(lane, count)
    columns = largest_divisor(contraction.columns, values["at_once"])
    write = schedule.get_sblock(last)
    loops = schedule.get_loops(write)[: None if last != name else count]  # without that of the partial sums
    outer, _ = schedule.split(loops[-1], [None, columns])
    tasks = fuse(schedule, [*loops[:-1], outer])
    parallelize(schedule, tasks)
    if last != name:
        schedule.compute_at(product, tasks)
    schedule.compute_at(parts, tasks)
    # One loop for each axis of the block with more than one element: lane, columns, steps.
    inner, *between, step = schedule.get_loops(parts)[1:]
    schedule.reorder(step, *between, inner)
    schedule.vectorize(inner)
    for column in between:
        schedule.unroll(column)
    schedule.decompose_reduction(parts, step)
