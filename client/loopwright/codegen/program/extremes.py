"""Maxima and minima that keep NaN and infinities, in place of TVM's own legalisations.

TVM's maximum of two numbers is the second one if one of them is NaN, and its maximum of a row begins with the least
finite number. PyTorch and ONNX return NaN if an element is NaN, and begin with minus infinity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tvm import te, tirx, topi

from loopwright.codegen.extremes import infinity, is_later, larger, smaller
from loopwright.codegen.graph.rewriting import dtype_of, scalar_of
from loopwright.codegen.program.broadcasting import at, broadcast

_Legalization = Callable[[Any, Any], Any]
_Pair = Callable[[Any, Any], Any]


def _limited(value: Any, low: Any, high: Any) -> Any:
    """Return a value within constants; comparisons with NaN are false."""
    value = value if low is None else tirx.Select(value < low, low, value)
    return value if high is None else tirx.Select(value > high, high, value)


def _limits(call: Any) -> tuple[float, float]:
    """Return the least and the greatest result of an activation or of a clip."""
    if call.op.name == "relax.nn.relu":
        return 0.0, math.inf
    if call.op.name == "relax.nn.relu6":
        return 0.0, 6.0
    return float(call.args[1].value), float(call.args[2].value)


def _is_float(value: Any) -> bool:
    return "float" in str(dtype_of(value))


def _name(call: Any) -> str:
    return str(call.op.name).split(".")[-1]


def _usual(builder: Any, call: Any) -> Any:
    return call.op.get_attr("FLegalize")(builder, call)


def _clip(builder: Any, call: Any) -> Any:
    if not _is_float(call):
        return _usual(builder, call)
    low, high = (None if math.isinf(limit) else tirx.const(limit, dtype_of(call)) for limit in _limits(call))

    def clip(data: te.Tensor) -> te.Tensor:
        return te.compute(data.shape, lambda *place: _limited(data(*place), low, high), name="compute")

    return builder.call_te(clip, call.args[0], primfunc_name_hint=_name(call))


def _elementwise(pair: _Pair) -> _Legalization:
    def legalize(builder: Any, call: Any) -> Any:
        if not _is_float(call):
            return _usual(builder, call)

        def extreme(left: te.Tensor, right: te.Tensor) -> te.Tensor:
            shape = broadcast([left.shape, right.shape])
            return te.compute(shape, lambda *place: pair(at(left, place), at(right, place)), name="extreme")

        return builder.call_te(extreme, *call.args, primfunc_name_hint=_name(call))

    return legalize


def reducer(pair: _Pair, sign: int) -> Any:
    """Return the reduction of elements by `larger` or `smaller`, from the infinity of a sign."""
    return te.comm_reducer(pair, lambda dtype: infinity(dtype, sign), name="extreme")


def _reduction(pair: _Pair, sign: int) -> _Legalization:
    reduce = reducer(pair, sign)

    def legalize(builder: Any, call: Any) -> Any:
        if not _is_float(call):
            return _usual(builder, call)

        def extreme(data: te.Tensor) -> te.Tensor:
            shape, places, reduced = _reduced(data, call.attrs.axis, bool(call.attrs.keepdims))
            return te.compute(shape, lambda *place: reduce(data(*places(place)), axis=reduced), name="extreme")

        return builder.call_te(extreme, call.args[0], primfunc_name_hint=_name(call))

    return legalize


def _reduced(data: te.Tensor, axis: Any, keepdims: bool) -> tuple[list[Any], Any, list[Any]]:
    """Return the shape of a reduction, the function of a place in it to one in the data, and the reduced axes."""
    rank = len(data.shape)
    axes = range(rank) if axis is None else [int(each) % rank for each in axis]
    reduced = {each: te.reduce_axis((0, data.shape[each]), f"k{each}") for each in sorted(axes)}
    shape = [
        1 if each in reduced else extent for each, extent in enumerate(data.shape) if keepdims or each not in reduced
    ]

    def places(place: Any) -> list[Any]:
        kept = iter(each for axis, each in enumerate(place) if not (keepdims and axis in reduced))
        return [reduced[each] if each in reduced else next(kept) for each in range(rank)]

    return shape, places, list(reduced.values())


def _place(sign: int) -> _Legalization:
    """Return a legalisation of argmax or argmin: the first of equal elements, and the first NaN."""

    def pair(left: Any, right: Any) -> Any:
        later = is_later(left, right, sign)
        return tuple(tirx.Select(later, of_right, of_left) for of_left, of_right in zip(left, right, strict=True))

    reduce = te.comm_reducer(
        pair, lambda index, value: (tirx.max_value(str(index)), infinity(value, -sign)), name="place"
    )

    def legalize(builder: Any, call: Any) -> Any:
        def place_of(data: te.Tensor) -> te.Tensor:
            axis = call.attrs.axis
            if data.dtype == "bfloat16":  # TVM cannot bind such a number to a variable
                data = topi.cast(data, "float32")
            if axis is None and len(data.shape) != 1:
                data = topi.reshape(data, [math.prod(data.shape)])
            axes = [0 if axis is None else int(axis)]
            shape, places, reduced = _reduced(data, axes if len(data.shape) else [], bool(call.attrs.keepdims))
            found = te.compute(
                shape,
                lambda *place: reduce((tirx.Cast("int64", reduced[0]), data(*places(place))), axis=reduced),
                name="place_and_value",
            )
            return te.compute(shape, lambda *place: found[0](*place), name="place")

        return builder.call_te(place_of, call.args[0], primfunc_name_hint=_name(call))

    return legalize


def _max_pool(builder: Any, call: Any) -> Any:
    attrs, layout = call.attrs, str(call.attrs.layout)
    if not _is_float(call) or not layout.isupper():
        return _usual(builder, call)
    reduce, axes = reducer(larger, -1), [layout.index(letter) for letter in layout if letter not in "NC"]
    sizes, strides, dilation = (
        [int(each) for each in attribute] for attribute in (attrs.pool_size, attrs.strides, attrs.dilation)
    )
    padding = [int(each) for each in attrs.padding]

    def max_pool(data: te.Tensor) -> te.Tensor:
        before, after, shape = ([0] * len(data.shape) for _ in range(3))
        shape = list(data.shape)
        for number, axis in enumerate(axes):
            before[axis], after[axis] = padding[number], padding[len(axes) + number]
            span = dilation[number] * (sizes[number] - 1) + 1
            free = data.shape[axis] + before[axis] + after[axis] - span
            shape[axis] = tirx.floordiv(free + (strides[number] - 1 if attrs.ceil_mode else 0), strides[number]) + 1
            after[axis] += strides[number] - 1 if attrs.ceil_mode else 0
        least = infinity(data.dtype, -1)
        padded = topi.nn.pad(data, before, after, least, name="pad_temp") if any((*before, *after)) else data
        window = {axis: te.reduce_axis((0, size), "rv") for axis, size in zip(axes, sizes, strict=True)}

        def element(*place: Any) -> Any:
            where = list(place)
            for axis, stride, step in zip(axes, strides, dilation, strict=True):
                where[axis] = place[axis] * stride + window[axis] * step
            return reduce(padded(*where), axis=list(window.values()))

        return te.compute(shape, element, name="pool_max")

    return builder.call_te(max_pool, call.args[0], primfunc_name_hint=_name(call))


def _test(builder: Any, call: Any) -> Any:
    """Legalise a test for NaN or infinities, which TVM does not have for bfloat16."""
    if dtype_of(call.args[0]) != "bfloat16":
        return _usual(builder, call)
    test = getattr(tirx, _name(call))

    def tested(data: te.Tensor) -> te.Tensor:
        return te.compute(data.shape, lambda *place: test(tirx.Cast("float32", data(*place))), name="test")

    return builder.call_te(tested, call.args[0], primfunc_name_hint=_name(call))


def _full(builder: Any, call: Any) -> Any:
    """Legalise a tensor of infinities or NaN, for which TVM's own legalisation raises TypeError."""
    value, shape = scalar_of(call.args[1]), call.ty.shape
    if value is None or math.isfinite(value) or not all(isinstance(extent, tirx.IntImm) for extent in shape):
        return _usual(builder, call)
    constant = tirx.const(value, dtype_of(call))
    return builder.call_te(lambda: te.compute(shape, lambda *_: constant, name="full"), primfunc_name_hint=_name(call))


LEGALIZATIONS: dict[str, _Legalization] = {
    **dict.fromkeys(("relax.clip", "relax.nn.relu", "relax.nn.relu6"), _clip),
    **{f"relax.nn.max_pool{rank}d": _max_pool for rank in (1, 2, 3)},
    "relax.argmax": _place(1),
    "relax.argmin": _place(-1),
    **dict.fromkeys(("relax.full", "relax.full_like"), _full),
    **{f"relax.is{name}": _test for name in ("finite", "inf", "nan")},
    "relax.max": _reduction(larger, -1),
    "relax.maximum": _elementwise(larger),
    "relax.min": _reduction(smaller, 1),
    "relax.minimum": _elementwise(smaller),
}
