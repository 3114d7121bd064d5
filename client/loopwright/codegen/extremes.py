"""The larger and the smaller one of two elements in TIR, which keep NaN: TVM's own are the second one if one is NaN."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import tvm_ffi
from tvm import tirx


def larger(left: Any, right: Any) -> Any:
    """Return the larger one of two elements, or NaN if one of them is."""
    return tirx.Select(tirx.any(left < right, _is_nan(right)), right, left)


def smaller(left: Any, right: Any) -> Any:
    """Return the smaller one of two elements, or NaN if one of them is."""
    return tirx.Select(tirx.any(left > right, _is_nan(right)), right, left)


def is_later(left: Any, right: Any, sign: int) -> Any:
    """Return whether the second one of two elements with their places is taken, as (place, value).

    It is if its value is larger, or smaller for a negative sign, or NaN; and of equal values, if it comes first. The
    result of a reduction by this choice depends on no order.
    """
    beyond = left[1] < right[1] if sign > 0 else left[1] > right[1]
    same = left[1] == right[1]
    if "float" in str(left[1].ty):
        missing, other = tirx.isnan(left[1]), tirx.isnan(right[1])
        beyond = tirx.any(beyond, tirx.all(other, tirx.Not(missing)))
        same = tirx.any(same, tirx.all(other, missing))
    return tirx.any(beyond, tirx.all(same, right[0] < left[0]))


def infinity(dtype: Any, sign: int) -> Any:
    """Return the number beyond all of a dtype: infinity, or the greatest or the least integer."""
    if "float" in str(dtype):
        return tirx.FloatImm(str(dtype), sign * math.inf)
    return tirx.max_value(str(dtype)) if sign > 0 else tirx.min_value(str(dtype))


def is_larger(value: Any) -> bool:
    """Return whether an expression is `larger` of its two values."""
    return _is(larger, value)


def keeps_nan(value: Any) -> bool:
    """Return whether an expression is `larger` or `smaller` of its two values."""
    return _is(larger, value) or _is(smaller, value)


def keeps_place(place: Any, value: Any) -> bool:
    """Return whether two expressions are the place and the value of an element that `is_later` chooses."""
    if not (isinstance(place, tirx.Select) and isinstance(value, tirx.Select)):
        return False
    left, right = (place.false_value, value.false_value), (place.true_value, value.true_value)
    return bool(tvm_ffi.structural_equal(place.condition, value.condition)) and any(
        tvm_ffi.structural_equal(place.condition, is_later(left, right, sign)) for sign in (1, -1)
    )


def _is(pair: Callable[[Any, Any], Any], value: Any) -> bool:
    if not isinstance(value, tirx.Select) or "float" not in str(value.ty.dtype):
        return False
    return bool(tvm_ffi.structural_equal(value, pair(value.false_value, value.true_value)))


def _is_nan(value: Any) -> Any:
    """Return whether an element of a dtype of floating-point numbers is NaN."""
    return tirx.isnan(tirx.Cast("float32", value) if str(value.ty) == "bfloat16" else value)
