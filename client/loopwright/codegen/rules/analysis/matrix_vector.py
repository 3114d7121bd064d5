"""The one product of a matrix and a few vectors in a function, with what follows it element by element."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.epilogue import is_plain
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var


@dataclass(frozen=True)
class MatrixVector:
    """``C[b…, r…, w] += V[b…, r…, k] * M[b…, w, k]``, with the axes of each operand and of C in any order.

    ``wide``, ``rows`` and ``batches`` are positions among the block's spatial axes: the axis that only the matrix has,
    those that only the vectors have, and all others. ``depth_is_last`` says whether the elements of the matrix along
    the depth are adjacent; otherwise those along the wide axis are. ``vector_depth_is_last`` says whether those of the
    vectors along the depth are. ``matrix_index`` and ``vector_index`` are positions among the buffers that the block
    reads.
    """

    block: Block
    wide: int
    rows: tuple[int, ...]
    batches: tuple[int, ...]
    depth_is_last: bool
    vector_depth_is_last: bool
    matrix: Any
    vector: Any
    matrix_index: int
    vector_index: int

    @property
    def columns(self) -> int:
        """The extent of the wide axis."""
        return self.block.spatial[self.wide][1]

    @property
    def depth(self) -> int:
        return self.block.reduced[0][1]

    @property
    def vectors(self) -> int:
        """The number of vectors that are multiplied by one matrix."""
        return math.prod(self.block.spatial[axis][1] for axis in self.rows)

    @staticmethod
    def required(program: AnalysedProgram) -> MatrixVector:
        """Return the product of a function that is known to be one."""
        product = MatrixVector.of(program)
        assert product is not None, "the rule has no knobs for this function"
        return product

    @staticmethod
    def of(program: AnalysedProgram) -> MatrixVector | None:
        """Return the product that is the only reduction of a function, or None.

        Both operands are parameters, and what follows the product reads it at the indices of the result.
        """
        if len(program.reductions) != 1 or len(program.outputs) != 1 or not is_plain(program):
            return None
        [block] = program.reductions
        factors = Contraction.factors(block)
        if factors is None or len(block.reduced) != 1 or any(program.producer(load.source) for load in factors):
            return None
        [(depth, _)] = block.reduced
        of_factors = [[_has(load, axis) for axis, _ in block.spatial] for load in factors]
        if not all(_has(load, depth) for load in factors):
            return None
        only = [
            [n for n, (_, extent) in enumerate(block.spatial) if extent > 1 and own[n] and not other[n]]
            for own, other in (of_factors, reversed(of_factors))
        ]
        extents = [math.prod(block.spatial[axis][1] for axis in axes) for axes in only]
        matrix, vector = (0, 1) if extents[0] > extents[1] else (1, 0)
        if len(only[matrix]) != 1:
            return None
        [wide] = only[matrix]
        last, last_of_vector = _last(factors[matrix]), _last(factors[vector])
        if last is None or not (is_var(last, depth) or is_var(last, block.spatial[wide][0])):
            return None
        sources = [region.source for region in block.block.reads if not region.source.same_as(block.store.buffer)]
        places = [next(n for n, each in enumerate(sources) if each.same_as(load.source)) for load in factors]
        batches = tuple(n for n in range(len(block.spatial)) if n != wide and n not in only[vector])
        return MatrixVector(
            block,
            wide,
            tuple(only[vector]),
            batches,
            is_var(last, depth),
            last_of_vector is not None and is_var(last_of_vector, depth),
            factors[matrix],
            factors[vector],
            places[matrix],
            places[vector],
        )


def _last(load: Any) -> Any:
    """Return the index along the last axis of more than one element; None if there is none."""
    sizes = [int(size) for size in load.source.shape]
    return next((index for index, size in zip(reversed(load.indices), reversed(sizes), strict=True) if size > 1), None)


def _has(load: Any, axis: Any) -> bool:
    return any(is_var(index, axis) for index in load.indices)
