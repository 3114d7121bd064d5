"""Reads of PyTorch at indices, in Relax. Negative indices count from the end, also those that are computed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tvm import relax, te, tirx

from loopwright.codegen.program.broadcasting import at, broadcast
from loopwright.frontends.torch.node import Converter, Node, is_known


def from_start(index: Any, extent: Any) -> Any:
    """Return an index in TIR that counts from the start."""
    if str(index.ty).startswith("u"):
        return index
    return tirx.Select(index < tirx.const(0, str(index.ty)), index + tirx.Cast(str(index.ty), extent), index)


def _select(node: Node) -> Any:
    data, axis, index = node["self"], node["dim"], node["index"]
    extent = data.ty.shape[axis]
    if not is_known(index):
        raise ValueError("takes an index that is symbolic")
    if index < 0 and not is_known(extent):
        raise ValueError("counts from the end of a symbolic extent")
    place = relax.const(index + int(extent) if index < 0 else index, "int64")
    return relax.op.take(data, place, axis, mode="clip")


def _index(node: Node) -> Any:
    """The axes of the indices come where they are next to each other, and first if they are apart."""
    data, indices = node["self"], list(node["indices"])
    axes = [axis for axis, index in enumerate(indices) if index is not None]
    tensors = [indices[axis] for axis in axes]
    if any(str(tensor.ty.dtype) == "bool" for tensor in tensors):
        raise ValueError("selects by a mask, so that the shape of the result depends on values; use torch.where")
    if len(axes) == 1:
        index = node.compute(
            lambda index, data: te.compute(
                index.shape, lambda *place: from_start(index(*place), data.shape[axes[0]]), name="from_start"
            ),
            tensors[0],
            data,
        )
        return relax.op.take(data, index, axes[0], mode="clip")

    def gather(data: te.Tensor, *indices: te.Tensor) -> te.Tensor:
        return te.compute(*gathered(data, axes, indices), name="index")

    return node.compute(gather, data, *tensors)


def gathered(data: te.Tensor, axes: Sequence[int], indices: Sequence[te.Tensor]) -> tuple[list[Any], Any]:
    """Return the shape of ``data[…]`` with index tensors at axes, and the function of a place to its element."""
    common = broadcast([index.shape for index in indices])
    together = list(axes) == list(range(axes[0], axes[-1] + 1))
    first = axes[0] if together else 0
    others = [extent for axis, extent in enumerate(data.shape) if axis not in axes]

    def element(*place: Any) -> Any:
        of_indices, rest = place[first : first + len(common)], [*place[:first], *place[first + len(common) :]]
        known = iter(rest)
        where = [
            from_start(at(indices[list(axes).index(axis)], of_indices), data.shape[axis])
            if axis in axes
            else next(known)
            for axis in range(len(data.shape))
        ]
        return data(*where)

    return [*others[:first], *common, *others[first:]], element


def _windows(node: Node) -> Any:
    """Return the windows of an axis; their elements are the last axis."""
    size, step = int(node["size"]), int(node["step"])

    def windows(data: te.Tensor) -> te.Tensor:
        axis = int(node["dimension"]) % len(data.shape)
        count = tirx.floordiv(data.shape[axis] - size, step) + 1
        shape = [*data.shape[:axis], count, *data.shape[axis + 1 :], size]
        return te.compute(
            shape,
            lambda *place: data(*place[:axis], place[axis] * step + place[-1], *place[axis + 1 : -1]),
            name="windows",
        )

    return node.compute(windows, node["self"])


CONVERTERS: dict[str, Converter] = {
    "index.Tensor": _index,
    "select.int": _select,
    "unfold.default": _windows,
}
