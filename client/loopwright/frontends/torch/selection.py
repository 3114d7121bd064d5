"""Maxima, minima and their places in PyTorch's tensors, in Relax.

How they treat NaN and infinities is a matter of `loopwright.codegen.program.extremes`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import relax, te, tirx

from loopwright.frontends.torch.accumulation import axes_of
from loopwright.frontends.torch.node import Converter, Node, extents, is_tensor, wide

_Operator = Any
_LETTERS = ("W", "HW", "DHW")


def _pair(operator: _Operator, of_bool: _Operator) -> Converter:
    def convert(node: Node) -> Any:
        operands = (node.cast(node[name], node.dtype) for name in ("self", "other"))
        return (of_bool if node.dtype == "bool" else operator)(*operands)

    return convert


def _reduction(operator: _Operator) -> Converter:
    def convert(node: Node) -> Any:
        data = node["self"]
        return operator(_ordered(node, data), *axes_of(node, data))

    def of_bool(node: Node) -> Any:
        return node.cast(node.emit(convert(node)), node.dtype)

    return of_bool


def _ordered(node: Node, data: Any) -> Any:
    """Return a tensor that TVM can compare: booleans as integers."""
    return node.cast(data, "int8") if str(data.ty.dtype) == "bool" else data


def _wide(node: Node, data: Any) -> Any:
    """Return a tensor whose elements TVM can bind to variables in a reduction: bfloat16 as float32."""
    return _ordered(node, node.cast(data, wide(str(data.ty.dtype))))


def _with_place(operator: _Operator, place: _Operator) -> Converter:
    """Return a converter to extremes along an axis, and to the places of the first of them."""

    def convert(node: Node) -> Any:
        data, keepdim = _ordered(node, node["self"]), bool(node["keepdim"])
        if not len(data.ty.shape):
            return node["self"], node.cast(0, "int64")
        axis = node["dim"]
        values = node.emit(operator(data, [axis], keepdim))
        return node.cast(values, node.dtype), place(data, axis, keepdim)

    return convert


def _clamp(node: Node) -> Any:
    dtype = node.dtype
    result = node.cast(node["self"], dtype)
    low, high = node.arguments.get("min"), node.arguments.get("max")
    if "float" in dtype and not is_tensor(low) and not is_tensor(high):
        low, high = (float(sign + "inf") if bound is None else bound for sign, bound in (("-", low), ("", high)))
        if low > high:  # PyTorch's result is the upper limit then
            low = high
        return relax.op.clip(result, low, high)
    larger, smaller = relax.op.maximum, relax.op.minimum
    if dtype == "bool":
        larger, smaller = relax.op.logical_or, relax.op.logical_and
    if low is not None:
        result = node.emit(larger(result, node.cast(low, dtype)))
    return result if high is None else smaller(result, node.cast(high, dtype))


def _running(is_max: bool) -> Converter:
    """Return a converter of cummax or cummin, whose places are those of the last of equal elements."""

    def convert(node: Node) -> Any:
        data = node["self"]
        if not len(data.ty.shape):
            return data, node.cast(0, "int64")
        axis = int(node["dim"]) % len(data.ty.shape)

        def places(data: te.Tensor) -> te.Tensor:
            dtype = str(data.dtype)
            reducer = te.comm_reducer(
                _last_of(is_max, dtype), lambda *_: (tirx.const(-1, "int64"), tirx.const(0, dtype))
            )
            each = te.reduce_axis((0, data.shape[axis]), "k")

            def element(*place: Any) -> Any:
                value = data(*place[:axis], tirx.min(each, place[axis]), *place[axis + 1 :])
                return reducer((tirx.Cast("int64", tirx.min(each, place[axis])), value), axis=each)

            found = te.compute(data.shape, element, name="place_and_value")
            return te.compute(data.shape, lambda *place: found[0](*place), name="place")

        found = node.compute(places, _wide(node, data))
        return relax.op.gather_elements(data, found, axis), found

    return convert


def _last_of(is_max: bool, dtype: str) -> Any:
    """Return the reduction of places, of which -1 is none, and values; NaN is beyond all others and stays."""

    def pair(left: Any, right: Any) -> Any:
        beyond = left[1] <= right[1] if is_max else left[1] >= right[1]
        if "float" in dtype:
            beyond = tirx.any(beyond, tirx.isnan(right[1]))
        later = tirx.any(left[0] < tirx.const(0, "int64"), beyond)
        taken = tirx.all(right[0] >= tirx.const(0, "int64"), later)
        return tuple(tirx.Select(taken, of_right, of_left) for of_left, of_right in zip(left, right, strict=True))

    return pair


def _max_pool(rank: int) -> Converter:
    def convert(node: Node) -> Any:
        data, size = node["self"], _spread(node["kernel_size"], rank)
        strides = _spread(node["stride"] or size, rank)
        padding, dilation = _spread(node["padding"], rank), _spread(node["dilation"], rank)
        ceil_mode, letters = bool(node["ceil_mode"]), _LETTERS[rank - 1]
        without_batch = len(data.ty.shape) == rank + 1
        if without_batch:
            data = node.emit(relax.op.expand_dims(data, 0))
        operator = getattr(relax.op.nn, f"max_pool{rank}d")
        result = node.emit(
            operator(
                data, size, strides, padding * 2, dilation, ceil_mode, layout=f"NC{letters}", out_layout=f"NC{letters}"
            )
        )
        return node.emit(relax.op.squeeze(result, [0])) if without_batch else result

    return convert


def _max_pool_and_places(rank: int) -> Converter:
    """Return a converter to maxima and, if they are used, to their places in the plane or the volume of a channel."""
    maxima = _max_pool(rank)

    def convert(node: Node) -> Any:
        if not node.uses(1):
            return maxima(node), None
        return maxima(node), _places_in_windows(node, rank)

    return convert


def _places_in_windows(node: Node, rank: int) -> Any:
    size = _spread(node["kernel_size"], rank)
    strides = _spread(node["stride"] or size, rank)
    padding, dilation = _spread(node["padding"], rank), _spread(node["dilation"], rank)
    own = extents(node["self"])[-rank:]

    def position(axis: int, part: Any, each: Any) -> tuple[Any, Any]:
        where = part * strides[axis] + each * dilation[axis] - padding[axis]
        return where, tirx.all(where >= 0, where < own[axis])

    return _places(node, size, position)


def _places_in_parts(node: Node, own: list[int], wanted: list[int]) -> Any:
    """Return the places of maxima in parts that differ by one element at most, and may overlap by one."""
    size = [
        max(-(-(part + 1) * extent // parts) - part * extent // parts for part in range(parts))
        for extent, parts in zip(own, wanted, strict=True)
    ]

    def position(axis: int, part: Any, each: Any) -> tuple[Any, Any]:
        extent, parts = own[axis], wanted[axis]
        where = tirx.floordiv(part * extent, parts) + each
        return where, where < tirx.floordiv((part + 1) * extent + parts - 1, parts)

    return _places(node, size, position)


def _places(node: Node, size: list[int], position: Callable[[int, Any, Any], tuple[Any, Any]]) -> Any:
    """Return the places of maxima in windows of a size, as numbers of elements in the plane or volume of a channel.

    ``position`` is a function of an axis, of the number of a window and of the number of its element along the axis. It
    returns the position of the element in the image, and whether it is inside.
    """
    rank, shape = len(size), [int(extent) for extent in node.result[1].shape]
    own = extents(node["self"])[-rank:]

    def places(data: te.Tensor) -> te.Tensor:
        dtype = str(data.dtype)
        window = [te.reduce_axis((0, each), "rv") for each in size]
        reducer = te.comm_reducer(_first_of(dtype), lambda *_: (tirx.const(-1, "int64"), tirx.const(0, dtype)))

        def element(*place: Any) -> Any:
            lead, parts = place[: len(place) - rank], place[len(place) - rank :]
            found = [position(axis, parts[axis], window[axis]) for axis in range(rank)]
            where, inside = [each[0] for each in found], tirx.all(*(each[1] for each in found))
            flat: Any = 0
            for each, extent in zip(where, own, strict=True):
                flat = flat * extent + each
            value = tirx.if_then_else(inside, data(*lead, *where), tirx.const(0, dtype))
            number = tirx.Select(inside, tirx.Cast("int64", flat), tirx.const(-1, "int64"))
            return reducer((number, value), axis=window)

        found = te.compute(shape, element, name="place_and_value")
        return te.compute(shape, lambda *place: found[0](*place), name="place")

    return node.compute(places, _wide(node, node["self"]))


def _first_of(dtype: str) -> Any:
    """Return the reduction of places, of which -1 is none, and values to the first maximum, or to the last NaN."""

    def pair(left: Any, right: Any) -> Any:
        none = tirx.const(-1, "int64")
        beyond = left[1] < right[1]
        if "float" in dtype:
            beyond = tirx.any(beyond, tirx.isnan(right[1]))
        taken = tirx.all(right[0] != none, tirx.any(left[0] == none, beyond))
        return tuple(tirx.Select(taken, of_right, of_left) for of_left, of_right in zip(left, right, strict=True))

    return pair


def _spread(value: Any, rank: int) -> list[int]:
    """Return one number for each axis."""
    numbers = [int(each) for each in value] if isinstance(value, list | tuple) else [int(value)]
    return numbers * rank if len(numbers) == 1 else numbers


def _adaptive_max_pool(rank: int) -> Converter:
    """Return a converter to maxima of parts, and to their places."""

    def convert(node: Node) -> Any:
        data, shape = node["self"], [int(extent) for extent in node.result[0].shape]
        own, wanted, lead = extents(data)[-rank:], shape[-rank:], shape[:-rank]
        if node.uses(1) or any(extent % parts for extent, parts in zip(own, wanted, strict=True)):
            places = _places_in_parts(node, own, wanted)
            plane = node.emit(relax.op.reshape(data, [*lead, math.prod(own)]))
            flat = node.emit(relax.op.reshape(places, [*lead, math.prod(wanted)]))
            maxima = node.emit(relax.op.gather_elements(plane, flat, len(lead)))
            return node.emit(relax.op.reshape(maxima, shape)), places
        split = [each for extent, parts in zip(own, wanted, strict=True) for each in (parts, extent // parts)]
        parts = node.emit(relax.op.reshape(data, [*lead, *split]))
        return node.emit(relax.op.max(parts, [len(lead) + 2 * axis + 1 for axis in range(rank)])), None

    return convert


CONVERTERS: dict[str, Converter] = {
    "adaptive_max_pool2d.default": _adaptive_max_pool(2),
    "adaptive_max_pool3d.default": _adaptive_max_pool(3),
    **dict.fromkeys(("amax.default", "max.default"), _reduction(relax.op.max)),
    **dict.fromkeys(("amin.default", "min.default"), _reduction(relax.op.min)),
    **dict.fromkeys(
        (
            "clamp.default",
            "clamp.Tensor",
            "clamp_max.default",
            "clamp_min.default",
            "clamp_max.Tensor",
            "clamp_min.Tensor",
        ),
        _clamp,
    ),
    "cummax.default": _running(is_max=True),
    "cummin.default": _running(is_max=False),
    "max.dim": _with_place(relax.op.max, relax.op.argmax),
    "min.dim": _with_place(relax.op.min, relax.op.argmin),
    **dict.fromkeys(("max.other", "maximum.default"), _pair(relax.op.maximum, relax.op.logical_or)),
    **dict.fromkeys(("min.other", "minimum.default"), _pair(relax.op.minimum, relax.op.logical_and)),
    "max_pool2d_with_indices.default": _max_pool_and_places(2),
    "max_pool3d_with_indices.default": _max_pool_and_places(3),
}
