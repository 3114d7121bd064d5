"""The one product of matrices in a function: which axes are rows, columns, depth and batches."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx

from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var


@dataclass(frozen=True)
class Contraction:
    """``C[…, i, j] += A[…, i, k] * B[…, k, j]``, with the axes of each operand in any order.

    Columns ``j`` are the last axis of C. Rows ``i`` are the last other axis that A has and B has not. ``row_axis`` and
    ``column_axis`` are positions among the block's spatial axes; ``right_column`` and ``right_depth`` are positions in
    B's indices; ``right_index`` is B's position among the buffers that the block reads. ``right_is_weight`` says
    whether B is the function's weight, and ``right_is_shared`` whether other programs have that weight, too.
    """

    block: Block
    left: Any
    right: Any
    row_axis: int
    column_axis: int
    right_column: int
    right_depth: int
    right_index: int
    right_is_weight: bool
    right_is_shared: bool = False

    @property
    def rows(self) -> int:
        return self.block.spatial[self.row_axis][1]

    @property
    def columns(self) -> int:
        return self.block.spatial[self.column_axis][1]

    @property
    def depth(self) -> int:
        return self.block.reduced[0][1]

    @property
    def batches(self) -> int:
        return math.prod(extent for _, extent in self.block.spatial) // (self.rows * self.columns)

    @property
    def operands(self) -> tuple[str, str]:
        """The dtypes of the left operand and the right one."""
        return str(self.left.source.dtype), str(self.right.source.dtype)

    @property
    def right_is_transposed(self) -> bool:
        return self.right_column != len(self.right.indices) - 1

    @staticmethod
    def required(program: AnalysedProgram, dtype: str = "float32") -> Contraction:
        """Return the product of a function that is known to be one."""
        contraction = Contraction.of(program, dtype)
        assert contraction is not None, "the rule has no knobs for this function"
        return contraction

    @staticmethod
    def factors(block: Block) -> list[Any] | None:
        """Return the two loads whose product is summed, with plain indices; None for any other reduction."""
        value = block.store.value
        product = value.b if isinstance(value, tirx.Add) else None
        if not isinstance(product, tirx.Mul):
            return None
        loads = [factor.value if isinstance(factor, tirx.Cast) else factor for factor in (product.a, product.b)]
        if not all(isinstance(load, tvm.ir.TensorLoad) for load in loads) or loads[0].source.same_as(loads[1].source):
            return None
        if not all(isinstance(index, tvm.ir.Var | tirx.IntImm) for load in loads for index in load.indices):
            return None
        return loads

    @staticmethod
    def of(program: AnalysedProgram, dtype: str = "float32") -> Contraction | None:
        """Return the product that is the only reduction of a function, or None. ``dtype`` is that of its sums."""
        if len(program.reductions) != 1 or len(program.outputs) != 1:
            return None
        [block] = program.reductions
        factors = Contraction.factors(block)
        if factors is None or len(block.reduced) != 1 or block.dtype != dtype:
            return None
        [(depth, _)] = block.reduced
        axes = [axis for axis, _ in block.spatial]
        if not all(isinstance(index, tvm.ir.Var) for index in block.store.indices):
            return None
        column = next(n for n, axis in enumerate(axes) if is_var(block.store.indices[-1], axis))
        first = [_position(load, axes[column]) for load in factors]
        if [place is None for place in first].count(True) != 1:
            return None
        left, right = factors if first[0] is None else reversed(factors)
        if _position(left, depth) is None:
            return None
        rows = [
            n for n, axis in enumerate(axes) if _position(left, axis) is not None and _position(right, axis) is None
        ]
        right_column, right_depth = _position(right, axes[column]), _position(right, depth)
        if not rows or right_column is None or right_depth is None:
            return None
        sources = [region.source for region in block.block.reads if not region.source.same_as(block.store.buffer)]
        index = next(n for n, source in enumerate(sources) if source.same_as(right.source))
        is_weight = program.weight is not None and right.source.same_as(program.weight)
        is_shared = is_weight and program.shares_weight
        return Contraction(block, left, right, rows[-1], column, right_column, right_depth, index, is_weight, is_shared)


def _position(load: Any, axis: Any) -> int | None:
    return next((n for n, index in enumerate(load.indices) if is_var(index, axis)), None)
