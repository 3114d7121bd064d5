"""Views: tensors that permutations, reshapes and slices of another tensor describe without moving an element.

As in PyTorch, a view is a shape with a stride for each axis and an offset, in elements of the tensor below.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tvm import relax, tirx

from loopwright.codegen.graph.rewriting import CallRewriter, is_single, op_name, permutation_of, scalar_of, shape_of


@dataclass(frozen=True)
class View:
    """``factor`` is what the elements are multiplied by: a product with a constant on the way is passed as well.

    ``scales`` are tensors of one element that they are multiplied by, too.
    """

    base: Any
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    factor: float = 1.0
    scales: tuple[Any, ...] = ()

    @staticmethod
    def of(tensor: Any, shape: tuple[int, ...]) -> View:
        """Return a whole tensor, as it lies in memory, as a view of itself."""
        return View(tensor, shape, contiguous_strides(shape))

    def permuted(self, axes: Sequence[int]) -> View:
        return replace(
            self, shape=tuple(self.shape[axis] for axis in axes), strides=tuple(self.strides[axis] for axis in axes)
        )

    def reshaped(self, shape: Sequence[int]) -> View | None:
        """Return the view under another shape of as many elements; None if its strides do not allow it."""
        blocks: list[tuple[int, int]] = []
        """Extent and stride of what can be walked with one stride, the outermost first."""
        for extent, stride in zip(self.shape, self.strides, strict=True):
            if extent == 1:
                continue
            if blocks and blocks[-1][1] == extent * stride:
                blocks[-1] = (blocks[-1][0] * extent, stride)
            else:
                blocks.append((extent, stride))
        strides: list[int] = []
        left, stride = blocks.pop() if blocks else (1, 1)
        for extent in reversed(shape):
            if extent > 1 and left == 1 and blocks:
                left, stride = blocks.pop()
            if left % extent:
                return None
            strides.append(stride)
            left, stride = left // extent, stride * extent
        return replace(self, shape=tuple(shape), strides=tuple(reversed(strides)))

    def sliced(self, axis: int, start: int, extent: int) -> View:
        shape = (*self.shape[:axis], extent, *self.shape[axis + 1 :])
        return replace(self, shape=shape, offset=self.offset + start * self.strides[axis])

    def broadcast(self, shape: Sequence[int]) -> View | None:
        """Return the view with axes of extent 1, and missing ones in front, repeated; None if shapes do not fit."""
        missing = len(shape) - len(self.shape)
        own = ((1,) * missing + self.shape, (0,) * missing + self.strides)
        if missing < 0 or any(extent not in (1, wide) for extent, wide in zip(own[0], shape, strict=True)):
            return None
        strides = [stride if extent == wide else 0 for extent, stride, wide in zip(*own, shape, strict=True)]
        return replace(self, shape=tuple(shape), strides=tuple(strides))


@dataclass(frozen=True)
class BufferAccess:
    """How a function reads a view: its base under ``shape``, at ``index[axis] + start`` for each (axis, start)."""

    base: Any
    shape: tuple[int, ...]
    axes: tuple[tuple[int | None, int], ...]

    def at(self, tensor: Any, index: Sequence[Any]) -> Any:
        """Return the element of ``tensor``, which has `shape`, that the view has at an index."""
        places = [start if axis is None else index[axis] + start if start else index[axis] for axis, start in self.axes]
        return tensor(*places)


def access(view: View) -> BufferAccess | None:
    """Return how to read a view by indices that are one axis each; None if that would need arithmetic."""
    total = math.prod(shape_of(view.base) or (0,))
    walked = sorted(
        (stride, axis)
        for axis, (extent, stride) in enumerate(zip(view.shape, view.strides, strict=True))
        if extent > 1 and stride
    )
    if not walked or walked[0][0] != 1:
        walked.insert(0, (1, -1))
    shape: list[int] = []
    axes: list[tuple[int | None, int]] = []
    for place, (stride, axis) in enumerate(walked):
        whole = walked[place + 1][0] if place + 1 < len(walked) else total
        if not stride or whole % stride or whole == stride:
            return None
        extent = whole // stride
        start = view.offset // stride % extent
        if start + (view.shape[axis] if axis >= 0 else 1) > extent:
            return None
        shape.insert(0, extent)
        axes.insert(0, (axis if axis >= 0 else None, start))
    return BufferAccess(view.base, tuple(shape), tuple(axes))


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def view_of(rewriter: CallRewriter, tensor: Any, shape: Sequence[int] | None = None) -> View:
    """Return the view that a tensor of static shape is of the tensor that its permutations and reshapes began with.

    Args:
        shape: the shape to return it under, of as many elements; None for the tensor's own.
    """
    own = shape_of(tensor)
    assert own is not None
    asked = own if shape is None else tuple(shape)
    return _derived(rewriter, rewriter.value(tensor), asked) or View.of(tensor, asked)


def _derived(rewriter: CallRewriter, value: Any, shape: tuple[int, ...]) -> View | None:
    """Return a view by the operator that made it; None if that computes something, or its result is not a view."""
    if isinstance(value, relax.TupleGetItem):
        section = _section(rewriter, rewriter.value(value.tuple_value), int(value.index))
        return None if section is None else section.reshaped(shape)
    name = op_name(value)
    if name is None or not value.args or shape_of(value.args[0]) is None:
        return None
    source = value.args[0]
    if name == "reshape":
        return view_of(rewriter, source, shape)
    if name in ("multiply", "divide"):
        factor = scalar_of(rewriter.value(value.args[1]))
        view = view_of(rewriter, source, shape)
        if factor is None and name == "multiply" and is_single(value.args[1]) and not is_single(source):
            return replace(view, scales=(*view.scales, value.args[1]))
        if not factor:
            return None
        return replace(view, factor=view.factor * factor if name == "multiply" else view.factor / factor)
    if name == "permute_dims":
        return _permuted(rewriter, source, permutation_of(value), shape)
    if name == "strided_slice":
        section = _slice(rewriter, value)
        return None if section is None else section.reshaped(shape)
    if name == "take":
        element = _element(view_of(rewriter, source), scalar_of(rewriter.value(value.args[1])), value.attrs.axis)
        return None if element is None else element.reshaped(shape)
    if name == "broadcast_to":
        own = shape_of(value)
        wide = None if own is None else view_of(rewriter, source).broadcast(own)
        return None if wide is None else wide.reshaped(shape)
    return None


def _permuted(rewriter: CallRewriter, source: Any, axes: Sequence[int], shape: tuple[int, ...]) -> View | None:
    """Return a permutation of a tensor under another shape.

    Where that shape only splits axes, the axes of ``source`` are split instead: they may have been merged before, which
    need not be a view.
    """
    own = shape_of(source) or ()
    parts = split_axes([own[axis] for axis in axes], shape)
    if parts is None:
        return view_of(rewriter, source).permuted(axes).reshaped(shape)
    order = [axes.index(axis) for axis in range(len(axes))]
    """Where each axis of ``source`` is in the permutation."""
    split = [[shape[part] for part in parts[place]] for place in order]
    starts = [sum(len(extents) for extents in split[:axis]) for axis in range(len(axes))]
    view = view_of(rewriter, source, [extent for extents in split for extent in extents])
    return view.permuted([starts[axis] + part for axis in axes for part in range(len(split[axis]))])


def split_axes(shape: Sequence[int], finer: Sequence[int]) -> list[list[int]] | None:
    """Return the axes of ``finer`` into which each axis of ``shape`` is split; None if another reshape is between."""
    parts: list[list[int]] = []
    place = 0
    for extent in shape:
        part: list[int] = []
        while place < len(finer) and math.prod(finer[axis] for axis in part) < extent:
            part.append(place)
            place += 1
        if math.prod(finer[axis] for axis in part) != extent:
            return None
        parts.append(part)
    if parts and all(extent == 1 for extent in finer[place:]):
        parts[-1].extend(range(place, len(finer)))
        place = len(finer)
    return parts if place == len(finer) else None


def _element(view: View, place: float | None, axis: Any) -> View | None:
    """Return the view at one place of an axis, without that axis."""
    if place is None or axis is None or not -view.shape[int(axis)] <= place < view.shape[int(axis)]:
        return None
    removed = int(axis) % len(view.shape)
    section = view.sliced(removed, int(place) % view.shape[removed], 1)
    kept = [place for place in range(len(view.shape)) if place != removed]
    return section.permuted(kept)


def _slice(rewriter: CallRewriter, value: Any) -> View | None:
    """Return a slice with static bounds and unit strides as a view."""
    own, extents = shape_of(value.args[0]), shape_of(value)
    rows = [numbers(argument) for argument in value.args[1:]]
    if own is None or extents is None or len(rows) < 3 or any(row is None for row in rows):
        return None
    axes, starts, _, *strides = (row or [] for row in rows)
    if any(stride != 1 for row in strides for stride in row):
        return None
    view = view_of(rewriter, value.args[0])
    for axis, start in zip(axes, starts, strict=True):
        place = axis % len(own)
        begin = min(max(start + own[place] if start < 0 else start, 0), own[place])
        view = view.sliced(place, begin, extents[place])
    return view


def numbers(argument: Any) -> list[int] | None:
    """Return the integers of a tuple; None if one is symbolic."""
    fields = list(argument.fields) if isinstance(argument, relax.Tuple) else []
    values = [int(field.value) for field in fields if isinstance(field, tirx.IntImm)]
    return values if len(values) == len(fields) else None


def _section(rewriter: CallRewriter, split: Any, index: int) -> View | None:
    if op_name(split) != "split" or shape_of(split.args[0]) is None:
        return None
    view, axis, parts = view_of(rewriter, split.args[0]), int(split.attrs.axis), split.attrs.indices_or_sections
    axis %= len(view.shape)
    extent = view.shape[axis]
    if hasattr(parts, "value") or isinstance(parts, int):
        width = math.ceil(extent / int(parts))
        ends = [min(extent, width * place) for place in range(int(parts) + 1)]
    else:
        ends = [0, *(int(end) for end in parts), extent]
    return view.sliced(axis, ends[index], ends[index + 1] - ends[index])
