"""Products of matrices without tensor cores, on GPUs, by tiles that keep their sums in registers.

If a product has few elements and a long depth, it has fewer tiles than the GPU has multiprocessors. The depth may then
be split over blocks of threads: a first kernel writes a sum for each part of the depth to a workspace in global memory,
a second one adds them in order, so that results do not differ from call to call, and computes what follows the product
element by element. Otherwise there is one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from tvm.s_tir import Schedule

from loopwright.codegen.rules.analysis import gpu_tile
from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.epilogue import is_plain
from loopwright.codegen.rules.analysis.gpu_tile import GpuTile, Shape
from loopwright.codegen.rules.analysis.occupancy import MULTIPROCESSORS
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import Knob, Knobs, MachineLimits
from loopwright.codegen.rules.analysis.steps import fuse, inline_all

_TILE = 64 * 64
"""Elements of a tile of usual size: a product of fewer such tiles than there are multiprocessors may be split."""
_LEAST_DEPTH = 512
_LEAST_PART = 64
"""Elements of the depth that a block has at least. Not tuned."""
_SPLITS = (2, 4, 8, 16, 32, 64)
_ADDERS = 128
"""Threads of a block of the second kernel."""


class GpuProduct:
    name = "gpu_product"
    version = 1

    def knobs(self, program: AnalysedProgram, machine: MachineLimits) -> tuple[Knob, ...]:
        product = _product(program)
        if product is None:
            return ()
        splits = _splits(product)
        tile = gpu_tile.knobs(Shape.of(product), machine)
        return (Knob("splits", splits), *tile) if splits and tile else ()

    def seeds(self, program: AnalysedProgram, machine: MachineLimits) -> Iterable[Knobs]:
        product = Contraction.required(program, program.reductions[0].dtype)
        for split, values in gpu_tile.seeds(Shape.of(product), machine, _splits(product)):
            yield {"splits": split, **values}

    def apply(self, schedule: Schedule, program: AnalysedProgram, machine: MachineLimits, values: Knobs) -> None:
        product = Contraction.required(program, program.reductions[0].dtype)
        tile = GpuTile.of(Shape.of(product), product.depth // values["splits"], values)
        last = inline_all(schedule, program)[-1].name
        total = schedule.get_sblock(product.block.name)
        result = schedule.get_sblock(last) if last != product.block.name else None
        if values["splits"] == 1:
            gpu_tile.apply(schedule, product, total, tile, result)
            return
        if result is None:
            result = schedule.cache_write(total, 0, "local")
        part, _ = schedule.split(schedule.get_loops(total)[-1], [values["splits"], None])
        gpu_tile.apply(schedule, product, schedule.rfactor(part, 0), tile)
        element = fuse(schedule, list(schedule.get_loops(result)))
        schedule.compute_at(total, element)
        schedule.set_scope(total, 0, "local")
        schedule.unroll(schedule.get_loops(total)[-1])
        block, thread = schedule.split(element, [None, _ADDERS])
        schedule.bind(block, "blockIdx.x")
        schedule.bind(thread, "threadIdx.x")


def _product(program: AnalysedProgram) -> Contraction | None:
    """Return the product of a function whose operands are parameters; None if there is none."""
    if len(program.reductions) != 1 or not is_plain(program):
        return None
    product = Contraction.of(program, program.reductions[0].dtype)
    if product is None:
        return None
    operands = [product.left.source, product.right.source]
    if any(program.producer(buffer) for buffer in operands):
        return None
    dtypes = [str(buffer.dtype) for buffer in (*operands, product.block.store.buffer)]
    return product if all(dtype in gpu_tile.ELEMENTS for dtype in dtypes) else None


def _splits(product: Contraction) -> tuple[int, ...]:
    """Return in how many parts the depth may be split; none for a product that is left to tensor cores."""
    splits = [1]
    if product.batches * product.rows * product.columns <= MULTIPROCESSORS * _TILE and product.depth >= _LEAST_DEPTH:
        splits += [n for n in _SPLITS if product.depth % n == 0 and product.depth // n >= _LEAST_PART]
    is_float = all(str(load.source.dtype) == "float32" for load in (product.left, product.right))
    return tuple(splits) if is_float or len(splits) > 1 else ()
