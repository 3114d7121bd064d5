"""A reduction in which every lane of a vector reduces for itself: which axis the lanes are, and what is padded."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import tvm

from loopwright.codegen.rules.analysis.contraction import Contraction
from loopwright.codegen.rules.analysis.convolution import Convolution, coefficient, contains
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, found, is_var
from loopwright.codegen.rules.analysis.steps import remains

_DTYPES = ("float32", "float64", "int32")
"""Of results. What is read may be narrower."""


@dataclass(frozen=True)
class Columns:
    """A reduction whose last axis of extent above 1, ``lane``, is contiguous in what it reads.

    ``row`` and ``line`` are the last but one and the last but two of such axes, None if there are none; ``padding`` is
    the block that pads the image. Axes are positions among the block's spatial ones.
    """

    block: Block
    lane: int
    row: int | None
    line: int | None
    padding: str | None

    def extent(self, axis: int | None) -> int:
        return 1 if axis is None else self.block.spatial[axis][1]

    @property
    def window(self) -> int:
        """The number of elements that a result is reduced from."""
        return math.prod(extent for _, extent in self.block.reduced)

    @property
    def has_steps(self) -> bool:
        """Whether neighbouring lanes read elements that are no neighbours, so that a vector is gathered."""
        step, _ = self._place(self.lane)
        return step > 1

    def read(self, axis: int | None, results: int) -> int:
        """Return how many steps along an axis of the image are read for that many results along one of the block's."""
        if axis is None:
            return 1
        step, extent = self._place(axis)
        return results * step + max(0, extent - self.extent(axis) * step)

    def _place(self, axis: int) -> tuple[int, int]:
        """Return the step along the image from one result along an axis to the next, and the image's extent there."""
        var = self.block.spatial[axis][0]
        load = max(self.block.loads, key=lambda load: len(load.indices))
        for index, extent in zip(load.indices, load.source.shape, strict=True):
            step = coefficient(index, var)
            if contains(index, var) and step:
                return step, int(extent)
        return 1, 0

    @staticmethod
    def of(program: AnalysedProgram) -> Columns | None:
        if len(program.reductions) != 1:
            return None
        [block] = program.reductions
        if Convolution.of(program, block.dtype) or Contraction.of(program, block.dtype):
            return None
        axes = [axis for axis, _ in block.spatial]
        large = [n for n, (_, extent) in enumerate(block.spatial) if extent > 1]
        if block.dtype not in _DTYPES or block.operation is None or not large:
            return None
        if len(block.store.indices) != len(axes) or not all(map(is_var, block.store.indices, axes)):
            return None
        lane = axes[large[-1]]
        along = [load for load in block.loads if any(contains(index, lane) for index in load.indices)]
        if not along or not all(_is_contiguous(load, lane) for load in along):
            return None
        if not any(all(_has(load, axes[n]) for n in large) for load in block.loads):
            return None
        [line, row] = [None, None, *large[:-1]][-2:]
        padding = next((b.name for b in program.blocks if block.reads(b.store.buffer) and conditions(b)), None)
        known = (padding, block.name, program.blocks[-1].name)
        if program.outputs != known[-1:] or any(remains(program, b) and b.name not in known for b in program.blocks):
            return None
        return Columns(block, large[-1], row, line, padding)


def _is_contiguous(load: Any, lane: Any) -> bool:
    """Return whether the lanes are a term with a positive factor of the last index, dimensions of one element aside."""
    last = max(n for n, extent in enumerate(load.source.shape) if n == 0 or int(extent) > 1)
    others = [index for n, index in enumerate(load.indices) if n != last]
    return not any(contains(index, lane) for index in others) and (coefficient(load.indices[last], lane) or 0) > 0


def _has(load: Any, axis: Any) -> bool:
    return any(contains(index, axis) for index in load.indices)


def conditions(block: Block) -> list[Any]:
    """Return the conditions on which a block computes one value or another."""
    calls = found(block.store.value, tvm.ir.Call)
    return [call.args[0] for call in calls if getattr(call.op, "name", "") == "prim.if_then_else"]
