"""Windows that slide over lines: poolings and depthwise convolutions of images whose lines are contiguous."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import tvm
from tvm import tirx
from tvm.sym import detect_linear_equation

from loopwright.codegen.cpu.window_reduction import MOST
from loopwright.codegen.rules.analysis.convolution import contains
from loopwright.codegen.rules.analysis.program import AnalysedProgram, Block, is_var
from loopwright.codegen.rules.analysis.steps import remains

_MULTIPLIED = ("float32", "float64")
_POOLED = (*_MULTIPLIED, "int32", "int8", "uint8")
_SHORTEST = 4
"""Columns of a line, which is a vector at least."""


@dataclass(frozen=True)
class Windows:
    """The one reduction of a function, of windows along lines.

    ``line`` and ``column`` are the axes of the result, positions among the block's spatial ones; ``line`` is None if
    windows have one dimension. ``window`` are those of the reduced axes, in the order of (height, width), None for one
    that has one element. ``strides`` are those of lines and columns. ``image`` is the block that makes what is read,
    such as its padding; None if that is the function's argument.
    """

    block: Block
    operation: str
    line: int | None
    column: int
    window: tuple[int | None, int | None]
    strides: tuple[int, int]
    image: str | None

    @property
    def lines(self) -> int:
        return 1 if self.line is None else self.block.spatial[self.line][1]

    @property
    def columns(self) -> int:
        return self.block.spatial[self.column][1]

    @property
    def size(self) -> tuple[int, int]:
        """The height and the width of a window."""
        height, width = (1 if axis is None else self.block.reduced[axis][1] for axis in self.window)
        return height, width

    @staticmethod
    def of(program: AnalysedProgram) -> Windows | None:
        """Return the windows that a function reduces, or None."""
        if len(program.reductions) != 1:
            return None
        [block] = program.reductions
        axes = [axis for axis, _ in block.spatial]
        if len(block.store.indices) != len(axes) or not all(map(is_var, block.store.indices, axes)) or len(axes) < 2:
            return None
        found = _operands(block)
        if found is None:
            return None
        operation, image, kernel = found
        along = _place(block, image.indices[-1], len(axes) - 1)
        down = _place(block, image.indices[-2], len(axes) - 2) if len(image.indices) > 1 else None
        if along is None or block.spatial[-1][1] < _SHORTEST:
            return None
        if down is None or down[0] is None:
            line, (height, stride) = None, (None, 1)
        else:
            line, (height, stride) = len(axes) - 2, down
        width, step = along
        windows = Windows(
            block, operation, line, len(axes) - 1, (height, width), (stride, step), _image(program, image)
        )
        return windows if windows._is_known(image, kernel) and windows._is_whole(program) else None

    def _is_known(self, image: Any, kernel: Any) -> bool:
        """Return whether nothing else is reduced, and all other axes are places of the image and of the kernel."""
        large = [n for n, (_, extent) in enumerate(self.block.reduced) if extent > 1]
        if not large or any(n not in self.window for n in large):
            return False
        if max(self.size) > MOST or self.size[1] < self.strides[1]:
            return False
        window = [self.block.reduced[n][0] for n in self.window if n is not None]
        inner = [*window, *(self.block.spatial[n][0] for n in (self.line, self.column) if n is not None)]
        outer = [
            *image.indices[: -1 if self.line is None else -2],
            *(kernel.indices[: -len(window)] if kernel is not None else ()),
        ]
        if any(contains(index, var) for index in outer for var in inner):
            return False
        return kernel is None or all(map(is_var, kernel.indices[-len(window) :], window))

    def _is_whole(self, program: AnalysedProgram) -> bool:
        """Return whether all other blocks make the image, or the result, or are inlined."""
        known = (self.image, self.block.name, program.blocks[-1].name)
        if program.outputs != known[-1:]:
            return False
        return all(block.name in known or not remains(program, block) for block in program.blocks)


def _operands(block: Block) -> tuple[str, Any, Any] | None:
    """Return the operation, what is read of the image, and the factor from a kernel, None if there is none."""
    operation, term = block.operation, block.term if block.operation is not None else None
    if operation == "sum" and isinstance(term, tirx.Mul) and block.dtype in _MULTIPLIED:
        loads = sorted((term.a, term.b), key=lambda load: _is_plain(load))
        if all(isinstance(load, tvm.ir.TensorLoad) for load in loads) and _is_plain(loads[1]):
            return "dot", loads[0], loads[1]
        return None
    if operation in ("sum", "max", "largest") and isinstance(term, tvm.ir.TensorLoad) and block.dtype in _POOLED:
        return operation, term, None
    return None


def _is_plain(load: Any) -> bool:
    """Return whether a load's last index is a variable alone."""
    return isinstance(load, tvm.ir.TensorLoad) and isinstance(load.indices[-1], tvm.ir.Var)


def _place(block: Block, index: Any, axis: int) -> tuple[int | None, int] | None:
    """Return the reduced axis and the stride if an index is a place in windows along a spatial axis; None if not."""
    var = block.spatial[axis][0]
    reduced = [n for n, (each, _) in enumerate(block.reduced) if contains(index, each)]
    if len(reduced) > 1 or not contains(index, var):
        return None
    variables = [var, *(block.reduced[n][0] for n in reduced)]
    factors = detect_linear_equation(index, variables)
    if len(factors) != len(variables) + 1 or not all(isinstance(factor, tirx.IntImm) for factor in factors):
        return None
    stride, *step, offset = map(int, factors)
    if stride < 1 or any(each != 1 for each in step) or offset != 0:
        return None
    return (reduced[0] if reduced else None), stride


def _image(program: AnalysedProgram, load: Any) -> str | None:
    producer = program.producer(load.source)
    return None if producer is None else producer.name
