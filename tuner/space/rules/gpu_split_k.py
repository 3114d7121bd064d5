"""Products of matrices with few elements and a long depth, on GPUs: the depth is split over blocks of threads.

Such a product has fewer tiles than the GPU has multiprocessors. A first kernel writes a sum for each part of the depth
to a workspace in global memory, a second one adds them in order, so that results do not differ from call to call, and
computes what follows the product element by element. The tiles of a block are copied to shared memory in accesses of up
to 128 bits; each thread has some sums in registers.

A target does not say how many multiprocessors its GPUs have. The rule applies to products of up to 108 tiles of 64x64
elements (an A100 has 108 multiprocessors, an H100 132) with a depth of 512 or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from tvm import DataType
from tvm.s_tir import Schedule

from tuner.space.rules.contraction import Contraction
from tuner.space.rules.epilogue import is_plain
from tuner.space.rules.program import Program
from tuner.space.rules.rule import Knob, Knobs, Machine
from tuner.space.rules.steps import fuse, inline_all, largest_divisor

_TILE = 64 * 64
_MOST_TILES = 108
_LEAST_DEPTH = 512
_LEAST_PART = 64
"""Elements of the depth that a block has at least. Not tuned."""
_SPLITS = (2, 4, 8, 16, 32, 64)
_SUMS = (1, 2, 4, 8)
"""Rows, or columns, of a thread."""
_THREADS = (4, 8, 16, 32)
"""Threads along the rows, or the columns, of a tile."""
_STEPS = (8, 16, 32)
"""Elements of the depth that are in shared memory at a time."""
_LEAST_SUMS = 64
"""Elements that the largest tile of a product has at least: tiles divide it, so that of 37x41 elements has one."""
_SHARED_BYTES = 48 * 1024
_ADDERS = 128
"""Threads of a block of the second kernel."""
_MOST_MULTIPLICATIONS = 1024
"""Multiplications in the body of an unrolled loop. More take CUDA's compiler seconds. Not tuned."""
_ELEMENTS = ("float32", "float16", "bfloat16")


class GpuSplitK:
    name = "gpu_split_k"
    version = 1

    def knobs(self, program: Program, machine: Machine) -> tuple[Knob, ...]:
        product = _product(program)
        if product is None:
            return ()
        splits = tuple(n for n in _SPLITS if product.depth % n == 0 and product.depth // n >= _LEAST_PART)
        largest = math.prod(
            math.prod(_divided(extent, _SUMS[-1], _THREADS[-1])) for extent in (product.rows, product.columns)
        )
        if not splits or largest < _LEAST_SUMS:
            return ()
        return (
            Knob("splits", splits),
            Knob("rows", _SUMS),
            Knob("columns", _SUMS),
            Knob("threads_along_rows", _THREADS),
            Knob("threads_along_columns", _THREADS),
            Knob("step", _STEPS),
        )

    def seeds(self, program: Program, machine: Machine) -> Iterable[Knobs]:
        splits = self.knobs(program, machine)[0].values
        product = Contraction.required(program, _types(program))
        for rows, columns, threads in ((4, 4, 16), (8, 4, 16), (2, 4, 16)):
            tiles = max(1, product.batches * product.rows * product.columns // (rows * columns * threads * threads))
            yield {
                "splits": max((n for n in splits if n * tiles <= 2 * _MOST_TILES), default=splits[0]),
                "rows": rows,
                "columns": columns,
                "threads_along_rows": threads,
                "threads_along_columns": threads,
                "step": 16,
            }

    def apply(self, schedule: Schedule, program: Program, machine: Machine, values: Knobs) -> None:
        product = Contraction.required(program, _types(program))
        last = inline_all(schedule, program)[-1].name
        total = schedule.get_sblock(product.block.name)
        result = schedule.get_sblock(last)
        if last == product.block.name:
            result = schedule.cache_write(total, 0, "local")
        part, _ = schedule.split(schedule.get_loops(total)[-1], [values["splits"], None])
        parts = schedule.rfactor(part, 0)
        _tile(schedule, product, parts, machine, values)
        element = fuse(schedule, list(schedule.get_loops(result)))
        schedule.compute_at(total, element)
        schedule.set_scope(total, 0, "local")
        schedule.unroll(schedule.get_loops(total)[-1])
        block, thread = schedule.split(element, [None, _ADDERS])
        schedule.bind(block, "blockIdx.x")
        schedule.bind(thread, "threadIdx.x")


def _tile(schedule: Schedule, product: Contraction, parts: Any, machine: Machine, values: Knobs) -> None:
    """Schedule the sums of the parts of the depth: a tile of one part for each block of threads."""
    rows, row_threads = _divided(product.rows, values["rows"], values["threads_along_rows"])
    columns, column_threads = _divided(product.columns, values["columns"], values["threads_along_columns"])
    step_bytes = rows * row_threads * _bytes(product.left.source)
    step_bytes += columns * column_threads * _bytes(product.right.source)
    most = min(values["step"], _SHARED_BYTES // step_bytes, _MOST_MULTIPLICATIONS // (rows * columns))
    *spatial, part, depth = schedule.get_loops(parts)
    row = schedule.split(spatial[product.row_axis], [None, row_threads, rows])
    column = schedule.split(spatial[product.column_axis], [None, column_threads, columns])
    outer, inner = schedule.split(depth, [None, largest_divisor(int(schedule.get(depth).extent), most)])
    batches = [loop for n, loop in enumerate(spatial) if n not in (product.row_axis, product.column_axis)]
    schedule.reorder(part, *batches, row[0], column[0], row[1], column[1], outer, inner, row[2], column[2])
    kept = schedule.cache_write(parts, 0, "local")
    block = fuse(schedule, [part, *batches, row[0], column[0]])
    schedule.bind(block, "blockIdx.x")
    schedule.bind(row[1], "threadIdx.y")
    schedule.bind(column[1], "threadIdx.x")
    schedule.reverse_compute_at(kept, column[1])
    for index, load in ((product.right_index, product.right), (1 - product.right_index, product.left)):
        copy = schedule.cache_read(parts, index, "shared")
        schedule.compute_at(copy, outer)
        loops = list(schedule.get_loops(copy)[4:])
        length = math.gcd(int(schedule.get(loops[-1]).extent), machine.lanes * 4 // _bytes(load.source))
        _, group, lane, vector = schedule.split(fuse(schedule, loops), [None, row_threads, column_threads, length])
        schedule.bind(group, "threadIdx.y")
        schedule.bind(lane, "threadIdx.x")
        schedule.vectorize(vector)
    for loop in (inner, row[2], column[2]):
        schedule.unroll(loop)
    schedule.decompose_reduction(parts, outer)


def _divided(extent: int, sums: int, threads: int) -> tuple[int, int]:
    """Return the elements of a thread and the number of threads along an axis, whose product divides its extent."""
    own = largest_divisor(extent, sums)
    return own, largest_divisor(extent // own, threads)


def _product(program: Program) -> Contraction | None:
    """Return a product of few tiles and a long depth, with operands that are parameters; None if there is none."""
    if len(program.reductions) != 1 or not is_plain(program):
        return None
    product = Contraction.of(program, _types(program))
    if product is None or product.depth < _LEAST_DEPTH:
        return None
    if product.batches * product.rows * product.columns > _MOST_TILES * _TILE:
        return None
    operands = [product.left.source, product.right.source]
    if any(program.producer(buffer) for buffer in operands):
        return None
    dtypes = [str(buffer.dtype) for buffer in (*operands, product.block.store.buffer)]
    return product if all(dtype in _ELEMENTS for dtype in dtypes) else None


def _types(program: Program) -> tuple[str, str, str]:
    """Return the types of a product's operands and result, of which only the last one is compared."""
    [block] = program.reductions
    return ("", "", block.dtype)


def _bytes(buffer: Any) -> int:
    return int(DataType(str(buffer.dtype)).bits) // 8
