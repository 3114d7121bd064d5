"""Products of a matrix and one to eight vectors, on GPUs, which take as long as reading the matrix.

The matrix is read in accesses of up to 128 bits, each element once for all vectors. If its elements along the depth are
adjacent (a weight that is stored transposed), the threads of a row share the depth of some columns and add up their
parts by shuffles. Otherwise each thread has a vector of columns, the groups of a block share the depth, and their parts
are added in shared memory. What follows the product element by element is computed from its results in shared memory
or in registers, in the same kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tvm import DataType
from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis.matrix_vector import MatrixVector
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline_all, largest_divisor

_MOST_VECTORS = 8
"""More are a product of matrices, with tiles of both in shared memory. Not tuned."""
_LENGTHS = (1, 2, 4, 8)
_LANES = (4, 8, 16, 32, 64, 128, 256)
"""Threads that read adjacent accesses. A function whose rows no number of threads divides is left to TVM's sketches."""
_GROUPS = (1, 2, 4, 8, 16, 32, 64)
_COLUMNS = (1, 2, 4, 8)
_UNROLL = (1, 2, 4, 8)
_LONGEST_SUMS = 4
"""Sums that are written to shared memory at a time: 128 bits of float32."""
_MOST_MULTIPLICATIONS = 1024
"""Multiplications in the body of an unrolled loop. More take CUDA's compiler seconds. Not tuned."""
_SEEDS_OF_ROWS = ((32, 4, 2, 4), (64, 2, 1, 4), (32, 8, 1, 2))
_SEEDS_OF_COLUMNS = ((8, 32, 1, 4), (16, 16, 1, 4), (4, 64, 1, 2))
"""Lanes, groups, columns and unrolling to measure first: blocks of 128 or 256 threads. Not tuned."""
_SHARED_BYTES = 48 * 1024
_ELEMENTS = ("float32", "float16", "bfloat16")


class GpuGemv:
    name = "gpu_gemv"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        product = _product(program)
        if product is None:
            return ()
        lengths = _lengths(product, machine)
        lanes = _lanes(product, lengths[-1])
        if not lanes:
            return ()
        groups = _GROUPS if product.depth_is_last else _dividing(_GROUPS, product.depth)
        columns = _dividing(_COLUMNS, product.columns) if product.depth_is_last else (1,)
        return (
            Knob("vector", lengths),
            Knob("lanes", lanes),
            Knob("groups", groups),
            Knob("columns", columns),
            Knob("unroll", _UNROLL),
        )

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        knobs = {knob.name: knob.values for knob in self.knobs(program, machine)}
        product = MatrixVector.required(program)
        for lanes, groups, columns, unroll in _SEEDS_OF_ROWS if product.depth_is_last else _SEEDS_OF_COLUMNS:
            yield {
                "vector": knobs["vector"][-1],
                "lanes": _nearest(knobs["lanes"], lanes),
                "groups": _nearest(knobs["groups"], groups),
                "columns": _nearest(knobs["columns"], columns),
                "unroll": unroll,
            }

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        product = MatrixVector.required(program)
        last = inline_all(schedule, program)[-1].name
        block = schedule.get_sblock(product.block.name)
        result = schedule.get_sblock(last) if last != product.block.name else schedule.cache_write(block, 0, "shared")
        groups = min(values["groups"], machine.threads // values["lanes"])
        if product.depth_is_last:
            _rows(schedule, product, result, groups, values)
        else:
            _columns(schedule, product, result, min(groups, _most_groups(product, values)), values)


def _rows(schedule: Schedule, product: MatrixVector, result: Any, groups: int, values: Knobs) -> None:
    """Multiply by a matrix whose elements along the depth are adjacent."""
    lanes, columns = values["lanes"], values["columns"]
    groups = largest_divisor(product.columns // columns, groups)
    total = schedule.get_sblock(product.block.name)
    _, lane, _ = schedule.split(schedule.get_loops(total)[-1], [None, lanes, values["vector"]])
    parts = schedule.rfactor(lane, 0)
    tile = _tiled(schedule, product, result, groups * columns)
    schedule.compute_at(total, tile, preserve_unit_loops=True)
    schedule.set_scope(total, 0, "shared")
    _share(schedule, fuse(schedule, list(schedule.get_loops(result)[1:])), groups, lanes)
    lane, *spatial = schedule.get_loops(total)[1:]
    group, column = schedule.split(spatial[product.wide], [groups, columns])
    others = [loop for n, loop in enumerate(spatial) if n != product.wide]
    schedule.reorder(group, *others, column, lane)
    schedule.bind(group, "threadIdx.y")
    schedule.bind(lane, "threadIdx.x")
    schedule.compute_at(parts, group, preserve_unit_loops=True)
    schedule.set_scope(parts, 0, "local")
    lane, *spatial, step, element = schedule.get_loops(parts)[2:]
    schedule.bind(lane, "threadIdx.x")
    _accumulate(schedule, product, parts, step, [*spatial, element], values)


def _columns(schedule: Schedule, product: MatrixVector, result: Any, groups: int, values: Knobs) -> None:
    """Multiply by a matrix whose elements along the wide axis are adjacent."""
    lanes, vector = values["lanes"], values["vector"]
    total = schedule.get_sblock(product.block.name)
    _, group = schedule.split(schedule.get_loops(total)[-1], [None, groups])
    parts = schedule.rfactor(group, 0)
    kept = schedule.cache_write(parts, 0, "local")
    schedule.set_scope(kept, 0, "shared")
    tile = _tiled(schedule, product, result, lanes * vector)
    element = fuse(schedule, list(schedule.get_loops(result)[1:]))
    # Afterwards, with more threads than elements, a block would seem to need more than a tile.
    schedule.compute_at(total, element)
    schedule.set_scope(total, 0, "local")
    schedule.compute_at(kept, tile, preserve_unit_loops=True)
    _share(schedule, element, groups, lanes)
    group, *spatial = schedule.get_loops(kept)[1:]
    lane, adjacent = schedule.split(spatial[product.wide], [lanes, vector])
    others = [loop for n, loop in enumerate(spatial) if n != product.wide]
    schedule.reorder(group, lane, *others, adjacent)
    schedule.bind(group, "threadIdx.y")
    schedule.bind(lane, "threadIdx.x")
    schedule.vectorize(schedule.split(adjacent, [None, min(vector, _LONGEST_SUMS)])[1])
    schedule.compute_at(parts, lane, preserve_unit_loops=True)
    *spatial, step = schedule.get_loops(parts)[4:]
    _accumulate(schedule, product, parts, step, spatial, values)


def _tiled(schedule: Schedule, product: MatrixVector, result: Any, columns: int) -> Any:
    """Give each block of threads a number of columns of all vectors, and return the loop over the blocks."""
    loops = list(schedule.get_loops(result))
    outer, inner = schedule.split(loops[product.wide], [None, columns])
    batches = [loops[axis] for axis in product.batches]
    schedule.reorder(*batches, outer, *(loops[axis] for axis in product.rows), inner)
    block = fuse(schedule, [*batches, outer])
    schedule.bind(block, "blockIdx.x")
    return block


def _share(schedule: Schedule, elements: Any, groups: int, lanes: int) -> None:
    """Share the iterations of a loop among the threads of a block."""
    _, group, lane = schedule.split(elements, [None, groups, lanes])
    schedule.bind(group, "threadIdx.y")
    schedule.bind(lane, "threadIdx.x")


def _accumulate(
    schedule: Schedule, product: MatrixVector, parts: Any, step: Any, inner: list[Any], values: Knobs
) -> None:
    """Add up the part of the depth that a thread has, with both operands in registers."""
    most = _MOST_MULTIPLICATIONS // (product.vectors * values["vector"] * values["columns"])
    times = largest_divisor(int(schedule.get(step).extent), min(most, values["unroll"]))
    step, again = schedule.split(step, [None, times])
    schedule.reorder(step, again, *inner)
    around = len(schedule.get_loops(parts)) - len(inner)
    for index, is_adjacent in (
        (product.matrix_index, True),
        (product.vector_index, product.depth_is_last and product.vector_depth_is_last),
    ):
        copy = schedule.cache_read(parts, index, "local")
        schedule.compute_at(copy, again, preserve_unit_loops=True)
        loops = list(schedule.get_loops(copy)[around:])
        if is_adjacent:
            schedule.vectorize(loops.pop())
        for loop in loops:
            schedule.unroll(loop)
    for loop in (again, *inner):
        schedule.unroll(loop)
    schedule.decompose_reduction(parts, step)


def _product(program: AnalysedProgram) -> MatrixVector | None:
    product = MatrixVector.of(program)
    if product is None or product.vectors > _MOST_VECTORS:
        return None
    buffers = (product.matrix.source, product.vector.source, product.block.store.buffer)
    return product if all(str(buffer.dtype) in _ELEMENTS for buffer in buffers) else None


def _lengths(product: MatrixVector, machine: MachineLimits) -> tuple[int, ...]:
    """Return how many adjacent elements may be read at a time, in ascending order: at most 128 bits."""
    extent = product.depth if product.depth_is_last else product.columns
    size = _bytes(product.matrix.source)
    return tuple(length for length in _LENGTHS if length * size <= machine.lanes * 4 and extent % length == 0)


def _lanes(product: MatrixVector, length: int) -> tuple[int, ...]:
    """Return numbers of threads that may read adjacent accesses of some elements, in ascending order."""
    if product.depth_is_last:
        return _dividing(_LANES, product.depth // length)
    most = _SHARED_BYTES // (length * _bytes_of_sums(product))
    return tuple(lanes for lanes in _dividing(_LANES, product.columns // length) if lanes <= most)


def _most_groups(product: MatrixVector, values: Knobs) -> int:
    """Return the largest power of two of groups whose sums fit the shared memory."""
    groups = _SHARED_BYTES // (values["lanes"] * values["vector"] * _bytes_of_sums(product))
    return 1 << (groups.bit_length() - 1)


def _bytes_of_sums(product: MatrixVector) -> int:
    """Return the bytes of a column's sums for all vectors."""
    return product.vectors * _bytes(product.block.store.buffer)


def _bytes(buffer: Any) -> int:
    return int(DataType(str(buffer.dtype)).bits) // 8


def _dividing(values: tuple[int, ...], extent: int) -> tuple[int, ...]:
    return tuple(value for value in values if extent % value == 0)


def _nearest(values: tuple[int, ...], wanted: int) -> int:
    """Return the largest value that is not above the wanted one, or the smallest."""
    return max((value for value in values if value <= wanted), default=values[0])
