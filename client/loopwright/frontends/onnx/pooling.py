"""Poolings over windows: their padding, the places of maxima, and averages over the elements that count."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from tvm import relax

from loopwright.frontends.onnx.accumulation import widened
from loopwright.frontends.onnx.node import Converter, Node, dtype_of


@dataclass(frozen=True, slots=True)
class _Windows:
    """Windows over the axes behind batch and channels. Windows may end behind the padding, if extents are rounded up.

    ``before`` and ``behind`` are the padding that the node asks for, ``extents`` the numbers of windows.
    """

    data: list[int]
    kernel: list[int]
    strides: list[int]
    dilations: list[int]
    before: list[int]
    behind: list[int]
    extents: list[int]

    @property
    def beyond(self) -> list[int]:
        """Elements behind the tensor that windows reach."""
        return [
            max((extent - 1) * stride + (kernel - 1) * dilation + 1 - before - data, 0)
            for extent, stride, kernel, dilation, before, data in zip(
                self.extents, self.strides, self.kernel, self.dilations, self.before, self.data, strict=True
            )
        ]

    def positions(self, axis: int) -> Any:
        """Return the place in the tensor of each element of each window: (windows, kernel)."""
        starts = np.arange(self.extents[axis]) * self.strides[axis] - self.before[axis]
        return starts[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]

    def counts(self, *, with_padding: bool) -> Any:
        """Return the number of elements of each window that are in the tensor, or in its padding as well."""
        counts = np.ones((), "int64")
        for axis, extent in enumerate(self.data):
            places = self.positions(axis)
            first, last = (-self.before[axis], extent + self.behind[axis]) if with_padding else (0, extent)
            counts = counts[..., None] * ((places >= first) & (places < last)).sum(1)
        return counts


def _windows(node: Node) -> _Windows:
    data = node.extents(0)[2:]
    kernel = list(node.attributes["kernel_shape"])
    if len(kernel) > 3:
        raise ValueError(f"over {len(kernel)} axes; 1 to 3 are supported")
    ones = [1] * len(kernel)
    strides, dilations = (list(node.attributes.get(name, ones)) for name in ("strides", "dilations"))
    pads = list(node.attributes.get("pads", [0] * 2 * len(kernel)))
    before, behind = pads[: len(kernel)], pads[len(kernel) :]
    reach = [(size - 1) * dilation + 1 for size, dilation in zip(kernel, dilations, strict=True)]
    mode = node.text("auto_pad", "NOTSET")
    if mode.startswith("SAME"):
        extents = [-(-extent // stride) for extent, stride in zip(data, strides, strict=True)]
        total = [
            max((extent - 1) * stride + size - own, 0)
            for extent, stride, size, own in zip(extents, strides, reach, data, strict=True)
        ]
        before = [each // 2 if mode == "SAME_UPPER" else each - each // 2 for each in total]
        behind = [each - first for each, first in zip(total, before, strict=True)]
    elif mode == "VALID":
        before = behind = [0] * len(kernel)
    extents = []
    for own, first, last, size, stride in zip(data, before, behind, reach, strides, strict=True):
        steps = first + own + last - size
        extent = (-(-steps // stride) if node.attributes.get("ceil_mode", 0) else steps // stride) + 1
        # A window that would begin behind the tensor, and its padding in front, is left out.
        extents.append(extent - 1 if (extent - 1) * stride >= own + first else extent)
    return _Windows(data, kernel, strides, dilations, before, behind, extents)


def _pool(kind: str, data: Any, windows: _Windows, **options: Any) -> Any:
    operator = getattr(relax.op.nn, f"{kind}_pool{len(windows.kernel)}d")
    padding = [*windows.before, *windows.beyond]
    return operator(data, windows.kernel, windows.strides, padding, windows.dilations, **options)


def _max_pool(node: Node) -> Any:
    windows, data = _windows(node), node.inputs[0]
    largest = node.emit(_pool("max", data, windows))
    return largest if node.outputs == 1 else relax.Tuple([largest, _places(node, windows, largest)])


def _places(node: Node, windows: _Windows, largest: Any) -> Any:
    """Return the first place in the flattened tensor at which each maximum is."""
    data, (batch, channels, *_) = node.inputs[0], node.extents(0)
    axes = len(windows.kernel)
    sides = [(0, 0), (0, 0), *zip(windows.before, windows.beyond, strict=True)]
    padded = node.emit(relax.op.nn.pad(data, [each for side in sides for each in side], pad_value=0))
    size, is_column_major = math.prod(windows.data), bool(node.attributes.get("storage_order", 0))
    order = windows.data[::-1] if is_column_major else windows.data
    offsets = (np.arange(batch * channels) * size).reshape(batch, channels, *[1] * axes)
    is_nan = node.emit(relax.op.isnan(largest)) if "float" in dtype_of(data) else None
    result = node.emit(relax.op.zeros((batch, channels, *windows.extents), "int64"))
    for element in reversed(list(itertools.product(*map(range, windows.kernel)))):
        begin = [each * dilation for each, dilation in zip(element, windows.dilations, strict=True)]
        end = [
            first + (extent - 1) * stride + 1
            for first, extent, stride in zip(begin, windows.extents, windows.strides, strict=True)
        ]
        value = node.emit(relax.op.strided_slice(padded, list(range(2, axes + 2)), begin, end, windows.strides))
        grid = np.meshgrid(*(windows.positions(axis)[:, each] for axis, each in enumerate(element)), indexing="ij")
        inside = np.all([(grid[axis] >= 0) & (grid[axis] < windows.data[axis]) for axis in range(axes)], axis=0)
        limited = [np.clip(grid[axis], 0, windows.data[axis] - 1) for axis in range(axes)]
        places = offsets + np.ravel_multi_index(limited[::-1] if is_column_major else limited, order)
        matches = node.emit(relax.op.equal(value, largest))
        if is_nan is not None:
            matches = node.emit(relax.op.logical_or(matches, node.emit(relax.op.isnan(value))))
        if not inside.all():
            matches = node.emit(relax.op.logical_and(matches, relax.const(inside[None, None], "bool")))
        result = node.emit(relax.op.where(matches, relax.const(places, "int64"), result))
    return result


def _average_pool(node: Node) -> Any:
    windows, data = _windows(node), node.inputs[0]
    counts = windows.counts(with_padding=bool(node.attributes.get("count_include_pad", 0)))
    dtype, size = dtype_of(data), math.prod(windows.kernel)
    mean = node.emit(_pool("avg", data, windows, count_include_pad=True))
    return (
        mean if (counts == size).all() else relax.op.multiply(mean, relax.const((size / counts).astype(dtype), dtype))
    )


def _power_pool(node: Node) -> Any:
    """Convert the p-norm of windows."""
    windows, data = _windows(node), node.inputs[0]
    dtype, power = dtype_of(data), float(node.attributes.get("p", 2))
    powers = node.emit(relax.op.power(relax.op.abs(data), relax.const(power, dtype)))
    mean = node.emit(_pool("avg", powers, windows, count_include_pad=True))
    total = node.emit(relax.op.multiply(mean, relax.const(math.prod(windows.kernel), dtype)))
    return relax.op.power(total, relax.const(1 / power, dtype))


CONVERTERS: dict[str, Converter] = {
    "AveragePool": widened(_average_pool),
    "LpPool": widened(_power_pool),
    "MaxPool": _max_pool,
}
