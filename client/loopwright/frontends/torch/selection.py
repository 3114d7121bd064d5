"""Maxima, minima and their places in PyTorch's tensors, in Relax.

How they treat NaN and infinities is a matter of `loopwright.codegen.program.extremes`.
"""

from __future__ import annotations

from typing import Any

from tvm import relax, te, tirx

from loopwright.frontends.torch.accumulation import axes_of
from loopwright.frontends.torch.node import Converter, Node, extents, is_tensor, wide

_Operator = Any
_LETTERS = ("W", "HW", "DHW")


def _pair(operator: _Operator) -> Converter:
    return lambda node: operator(*(node.cast(node[name], node.dtype) for name in ("self", "other")))


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
    if low is not None:
        result = node.emit(relax.op.maximum(result, node.cast(low, dtype)))
    return result if high is None else relax.op.minimum(result, node.cast(high, dtype))


def _sort(node: Node) -> Any:
    """Sort so that equal elements keep their order."""
    data, axis = node["self"], node["dim"]
    if not len(data.ty.shape):
        return data, node.cast(0, "int64")
    places = node.emit(relax.op.argsort(_ordered(node, data), axis, bool(node["descending"]), dtype="int64"))
    return relax.op.gather_elements(data, places, axis), places


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
    shape = [int(extent) for extent in node.result[1].shape]
    own = extents(node["self"])[-rank:]

    def places(data: te.Tensor) -> te.Tensor:
        dtype = str(data.dtype)
        window = [te.reduce_axis((0, each), "rv") for each in size]
        reducer = te.comm_reducer(_first_of(dtype), lambda *_: (tirx.const(-1, "int64"), tirx.const(0, dtype)))

        def element(*place: Any) -> Any:
            where = [
                place[len(place) - rank + axis] * strides[axis] + window[axis] * dilation[axis] - padding[axis]
                for axis in range(rank)
            ]
            inside = tirx.all(*(tirx.all(each >= 0, each < extent) for each, extent in zip(where, own, strict=True)))
            flat: Any = 0
            for each, extent in zip(where, own, strict=True):
                flat = flat * extent + each
            value = tirx.if_then_else(inside, data(*place[: len(place) - rank], *where), tirx.const(0, dtype))
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
    """Return a converter to maxima of parts whose extents differ by one at most."""

    def convert(node: Node) -> Any:
        data, shape = node["self"], [int(extent) for extent in node.result[0].shape]
        own, wanted = extents(data)[-rank:], shape[-rank:]
        if node.uses(1):
            raise ValueError("has no translation for the places of the maxima")
        if any(extent % parts for extent, parts in zip(own, wanted, strict=True)):
            raise ValueError(f"has no translation for {own} elements in {wanted} parts, which are not equally large")
        split = [each for extent, parts in zip(own, wanted, strict=True) for each in (parts, extent // parts)]
        lead = shape[:-rank]
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
    **dict.fromkeys(("max.other", "maximum.default"), _pair(relax.op.maximum)),
    **dict.fromkeys(("min.other", "minimum.default"), _pair(relax.op.minimum)),
    "max_pool2d_with_indices.default": _max_pool_and_places(2),
    "max_pool3d_with_indices.default": _max_pool_and_places(3),
    "sort.default": _sort,
    "sort.stable": _sort,
}
