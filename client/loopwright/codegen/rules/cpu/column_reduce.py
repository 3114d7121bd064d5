"""Depthwise convolutions, poolings and reductions of columns: every lane of a vector reduces for itself.

The vectors run along the last axis of the result, which is also the last axis of what is reduced. A tile of ``rows`` x
``width`` results stays in registers while its windows are read. The part of a padded image that a task reads is made by
the task, while it is in a near cache, or the whole image is made before. If the sum over all pixels is a result, too,
each task adds up its part once it is computed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.columns import Columns, conditions
from loopwright.codegen.rules.analysis.convolution import contains
from loopwright.codegen.rules.analysis.pooling import Pooling
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import (
    divisors,
    fuse,
    inline,
    largest_divisor,
    parallelize,
    separate_partial_tiles,
    vectorize,
)
from loopwright.codegen.rules.analysis.windows import Windows

_BY_TASK, _FIRST = 0, 1
"""Where a padded image is made."""
_SERIAL, _PARALLEL = 0, 1
_ROWS = (1, 2, 4, 6, 8, 14)
_VECTORS = (1, 2, 4, 8)
_TASK_OVERHEAD = 300
"""Vectors of additions that take as long as a task beside its tiles. Not tuned."""
_NEAR = 2**15
"""Elements of a padded image, 128 KB, above which making it by the task costs twice as much. Not tuned."""
_WORTH_THREADS = 8000
"""Vectors of additions that take longer than starting the threads, about 3 us. Not tuned."""
_LATENCY = 4
"""Vectors of sums with which no addition waits for another. With 8 lanes, two units would take twice as many."""
_BESIDE = 8
"""Pixels whose sums are separate, at most. Not tuned."""
_PARTIAL_TILE = 2
"""By how much longer the rows of the last tile take, if they are fewer: they are code of its own, which stores one
element after another. Of depthwise convolutions with lines of 14 and 20 pixels, tiles that divide the line took 0.55 to
0.9 times as long as others (AMD Zen 4, one thread)."""


class ColumnReduce:
    name = "column_reduce"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        columns = _columns(program)
        if columns is None or Windows.of(program) is not None:
            return ()
        widths = _widths(columns, machine.for_sums(columns.block.dtype))
        if not widths:
            return ()
        return (
            Knob("width", tuple(widths)),
            Knob("rows", tuple(n for n in _ROWS if n <= columns.extent(columns.row))),
            Knob("lines", divisors(columns.extent(columns.line))),
            Knob("padding", (_BY_TASK, _FIRST) if columns.padding is not None else (_FIRST,)),
            Knob("parallel", (_SERIAL, _PARALLEL)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        columns = _columns(program)
        assert columns is not None, "the rule has no knobs for this function"
        return _seeds(columns, machine.for_sums(columns.block.dtype))

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        columns = _columns(program)
        assert columns is not None, "the rule has no knobs for this function"
        lanes = _lanes(columns, machine.for_sums(columns.block.dtype), values["width"])
        if values["rows"] * values["width"] // lanes + 2 > machine.registers:
            raise RuleRefused("the tile has more vectors than the processor has registers")
        _schedule(schedule, program, columns, lanes, values)


def _schedule(sch: Schedule, program: AnalysedProgram, columns: Columns, lanes: int, values: Knobs) -> None:
    name, padding = columns.block.name, columns.padding
    inline(sch, program, frozenset({padding} if padding is not None else ()))
    last = program.outputs[0]
    block = sch.get_sblock(name)
    write = sch.cache_write(block, 0, "global") if last == name else sch.get_sblock(last)
    loops, count = sch.get_loops(block), len(columns.block.spatial)
    tasks = [loops[n] for n in range(count) if n not in (columns.lane, columns.row, columns.line)]
    inner, rows = [], []
    if columns.line is not None:
        line, within = sch.split(loops[columns.line], [None, values["lines"]])
        tasks.append(line)
        inner.append(within)
    panel, vector, lane = sch.split(loops[columns.lane], [None, values["width"] // lanes, lanes])
    tasks.append(panel)
    if columns.row is not None:
        place, row = sch.split(loops[columns.row], [None, values["rows"]])
        inner.append(place)
        rows.append(row)
    reduced = loops[count:]
    sch.reorder(*tasks, *inner, *reduced, *rows, vector, lane)
    task = fuse(sch, tasks)
    sch.reverse_compute_at(write, inner[-1] if inner else task)
    if values["parallel"] == _PARALLEL:
        parallelize(sch, task)
    if padding is not None:
        by_task = values["padding"] == _BY_TASK
        _pad(sch, program.block(padding), lanes, task if by_task else None, values["parallel"] == _PARALLEL)
    for loop in (*rows, vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    if columns.row is not None:
        separate_partial_tiles(sch, inner[-1])
    sch.decompose_reduction(block, reduced[0])
    vectorize(sch, str(sch.get(write).name_hint), sch.get_loops(write)[columns.lane - count], lanes)
    pooling = Pooling.of(program)
    if pooling is not None:
        _pool(sch, program, pooling, task, lanes, values)


def _columns(program: AnalysedProgram) -> Columns | None:
    """Return the reduction that the function is, or that makes the image which it sums up."""
    pooling = Pooling.of(program)
    columns = Columns.of(pooling.image if pooling is not None else program)
    has_lines = columns is not None and columns.line is not None and columns.lane == len(columns.block.spatial) - 1
    return columns if pooling is None or has_lines else None


def _pool(sch: Schedule, program: AnalysedProgram, pooling: Pooling, task: Any, lanes: int, values: Knobs) -> None:
    """Add up the pixels of a task's lines where it ends, and the sums of all lines after all tasks."""
    name, lines = pooling.block.name, values["lines"]
    line, pixel = sch.get_loops(sch.get_sblock(name))[-2:]
    extent = int(sch.get(pixel).extent)
    # No addition waits for the one before. TVM finds no bounds for parts of a line whose last tile is shorter.
    beside = 1 if extent % values["rows"] else largest_divisor(extent, max(1, min(_BESIDE, extent // 2)))
    part, _ = sch.split(line, [None, lines])
    _, side = sch.split(pixel, [None, beside])
    of_lines = sch.rfactor(part, 0)
    sums = of_lines if beside == 1 else sch.rfactor(sch.get_loops(of_lines)[-1], 0)
    for block in (sums,) if beside == 1 else (sums, of_lines):
        sch.reverse_compute_at(block, task)
    loops = sch.get_loops(sums)[1:]
    extents = [beside, values["width"], lines, extent // beside]
    if [int(sch.get(loop).extent) for loop in loops] != [each for each in extents if each > 1]:
        raise RuleRefused("TVM finds other bounds for what a task adds up")
    *sides, channel = loops[: 1 if beside == 1 else 2]
    pixels = loops[len(sides) + 1 :]
    vector, lane = sch.split(channel, [None, lanes])
    sch.reorder(*pixels, *sides, vector, lane)
    for loop in (*sides, vector):
        sch.unroll(loop)
    sch.vectorize(lane)
    sch.decompose_reduction(sums, pixels[0])
    if sides:
        side, channel = sch.get_loops(of_lines)[1:]
        _add_up(sch, of_lines, side, channel, lanes)
    total = sch.get_sblock(name)
    channel, part = sch.get_loops(total)[-2:]
    _add_up(sch, total, part, channel, lanes)
    if program.outputs[1] != name:
        vectorize(sch, program.outputs[1], sch.get_loops(sch.get_sblock(program.outputs[1]))[-1], lanes)


def _add_up(sch: Schedule, block: Any, part: Any, channel: Any, lanes: int) -> None:
    """Add up partial results for a vector of channels at a time."""
    vector, lane = sch.split(channel, [None, lanes])
    sch.reorder(vector, part, lane)
    sch.vectorize(lane)
    sch.decompose_reduction(block, part)


def _pad(sch: Schedule, padding: Block, lanes: int, task: Any, parallel: bool) -> None:
    """Make a padded image where a task begins; all of it before, if the task is None."""
    block = sch.get_sblock(padding.name)
    if task is not None:
        sch.compute_at(block, task)
    elif parallel:
        parallelize(sch, fuse(sch, sch.get_loops(block)[:-1]))
    if not any(contains(call, padding.spatial[-1][0]) for call in conditions(padding)):
        inner = sch.get_loops(block)[-1]
        sch.vectorize(sch.split(inner, [None, math.gcd(int(sch.get(inner).extent), lanes)])[1])


def _lanes(columns: Columns, machine: MachineLimits, width: int) -> int:
    common = math.gcd(width, columns.extent(columns.lane))
    return next(n for n in range(machine.lanes, 0, -1) if common % n == 0)


def _widths(columns: Columns, machine: MachineLimits) -> list[int]:
    """Return the numbers of lanes that a tile may have: whole numbers of vectors that divide the axis."""
    extent = columns.extent(columns.lane)
    lanes = next(n for n in range(machine.lanes, 0, -1) if extent % n == 0)
    return [lanes * n for n in _VECTORS if extent % (lanes * n) == 0] if lanes > 1 else []


def _seeds(columns: Columns, machine: MachineLimits) -> Iterable[Knobs]:
    """Return tiles with enough vectors to hide the latency of a sum, and a row or a few, whose windows overlap."""
    widths, rows = _widths(columns, machine), columns.extent(columns.row)
    wide = [width for width in widths if width <= 4 * widths[0]][-1]
    paddings = [_BY_TASK, _FIRST] if columns.padding is not None else [_FIRST]
    height = _best_rows(columns, machine)
    choices = [(widths[0], height, paddings[0]), (widths[0], 1, paddings[-1]), (wide, min(rows, 2), paddings[0])]
    if rows == 1:
        choices = [(wide, 1, padding) for padding in paddings] + [(widths[-1], 1, paddings[0])]
    results = math.prod(extent for _, extent in columns.block.spatial)
    is_long = machine.threads > 1 and results * columns.window > _WORTH_THREADS * machine.lanes
    for parallel in (_PARALLEL, _SERIAL) if is_long else (_SERIAL, _PARALLEL):
        for width, height, padding in dict.fromkeys(choices):
            lines = _best_lines(columns, machine, width, padding)
            yield {"width": width, "rows": height, "lines": lines, "padding": padding, "parallel": parallel}


def _best_rows(columns: Columns, machine: MachineLimits) -> int:
    """Return the least number of rows of a tile, one vector wide, with which a line takes the fewest cycles.

    If vectors are gathered, as by a pooling with steps, the loads count and not the sums, and a few rows are as good.
    """
    extent = columns.extent(columns.row)
    if columns.has_steps:
        return max(n for n in _ROWS if n <= min(extent, _LATENCY))

    def cycles(rows: int) -> int:
        tiles, rest = divmod(extent, rows)
        return tiles * max(rows, _LATENCY) + (_PARTIAL_TILE * max(rest, _LATENCY) if rest else 0)

    return min((n for n in _ROWS if n <= extent and n + 2 <= machine.registers), key=cycles)


def _best_lines(columns: Columns, machine: MachineLimits, width: int, padding: int) -> int:
    """Return the number of lines in a task with which the threads finish early and together."""
    rows, lines = columns.extent(columns.row), columns.extent(columns.line)
    total = math.prod(extent for _, extent in columns.block.spatial)
    vectors = width / min(width, machine.lanes)

    def cost(count: int) -> float:
        tasks = total // (rows * count * width)
        work = rows * count * vectors * columns.window
        image = columns.read(columns.line, count) * columns.read(columns.row, rows)
        made = 0.0 if padding == _FIRST else image * vectors * (1 if image * width <= _NEAR else 2)
        return math.ceil(tasks / machine.threads) * (work + made + _TASK_OVERHEAD)

    return min(divisors(lines), key=cost)
