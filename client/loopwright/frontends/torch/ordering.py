"""Sorts of PyTorch, and what is selected by its place in the order of elements, in Relax.

TVM sorts by a comparison that is no order if there is NaN, so that integers are sorted in place of floating-point
numbers. In PyTorch's order NaN is greater than all numbers, and -0.0 is equal to 0.0.
"""

from __future__ import annotations

from typing import Any

from tvm import relax, tirx

from loopwright.frontends.torch.elements import elementwise
from loopwright.frontends.torch.node import Converter, Node, wide


def _keys(node: Node, data: Any) -> Any:
    """Return integers that are in the order of a tensor's elements."""
    own = str(data.ty.dtype)
    if "float" in own:
        return elementwise(node, _key, node.cast(data, wide(own)))
    return data if own in ("int32", "int64") else node.cast(data, "int64")  # TVM sorts no others


def _key(value: Any) -> Any:
    """The bits of positive numbers are in the order of the numbers, those of negative ones in the reverse order."""
    bits = str(value.ty).removeprefix("float")
    of_integer, most = f"int{bits}", tirx.const(2 ** (int(bits) - 1) - 1, f"int{bits}")
    zero = tirx.const(0, value.ty)
    pattern = tirx.reinterpret(of_integer, tirx.Select(value == zero, zero, value))
    ordered = tirx.Select(pattern < tirx.const(0, of_integer), tirx.bitwise_xor(pattern, most), pattern)
    return tirx.Select(tirx.isnan(value), most, ordered)


def _axis(node: Node) -> int:
    return int(node.arguments.get("dim", -1)) % len(node["self"].ty.shape)


def _selected(node: Node, data: Any, places: Any, axis: int) -> Any:
    """Return elements at places, and the places; without the axis unless `keepdim` is true."""
    found = node.emit(relax.op.gather_elements(data, places, axis)), places
    if node.arguments.get("keepdim", True):
        return found
    return tuple(node.emit(relax.op.squeeze(each, [axis])) for each in found)


def _places(node: Node, data: Any, axis: int, *, descending: bool = False) -> Any:
    """Return the places of elements in their order; equal elements keep theirs."""
    return node.emit(relax.op.argsort(_keys(node, data), axis, descending, dtype="int64"))


def _sort(node: Node) -> Any:
    data, axis = node["self"], _axis(node)
    return _selected(node, data, _places(node, data, axis, descending=bool(node["descending"])), axis)


def _topk(node: Node) -> Any:
    """Of equal elements the first ones are taken, and the result is always sorted; PyTorch leaves both open."""
    data, axis = node["self"], _axis(node)
    count, largest = int(node["k"]), bool(node["largest"])
    places = node.emit(relax.op.topk(_keys(node, data), count, axis, "indices", largest, "int64"))
    return _selected(node, data, places, axis)


def _kth(node: Node) -> Any:
    data, axis = node["self"], _axis(node)
    place = int(node["k"]) - 1
    places = relax.op.strided_slice(_places(node, data, axis), [axis], [place], [place + 1], [1])
    return _selected(node, data, node.emit(places), axis)


def _median_of(node: Node, data: Any, axis: int, *, ignores_nan: bool) -> Any:
    """Return the place of the lower median along an axis. NaN is behind all numbers, and the median unless ignored."""
    extent, places = data.ty.shape[axis], _places(node, data, axis)
    last = node.cast(extent - 1, "int64")
    if "float" in str(data.ty.dtype):
        is_nan = node.cast(node.emit(relax.op.isnan(data)), "int64")
        count = node.emit(relax.op.sum(is_nan, [axis], True))
    else:
        count = node.emit(relax.op.full_like(node.emit(relax.op.max(places, [axis], True)), node.cast(0, "int64")))
    numbers = node.emit(relax.op.subtract(last, count))
    middle = relax.op.floor_divide(numbers if ignores_nan else last, relax.const(2, "int64"))
    of_nan = relax.op.add(numbers, relax.const(1, "int64"))
    has_nan = relax.op.greater(count, relax.const(0, "int64"))
    if ignores_nan:
        where = relax.op.maximum(middle, relax.const(0, "int64"))
    else:
        where = relax.op.where(has_nan, of_nan, middle)
    return node.emit(relax.op.gather_elements(places, node.emit(where), axis))


def _median(*, ignores_nan: bool) -> Converter:
    def convert(node: Node) -> Any:
        data, axis = node["self"], _axis(node)
        return _selected(node, data, _median_of(node, data, axis, ignores_nan=ignores_nan), axis)

    return convert


def _median_of_all(*, ignores_nan: bool) -> Converter:
    def convert(node: Node) -> Any:
        flat = node.emit(relax.op.reshape(node["self"], [-1]))
        place = _median_of(node, flat, 0, ignores_nan=ignores_nan)
        return relax.op.reshape(node.emit(relax.op.gather_elements(flat, place, 0)), [])

    return convert


CONVERTERS: dict[str, Converter] = {
    "kthvalue.default": _kth,
    "median.default": _median_of_all(ignores_nan=False),
    "median.dim": _median(ignores_nan=False),
    "nanmedian.default": _median_of_all(ignores_nan=True),
    "nanmedian.dim": _median(ignores_nan=True),
    "sort.default": _sort,
    "sort.stable": _sort,
    "topk.default": _topk,
}
