"""The tile of a product of matrices that a block of threads computes without tensor cores.

Both operands are copied to shared memory, some elements of the depth at a time. Each thread has its sums in registers,
and reads what it multiplies from shared memory, up to four elements at a time. From compute capability 8.0 on, the
elements of the next steps may be copied while those of a step are multiplied (``cp.async``).
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tvm import DataType
from tvm.s_tir import Schedule

from loopwright.codegen.gpu.async_copy import FIRST_ASYNC
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.occupancy import MULTIPROCESSORS, WARP, Multiprocessor
from loopwright.codegen.rules.analysis.program import is_var
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import copy_ahead, divisors, fuse, largest_divisor

ELEMENTS = ("float32", "float16", "bfloat16")

_SUMS = (1, 2, 4, 8, 16)
"""Rows, or columns, of a thread."""
_THREADS = (4, 8, 16, 32)
"""Threads along the rows, or the columns, of a tile."""
_STEPS = (8, 16, 32)
"""Elements of the depth that are copied to shared memory at a time."""
_STAGES = (1, 2, 3)
"""Steps whose elements are in shared memory at a time."""
_LEAST_SUMS = 64
"""Elements that the largest tile of a product has at least: tiles divide it, so that of 37x41 elements has one."""
_VECTOR = 4
"""Elements that a thread reads from shared memory at a time."""
_ACCESS_BYTES = 16
_SHARED_BYTES = 48 * 1024
_MOST_SUMS = 128
"""Sums of a thread. It has 255 registers, for the operands and addresses, too."""
_MOST_MULTIPLICATIONS = 1024
"""Multiplications in the body of an unrolled loop. More take CUDA's compiler seconds. Not tuned."""
_OTHER_REGISTERS = 24
"""Registers of a thread for addresses and loops. Not tuned."""
_SHARED_BANDWIDTH = 128
"""Bytes of shared memory that a multiprocessor reads in a clock cycle: 32 banks of four bytes."""
_L2_BANDWIDTH = 24
"""Bytes that a multiprocessor gets from the L2 cache in a clock cycle. Not tuned."""
_LATENCY = 800
"""Clock cycles from the load of an element from global memory until it can be read in shared memory. Not tuned."""
_LAUNCH = 4000
"""Clock cycles of the kernel that adds up the parts of a split depth, beside its reads and writes. Not tuned."""
_SUM_BYTES = 4
_SEEDS = 6
_OUTER_LOOPS = 4
"""Loops around what a thread computes: over blocks, over columns that lie apart, and over threads along both axes."""


@dataclass(frozen=True, slots=True)
class Operand:
    """The bytes of an operand's elements, and whether those along the depth are adjacent."""

    bytes: int
    depth_is_last: bool


@dataclass(frozen=True, slots=True)
class Shape:
    """The properties of a product on which tiles depend, without TVM's objects."""

    batches: int
    rows: int
    columns: int
    depth: int
    left: Operand
    right: Operand

    @staticmethod
    def of(product: Contraction) -> Shape:
        left, right = (Operand(_bytes(load), _depth_is_last(product, load)) for load in (product.left, product.right))
        return Shape(product.batches, product.rows, product.columns, product.depth, left, right)


@dataclass(frozen=True, slots=True)
class GpuTile:
    """A tile, whose height, width and step divide the product's rows, columns and depth.

    A block has ``row_threads`` by ``column_threads`` threads, and a thread ``rows`` by ``columns`` sums. ``step``
    elements of the depth are copied to shared memory at a time, which has those of ``stages`` such steps.
    """

    rows: int
    row_threads: int
    columns: int
    column_threads: int
    step: int
    stages: int

    @staticmethod
    def of(shape: Shape, depth: int, values: Knobs) -> GpuTile:
        """Return the tile for values of `knobs`. ``depth`` is the part of the product's depth that a block sums up."""
        rows, row_threads = _divided(shape.rows, values["rows"], values["threads_along_rows"])
        most = min(values["columns"], _MOST_SUMS // rows)
        columns, column_threads = _divided(shape.columns, most, values["threads_along_columns"])
        most = min(values["step"], _MOST_MULTIPLICATIONS // (rows * columns))
        sides = (rows * row_threads, columns * column_threads)
        step = max(n for n in divisors(depth, most) if n == 1 or _step_bytes(shape, *sides, n) <= _SHARED_BYTES)
        stages = min(values["stages"], depth // step, _SHARED_BYTES // _step_bytes(shape, *sides, step))
        return GpuTile(rows, row_threads, columns, column_threads, step, max(1, stages))

    @property
    def threads(self) -> int:
        return self.row_threads * self.column_threads

    @property
    def height(self) -> int:
        return self.rows * self.row_threads

    @property
    def width(self) -> int:
        return self.columns * self.column_threads

    @property
    def vector(self) -> int:
        """Elements along the depth that a thread reads at a time, if they are adjacent."""
        return math.gcd(self.step, _VECTOR)

    def shared_bytes(self, shape: Shape) -> int:
        """Return the bytes of shared memory that a block has."""
        return self.stages * _step_bytes(shape, self.height, self.width, self.step)

    def registers(self, shape: Shape) -> int:
        """Return about how many registers a thread needs."""
        sides = ((shape.left, self.rows), (shape.right, self.columns))
        operands = sum(extent * (self.vector if operand.depth_is_last else 1) for operand, extent in sides)
        return self.rows * self.columns + operands + _OTHER_REGISTERS


def knobs(shape: Shape, machine: MachineLimits) -> tuple[Knob, ...]:
    """Return the knobs of a product's tile; none if no tile of some size divides the product."""
    rows, columns = (math.prod(_divided(n, _SUMS[-1], _THREADS[-1])) for n in (shape.rows, shape.columns))
    if rows * columns < _LEAST_SUMS:
        return ()
    return (
        Knob("rows", _SUMS),
        Knob("columns", _SUMS),
        Knob("threads_along_rows", _THREADS),
        Knob("threads_along_columns", _THREADS),
        Knob("step", _STEPS),
        Knob("stages", _STAGES if machine.capability >= FIRST_ASYNC else _STAGES[:1]),
    )


def seeds(shape: Shape, machine: MachineLimits, splits: Sequence[int]) -> list[tuple[int, Knobs]]:
    """Return in how many parts to split the depth, with values of the knobs, for tiles of several sizes.

    Those that `expected_cycles` prefers come first. More stages, which it may find to be equal, come before fewer.
    """
    names, choices = zip(*((knob.name, knob.values) for knob in knobs(shape, machine)), strict=True)
    fastest: dict[tuple[int, int, int], tuple[float, int, Knobs]] = {}
    for split, *chosen in itertools.product(splits, *choices):
        values = dict(zip(names, chosen, strict=True))
        tile = GpuTile.of(shape, shape.depth // split, values)
        cost = (expected_cycles(shape, machine, tile, split), -tile.stages)
        size = (split, tile.height, tile.width)
        if size not in fastest or cost < fastest[size][:2]:
            fastest[size] = (*cost, values)
    best = heapq.nsmallest(_SEEDS, fastest, key=lambda size: fastest[size][:2])
    return [(size[0], fastest[size][2]) for size in best]


def expected_cycles(shape: Shape, machine: MachineLimits, tile: GpuTile, split: int = 1) -> float:
    """Return about how many clock cycles a product takes, whose depth is split over so many blocks.

    A multiprocessor multiplies, reads shared memory and copies from the L2 cache. The blocks that it runs at a time
    share it, and each waits for its own copies: for their whole latency with one stage, and for a part of it with more.
    See Williams et al., "Roofline" (2009), and Volkov, "Understanding Latency Hiding on GPUs" (2016).
    """
    multiprocessor = Multiprocessor.of(machine.capability)
    resident = multiprocessor.resident_blocks(tile.threads, tile.registers(shape), tile.shared_bytes(shape))
    if resident == 0 or tile.threads > machine.threads:
        return math.inf
    warps = math.ceil(tile.threads / WARP)
    # A warp reads an element once for all of its threads.
    across = min(WARP, tile.column_threads)
    read = tile.columns * across * shape.right.bytes + tile.rows * math.ceil(WARP / across) * shape.left.bytes
    copied = tile.height * shape.left.bytes + tile.width * shape.right.bytes
    # Added, as if nothing overlapped: between tiles that multiply equally fast, the one that reads least is better.
    busy = tile.step * (
        warps * WARP * tile.rows * tile.columns / multiprocessor.multiplications
        + warps * read / _SHARED_BANDWIDTH
        + copied / _L2_BANDWIDTH
    )
    elements = shape.batches * shape.rows * shape.columns
    blocks = split * elements // (tile.height * tile.width)
    rounds, rest = divmod(math.ceil(blocks / MULTIPROCESSORS), resident)
    waiting = (busy + _LATENCY) / tile.stages
    at_a_time = rounds * max(resident * busy, waiting) + (max(rest * busy, waiting) if rest else 0)
    cycles = shape.depth // split // tile.step * at_a_time
    if split > 1:
        cycles += _LAUNCH + 2 * split * elements * _SUM_BYTES / (MULTIPROCESSORS * _L2_BANDWIDTH)
    return cycles


def _step_bytes(shape: Shape, height: int, width: int, step: int) -> int:
    """Return the bytes of shared memory that the operands of a step take."""
    sides = ((shape.left, height), (shape.right, width))
    return sum(extent * _row(operand, step) * operand.bytes for operand, extent in sides)


def _row(operand: Operand, step: int) -> int:
    """Return how many elements apart the rows, or columns, of an operand are in shared memory."""
    access = _ACCESS_BYTES // operand.bytes
    return step + (access - step) % (2 * access) if operand.depth_is_last else step


def apply(schedule: Schedule, product: Contraction, block: Any, tile: GpuTile, result: Any = None) -> None:
    """Schedule the sums of a product over a part of the depth, with what reads them.

    ``block`` has the loops of the product's axes first, and sums in its last one. ``result`` is the block that reads
    its sums, element by element; without one, they are written where ``block`` writes them now.
    """
    *spatial, depth = schedule.get_loops(block)
    others = [loop for n, loop in enumerate(spatial) if n not in (product.row_axis, product.column_axis)]
    # Adjacent columns of a transposed operand lie so far apart in shared memory that threads would read the same banks.
    adjacent = 1 if _depth_is_last(product, product.right) else math.gcd(tile.columns, _VECTOR)
    rows, row_thread, row = schedule.split(spatial[product.row_axis], [None, tile.row_threads, tile.rows])
    columns, apart, column_thread, column = schedule.split(
        spatial[product.column_axis], [None, tile.columns // adjacent, tile.column_threads, adjacent]
    )
    steps, vectors, element = schedule.split(depth, [None, tile.step // tile.vector, tile.vector])
    schedule.reorder(*others, rows, columns, apart, row_thread, column_thread, steps, vectors, element, row, column)
    schedule.bind(fuse(schedule, [*others, rows, columns]), "blockIdx.x")
    schedule.bind(apart, "vthread.x")
    schedule.bind(row_thread, "threadIdx.y")
    schedule.bind(column_thread, "threadIdx.x")
    if result is None:
        result = schedule.cache_write(block, 0, "local")
    else:
        schedule.set_scope(block, 0, "local")
    schedule.reverse_compute_at(result, column_thread, preserve_unit_loops=True)
    _unroll(schedule, schedule.get_loops(result)[_OUTER_LOOPS:], _VECTOR)
    for index, load in ((product.right_index, product.right), (1 - product.right_index, product.left)):
        copied = _copy(schedule, product, block, tile, index, load, steps)
        own = schedule.cache_read(block, index, "local")
        along_depth = _depth_is_last(product, load)
        schedule.compute_at(own, vectors if along_depth else element, preserve_unit_loops=True)
        loops = schedule.get_loops(own)[_OUTER_LOOPS + (2 if along_depth else 3) :]
        # If all accesses to a buffer had one length, TVM's StorageRewrite would make it a buffer of vectors, which
        # InjectPTXAsyncCopy does not take. CUDA's compiler joins adjacent reads.
        _unroll(schedule, loops, max(1, copied // 2) if tile.stages > 1 and copied <= _VECTOR else _VECTOR)
    _unroll(schedule, [vectors, element, row, column])
    sums = schedule.decompose_reduction(block, steps)
    _unroll(schedule, schedule.get_loops(sums)[_OUTER_LOOPS:])
    if tile.stages > 1:
        copy_ahead(schedule, steps, tile.stages)


def _depth_is_last(product: Contraction, load: Any) -> bool:
    """Return whether an operand's elements along the depth are adjacent."""
    return is_var(load.indices[-1], product.block.reduced[0][0])


def _bytes(load: Any) -> int:
    return int(DataType(str(load.source.dtype)).bits) // 8


def _copy(
    schedule: Schedule, product: Contraction, block: Any, tile: GpuTile, index: int, load: Any, steps: Any
) -> int:
    """Copy an operand's elements of a step to shared memory, and return how many are copied at a time."""
    copy = schedule.cache_read(block, index, "shared")
    schedule.compute_at(copy, steps, preserve_unit_loops=True)
    loops = list(schedule.get_loops(copy)[_OUTER_LOOPS + 1 :])
    most = _ACCESS_BYTES // _bytes(load)
    length = math.gcd(int(schedule.get(loops[-1]).extent), most)
    elements = fuse(schedule, loops)
    _, row_thread, column_thread, vector = schedule.split(
        elements, [None, tile.row_threads, tile.column_threads, length]
    )
    schedule.bind(row_thread, "threadIdx.y")
    schedule.bind(column_thread, "threadIdx.x")
    schedule.vectorize(vector)
    if _depth_is_last(product, load):
        # As `_row` has it: threads that read along the depth of adjacent columns then read from different banks.
        schedule.storage_align(copy, 0, -2, 2 * most, most)
    return length


def _unroll(schedule: Schedule, loops: Sequence[Any], lanes: int = 1) -> None:
    """Unroll loops, the last one in vectors of up to ``lanes`` elements."""
    *outer, last = loops
    if lanes > 1:
        last, vector = schedule.split(last, [None, math.gcd(int(schedule.get(last).extent), lanes)])
        schedule.vectorize(vector)
    for loop in (*outer, last):
        schedule.unroll(loop)


def _divided(extent: int, sums: int, threads: int) -> tuple[int, int]:
    """Return the elements of a thread and the number of threads along an axis, whose product divides its extent."""
    own = largest_divisor(extent, sums)
    return own, largest_divisor(extent // own, threads)
