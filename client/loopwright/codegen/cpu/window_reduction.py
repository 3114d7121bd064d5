"""A tensor intrinsic that reduces windows of an image whose lines are contiguous, with vectors along the lines.

Poolings are separable: the lines of a window are reduced first, in whole vectors of neighbours, into a line that stays
in the first cache, and windows along it then. Sums of products are no such reductions: there a vector of an input line
is loaded once for all the output lines that it is a part of. With a stride, vectors of neighbours are taken apart by
shuffles. A last vector overlaps the one before it, so that all have the same length.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tvm import tirx
from tvm.script.ir_builder import IRBuilder
from tvm.script.ir_builder import tirx as T

from loopwright.codegen.cpu.registering import register_once
from loopwright.codegen.cpu.row_reduction import combine

MOST = 32
"""Elements of a window along an axis, and lines at a time, at most: each is code of its own."""

_PAIR = r"(\d{1,6})x(\d{1,6})"
_NAME = re.compile(
    rf"loopwright\.window_(sum|max|largest|dot)_(float64|float32|int32|int8|uint8)_{_PAIR}_{_PAIR}_{_PAIR}_{_PAIR}"
)


@dataclass(frozen=True, slots=True)
class WindowReduction:
    """``C[lines, columns]``, each element combined with those of a window of ``A``.

    ``C[i, j] = C[i, j] op A[i * down + ki, j * along + kj]`` for each place ``ki, kj`` of a window of ``height`` x
    ``width``; the operation "dot" adds products with a third operand, ``B[ki, kj]``. ``rows`` lines are computed at a
    time, in vectors of ``lanes``. A line has at least ``lanes`` columns, and ``width`` is at least ``along``.
    """

    operation: str
    dtype: str
    height: int
    width: int
    down: int
    along: int
    lines: int
    columns: int
    rows: int
    lanes: int

    @property
    def name(self) -> str:
        """The intrinsic's name, from which `register` makes it again on another machine."""
        pairs = (self.height, self.width), (self.down, self.along), (self.lines, self.columns), (self.rows, self.lanes)
        return f"loopwright.window_{self.operation}_{self.dtype}_" + "_".join(f"{a}x{b}" for a, b in pairs)

    @property
    def is_valid(self) -> bool:
        numbers = (self.height, self.down, self.along, self.lines, self.rows)
        fits = self.lanes in (4, 8, 16, 32, 64) and self.columns >= self.lanes and self.width >= self.along
        is_small = max(self.height, self.width, self.rows) <= MOST
        is_known = self.operation in ("sum", "max") or self.dtype.startswith("float")
        return min(numbers) > 0 and fits and is_small and is_known

    @property
    def shape(self) -> tuple[int, int]:
        """The lines and columns that windows read."""
        return (self.lines - 1) * self.down + self.height, (self.columns - 1) * self.along + self.width


def register(name: str) -> bool:
    """Register the intrinsic of that name. Returns False if it is not the name of windows of lines."""
    match = _NAME.fullmatch(name)
    if match is None:
        return False
    windows = WindowReduction(match[1], match[2], *map(int, match.groups()[2:]))
    if not windows.is_valid:
        return False
    register_once(name, lambda: (_description(windows), _implementation(windows)))
    return True


def _description(windows: WindowReduction) -> tirx.PrimFunc:
    with _function("description", windows) as (builder, operands):
        image, *kernel, result = operands
        axes = (
            (T.axis.spatial, windows.lines),
            (T.axis.spatial, windows.columns),
            (T.axis.reduce, windows.height),
            (T.axis.reduce, windows.width),
        )
        # TVM leaves axes of one element out of the block that it compares.
        with T.grid(*(extent for _, extent in axes if extent > 1)) as loops, T.sblock("windows"):
            remaining = iter(loops)
            i, j, ki, kj = (axis(extent, next(remaining)) if extent > 1 else 0 for axis, extent in axes)
            element = image[_place(image, i * windows.down + ki, j * windows.along + kj)]
            term = element * kernel[0][_place(kernel[0], ki, kj)] if kernel else element
            place = _place(result, i, j)
            T.buffer_store(result, combine(windows.operation)(result[place], term), place)
    return builder.get()


def _implementation(windows: WindowReduction) -> tirx.PrimFunc:
    with _function("implementation", windows) as (builder, operands), T.sblock("lines"):
        _accesses(operands)
        emit = _products if windows.operation == "dot" else _separable
        rows = min(windows.rows, windows.lines)
        rounds, rest = divmod(windows.lines, rows)
        compute = emit(windows, operands, rows)
        with T.serial(rounds) as block:
            compute(block * rows, rows)
        if rest:
            compute(rounds * rows, rest)
    return builder.get()


def _separable(windows: WindowReduction, operands: list[Any], rows: int) -> Callable[[Any, int], None]:
    image, result = operands
    op, lanes, reach = combine(windows.operation), windows.lanes, windows.shape[1]
    vector, part = f"{windows.dtype}x{lanes}", T.ramp(0, 1, lanes)
    is_apart = windows.width == windows.along
    line = T.sblock_alloc_buffer((1, windows.along * lanes) if is_apart else (rows, reach), windows.dtype)
    partial = T.sblock_alloc_buffer((lanes,), windows.dtype)

    def take(values: list[Any]) -> Any:
        first, *others = values
        T.buffer_store(partial, first, [part])
        for each in others:
            T.buffer_store(partial, op(partial.vload([0], vector), each), [part])
        return partial.vload([0], vector)

    def reduce_lines(row: Any, start: Any, place: list[Any]) -> None:
        lines = [row * windows.down + k for k in range(windows.height)]
        total = take([image.vload(_place(image, each, start), vector) for each in lines])
        T.buffer_store(line, total, [place[0], T.ramp(place[1], 1, lanes)])

    def compute_apart(first: Any, count: int) -> None:
        """Reduce windows that have no element in common: what their lines are reduced to stays in registers."""
        with T.serial(count) as row:
            for start, again in _vectors(windows.columns, lanes):
                for n in range(windows.along):
                    reduce_lines(first + row, start * windows.along + n * lanes, [0, n * lanes])
                total = take([_tap(windows, line, 0, 0, k) for k in range(windows.width)])
                _update(windows, result, first + row, start, again, total)

    def compute(first: Any, count: int) -> None:
        with T.serial(count) as row:
            for start, _ in _vectors(reach, lanes):
                reduce_lines(first + row, start, [row, start])
        with T.serial(count) as row:
            for start, again in _vectors(windows.columns, lanes):
                total = take([_tap(windows, line, row, start, k) for k in range(windows.width)])
                _update(windows, result, first + row, start, again, total)

    return compute_apart if is_apart else compute


def _products(windows: WindowReduction, operands: list[Any], rows: int) -> Callable[[Any, int], None]:
    image, kernel, result = operands
    lanes, vector = windows.lanes, f"{windows.dtype}x{windows.lanes}"
    partial = T.sblock_alloc_buffer((rows, lanes), windows.dtype)

    def compute(first: Any, count: int) -> None:
        for start, again in _vectors(windows.columns, lanes):
            for row in range(count):
                T.buffer_store(partial, T.broadcast(tirx.const(0, windows.dtype), lanes), [row, T.ramp(0, 1, lanes)])
            for line in range((count - 1) * windows.down + windows.height):
                for k in range(windows.width):
                    tap = _tap(windows, image, first * windows.down + line, start, k)
                    for row in range(count):
                        place = line - row * windows.down
                        if 0 <= place < windows.height:
                            factor = T.broadcast(kernel[_place(kernel, place, k)], lanes)
                            total = partial.vload([row, 0], vector) + tap * factor
                            T.buffer_store(partial, total, [row, T.ramp(0, 1, lanes)])
            for row in range(count):
                _update(windows, result, first + row, start, again, partial.vload([row, 0], vector))

    return compute


def _vectors(extent: int, lanes: int) -> Iterator[tuple[Any, int]]:
    """Yield the first element of a vector, in a loop over all, and how many of its elements the one before has, too."""
    whole, rest = divmod(extent, lanes)
    with T.serial(whole) as v:
        yield v * lanes, 0
    if rest:
        yield extent - lanes, lanes - rest


def _tap(windows: WindowReduction, lines: Any, line: Any, start: Any, place: int) -> Any:
    """Return the vector of the elements at one place along windows, the first of which is for column ``start``.

    All elements that are loaded are of these windows: those behind the last window may be outside of the image.
    """
    stride, lanes, vector = windows.along, windows.lanes, f"{windows.dtype}x{windows.lanes}"
    begin = min(place - place % stride, windows.width - stride)
    places = [start * stride + begin + n * lanes for n in range(stride)]
    loads = [lines.vload(_place(lines, line, each), vector) for each in places]
    if stride == 1:
        return loads[0]
    return tirx.Shuffle(loads, [place - begin + n * stride for n in range(lanes)])


def _update(windows: WindowReduction, result: Any, line: Any, start: Any, again: int, total: Any) -> None:
    """Combine a vector of the result with a total, but for its first elements that are combined already."""
    own = result.vload(_place(result, line, start), f"{windows.dtype}x{windows.lanes}")
    value = combine(windows.operation)(own, total)
    if again:
        value = tirx.Select(T.ramp(0, 1, windows.lanes) < T.broadcast(again, windows.lanes), own, value)
    T.buffer_store(result, value, _place(result, line, T.ramp(start, 1, windows.lanes)))


def _place(buffer: Any, line: Any, column: Any) -> tuple[Any, ...]:
    """Return the indices of an element: a buffer of one line has one dimension, as TVM compares it."""
    return (line, column) if len(buffer.shape) > 1 else (column,)


@contextmanager
def _function(name: str, windows: WindowReduction) -> Iterator[tuple[IRBuilder, list[Any]]]:
    """Open a function of the operands, in its outermost block."""
    shapes = [windows.shape, (windows.lines, windows.columns)]
    if windows.operation == "dot":
        shapes.insert(1, (windows.height, windows.width))
    with IRBuilder() as builder, T.prim_func(s_tir=True):
        T.func_name(name)
        handles = [T.arg(f"operand{place}", T.handle()) for place in range(len(shapes))]
        operands = []
        for handle, (lines, columns) in zip(handles, shapes, strict=True):
            shape, strides = ((lines, columns), [T.int64(), 1]) if lines > 1 else ((columns,), [1])
            operands.append(T.match_buffer(handle, shape, windows.dtype, strides=strides, offset_factor=1))
        with T.sblock("root"):
            _accesses(operands)
            yield builder, operands


def _accesses(operands: list[Any]) -> None:
    *read, result = ([slice(0, extent) for extent in each.shape] for each in operands)
    *sources, target = operands
    T.reads(target[tuple(result)], *(each[tuple(place)] for each, place in zip(sources, read, strict=True)))
    T.writes(target[tuple(result)])
