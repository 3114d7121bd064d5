"""Poolings and depthwise convolutions of images with the channels first: windows along lines, in vectors.

A task makes the padded lines that it reads, in a near cache, and reduces the windows of some lines of the result
(`loopwright.codegen.cpu.window_reduction`). What follows is computed on those lines.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm import tirx
from tvm.s_tir import Schedule
from tvm.sym import detect_linear_equation

from loopwright.codegen.cpu import window_reduction
from loopwright.codegen.cpu.window_reduction import WindowReduction
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import divisors, fuse, inline, largest_divisor, parallelize, vectorize
from loopwright.codegen.rules.analysis.windows import Windows

_SERIAL, _PARALLEL = 0, 1
_ROWS = (1, 2, 4, 8)
_BYTES = {"float64": 8, "float32": 4, "int32": 4, "int8": 1, "uint8": 1}
_TASK_OVERHEAD = 300
"""Vectors that take as long as a task beside its lines. Not tuned."""
_NEAR = 2**15
"""Bytes of a padded image above which making it takes twice as long. Not tuned."""
_CACHE_LINE = 64
"""Bytes. Vectors as long as that cross a line in nearly each load of neighbours, as windows without a stride take them:
with vectors half as long, a depthwise convolution and an average pooling took 0.79 times as long (AMD Zen 4)."""
_WORTH_THREADS = 8000
"""Vectors of additions that take longer than starting the threads, about 3 us. Not tuned."""


class WindowReduce:
    name = "window_reduce"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        windows = Windows.of(program)
        if windows is None or not _lanes(windows, machine):
            return ()
        return (
            Knob("lanes", _lanes(windows, machine)),
            Knob("rows", tuple(n for n in _ROWS if n <= windows.lines)),
            Knob("lines", divisors(windows.lines)),
            Knob("parallel", (_SERIAL, _PARALLEL)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        windows = Windows.of(program)
        assert windows is not None, "the rule has no knobs for this function"
        return _seeds(windows, machine)

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        windows = Windows.of(program)
        assert windows is not None, "the rule has no knobs for this function"
        if values["rows"] > values["lines"]:
            raise RuleRefused("a task has fewer lines than are computed at a time")
        _schedule(schedule, program, windows, values)


def _schedule(sch: Schedule, program: AnalysedProgram, windows: Windows, values: Knobs) -> None:
    name, made, lanes = windows.block.name, windows.image, values["lanes"]
    last = inline(sch, program, frozenset({made} if made is not None else ()))[-1].name
    block = sch.get_sblock(name)
    loops, count = sch.get_loops(block), len(windows.block.spatial)
    tasks = [loops[n] for n in range(count) if n not in (windows.line, windows.column)]
    inner = [loops[windows.column], *(loops[count + n] for n in windows.window if n is not None)]
    tiles, tile = [], 1
    if windows.line is not None:
        tile = _tile(values)
        line, *tiles, within = sch.split(loops[windows.line], [None, values["lines"] // tile, tile])
        tasks.append(line)
        inner.insert(0, within)
    # TVM leaves loops of one iteration out of the block that it compares with an intrinsic's.
    alone = [loops[count + n] for n in range(len(windows.block.reduced)) if n not in windows.window]
    alone += [loop for loop in inner if int(sch.get(loop).extent) == 1]
    inner = [loop for loop in inner if int(sch.get(loop).extent) > 1]
    sch.reorder(*tasks, *tiles, *alone, *inner)
    task = fuse(sch, tasks)
    if last != name:
        sch.reverse_compute_at(sch.get_sblock(last), [task, *tiles][-1])
    if values["parallel"] == _PARALLEL:
        parallelize(sch, task)
    if made is not None:
        _make(sch, program.block(made), task)
    first = sch.decompose_reduction(block, [*alone, *inner][0])
    height, width = windows.size
    intrinsic = WindowReduction(
        windows.operation,
        windows.block.dtype,
        height,
        width,
        *windows.strides,
        tile,
        windows.columns,
        values["rows"],
        lanes,
    )
    window_reduction.register(intrinsic.name)
    update = sch.get_loops(sch.get_sblock(f"{name}_update"))
    sch.tensorize(update[-len(inner)], intrinsic.name)
    vectorize(sch, str(sch.get(first).name_hint), sch.get_loops(first)[-1], lanes)
    if last != name:
        vectorize(sch, last, sch.get_loops(sch.get_sblock(last))[-1], lanes)


def _tile(values: Knobs) -> int:
    """Return how many lines are finished at a time: about as many as are computed at a time, or all of a task."""
    tile = largest_divisor(values["lines"], values["rows"])
    return tile if 2 * tile > values["rows"] else values["lines"]


def _make(sch: Schedule, image: Block, task: Any) -> None:
    """Make the part of an image that a task reads. Columns of padding are apart: LLVM makes vectors of the others."""
    block = sch.get_sblock(image.name)
    sch.compute_at(block, task)
    loop = sch.get_loops(block)[-1]
    extent = int(sch.get(loop).extent)
    left, own = _unpadded(image)
    middle = min(own, extent - left)
    sizes = [each for each in (left, middle, extent - left - middle) if each]
    if len(sizes) > 1:
        sch.loop_partition(loop, [*sizes[:-1], None])


def _unpadded(image: Block) -> tuple[int, int]:
    """Return how many columns are padding before a line's own, and how many these are."""
    column, extent = image.spatial[-1]
    load = max(image.loads, key=lambda load: len(load.indices))
    factors = detect_linear_equation(load.indices[-1], [column])
    if len(factors) == 2 and all(isinstance(each, tirx.IntImm) for each in factors) and int(factors[0]) == 1:
        return max(-int(factors[1]), 0), min(int(load.source.shape[-1]), extent)
    return 0, extent


def _lanes(windows: Windows, machine: MachineLimits) -> tuple[int, ...]:
    """Return the lengths of vectors that a line has elements for: powers of two."""
    most = min(machine.lanes * 4 // _BYTES[windows.block.dtype], windows.columns)
    longest = 1 << (most.bit_length() - 1)
    return tuple(n for n in (longest, longest // 2) if n >= 4)


def _seeds(windows: Windows, machine: MachineLimits) -> Iterable[Knobs]:
    """Return as many lines at a time as share what is loaded, and others, with vectors of each length."""
    lanes = _lanes(windows, machine)
    results = math.prod(extent for _, extent in windows.block.spatial)
    is_long = machine.threads > 1 and results * math.prod(windows.size) > _WORTH_THREADS * lanes[0]
    first, other = (_PARALLEL, _SERIAL) if is_long else (_SERIAL, _PARALLEL)
    (height, width), (down, along) = windows.size, windows.strides
    if along == 1 and width > 1 and lanes[0] * _BYTES[windows.block.dtype] == _CACHE_LINE:
        lanes = lanes[::-1]
    lines = _best_lines(windows, machine, lanes[0])
    # Lines share what is loaded if their windows overlap.
    rows = [n for n in ((4, 8, 2, 1) if height > down else (1, 2, 4)) if n <= lines]
    best = {"lanes": lanes[0], "rows": rows[0], "lines": lines, "parallel": first}
    for count in rows[:3]:
        for length in lanes:
            yield best | {"lanes": length, "rows": count}
    if machine.threads > 1:
        yield best | {"parallel": other}


def _best_lines(windows: Windows, machine: MachineLimits, lanes: int) -> int:
    """Return the number of lines in a task with which the threads finish early and together."""
    (height, width), (down, along) = windows.size, windows.strides
    outer = math.prod(extent for _, extent in windows.block.spatial) // (windows.lines * windows.columns)
    vectors = math.ceil(windows.columns / lanes)

    def cost(lines: int) -> float:
        read = ((lines - 1) * down + height) * math.ceil((windows.columns * along + width) / lanes)
        is_near = read * lanes * _BYTES[windows.block.dtype] <= _NEAR
        made = 0.0 if windows.image is None else 2.0 * read * (1 if is_near else 2)
        work = lines * vectors * (height * width if windows.operation == "dot" else height * along + width)
        tasks = outer * windows.lines // lines
        return math.ceil(tasks / machine.threads) * (work + made + _TASK_OVERHEAD)

    return min(divisors(windows.lines), key=cost)
