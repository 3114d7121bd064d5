"""Softmax, normalisations and reductions along rows, on GPUs: all stages of some rows in one block of threads.

The threads of a row reduce it together. Rows may be kept in shared memory, to which they are copied once in accesses of
up to 128 bits; otherwise each stage reads them again, and only what has no reduction in it is read in vectors.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm import DataType
from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits, RuleRefused
from loopwright.codegen.rules.analysis.steps import fuse, inline_all, largest_divisor
from loopwright.codegen.rules.cpu.row_reduce import leading, row_axes

_VECTORS = (1, 2, 4, 8)
_THREADS = (64, 128, 256, 512, 1024)
"""Threads of a block, which its rows have in equal parts."""
_ROWS = (1, 2, 4, 8)
_SHARED_BYTES = 48 * 1024
_IN_ROW = 2
"""Loops of a block before those of its row: blocks and rows a block."""
_ELEMENTS = ("float32", "float16", "bfloat16")


class GpuRowReduce:
    name = "gpu_row_reduce"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        rows = row_axes(program, _ELEMENTS, _ELEMENTS)
        if rows is None or leading(program.blocks[-1], rows) == 0 or len(program.outputs) > 1:
            return ()
        if any(len(block.reduced) > 1 for block in program.blocks):
            return ()
        row_bytes = sum(_length(program) * _bytes(buffer) for buffer in _whole_rows(program))
        return (
            Knob("vector", _vectors(program, machine)),
            Knob("threads", _THREADS),
            Knob("rows", _ROWS),
            Knob("shared", (0, 1) if 0 < row_bytes <= _SHARED_BYTES // 2 else (0,)),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        vector, shared = _vectors(program, machine)[-1], self.knobs(program, machine)[-1].values[-1]
        steps = _length(program) // vector
        block = next((threads for threads in _THREADS if threads * 4 >= steps), _THREADS[-1])
        for threads, rows in ((block, 1), (128, 4), (min(2 * block, _THREADS[-1]), 1)):
            yield {"vector": vector, "threads": threads, "rows": rows, "shared": shared}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        rows = row_axes(program, _ELEMENTS, _ELEMENTS)
        assert rows is not None, "the rule has no knobs for this function"
        rows_in_shared = _whole_rows(program) if values["shared"] else []
        stages = inline_all(schedule, program)
        last = stages[-1]
        copies = [_cached(schedule, stages, buffer) for buffer in rows_in_shared]
        loops = list(schedule.get_loops(schedule.get_sblock(last.name)))
        row_loops = loops[: leading(last, rows)]
        # Rows of one block that differ in two axes, or a part of a block's rows, would have no constant extents.
        at_once = largest_divisor(int(schedule.get(row_loops[-1]).extent), values["rows"])
        threads = values["threads"] // at_once
        block, row = schedule.split(fuse(schedule, row_loops), [None, at_once])
        schedule.bind(block, "blockIdx.x")
        schedule.bind(row, "threadIdx.y")
        for stage in reversed(stages[:-1]):
            reduction = schedule.get_sblock(stage.name)
            schedule.compute_at(reduction, row, preserve_unit_loops=True)
            schedule.set_scope(reduction, 0, "shared")
        for copy in copies:
            schedule.compute_at(copy, row, preserve_unit_loops=True)
            lane = _share(schedule, list(schedule.get_loops(copy)[_IN_ROW:]), threads, values["vector"])
            schedule.vectorize(lane)
        for stage in stages:
            columns = list(schedule.get_loops(schedule.get_sblock(stage.name))[_IN_ROW:])
            if not columns:
                continue
            lane = _share(schedule, columns, threads, values["vector"])
            if not stage.is_reduction:
                schedule.vectorize(lane)


def _cached(schedule: Schedule, stages: list[Block], buffer: Any) -> Any:
    """Read a buffer through a copy in shared memory, and return the block that copies it."""
    for stage in stages:
        block = schedule.get_sblock(stage.name)
        for n, region in enumerate(schedule.get(block).reads):
            if str(region.source.name) == str(buffer.name):
                return schedule.cache_read(block, n, "shared")
    raise RuleRefused("the row is not read")


def _share(schedule: Schedule, loops: list[Any], threads: int, most: int) -> Any:
    """Share the elements of a row among its threads, and return the loop over a vector of at most ``most``."""
    columns = fuse(schedule, loops)
    vector = math.gcd(int(schedule.get(columns).extent), most)
    _, thread, lane = schedule.split(columns, [None, threads, vector])
    schedule.bind(thread, "threadIdx.x")
    return lane


def _length(program: AnalysedProgram) -> int:
    """Return the number of elements of a row."""
    return program.reductions[0].reduced[0][1]


def _bytes(buffer: Any) -> int:
    return (DataType(str(buffer.dtype)).bits + 7) // 8


def _vectors(program: AnalysedProgram, machine: MachineLimits) -> tuple[int, ...]:
    """Return the lengths of vectors, in ascending order: at most 128 bits of the largest elements."""
    buffers = [load.source for block in program.blocks for load in block.loads]
    largest = max(map(_bytes, [*buffers, program.blocks[-1].store.buffer]))
    length = _length(program)
    return tuple(vector for vector in _VECTORS if vector * largest <= machine.lanes * 4 and length % vector == 0)


def _whole_rows(program: AnalysedProgram) -> list[Any]:
    """Return the parameters that have an element for each of the rows' elements."""
    size = _length(program) * math.prod(extent for _, extent in program.reductions[0].spatial)
    buffers: list[Any] = []
    for block in program.blocks:
        for load in block.loads:
            is_row = math.prod(map(int, load.source.shape)) == size and program.producer(load.source) is None
            if is_row and not any(load.source.same_as(buffer) for buffer in buffers):
                buffers.append(load.source)
    return buffers
