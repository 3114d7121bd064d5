"""Quantisation of one element in TIR."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx


def whole(quotient: Any, zero: Any, dtype: str) -> Any:
    """Return the integer next to a quotient, plus a zero point unless that is None, within a dtype; as float32.

    Of two integers it is the even one, and of NaN the least that the dtype has.
    """
    value = te.nearbyint(quotient)
    value = value if zero is None else value + zero
    low, high = (tirx.const(float(limit(dtype).value), "float32") for limit in (tirx.min_value, tirx.max_value))
    value = tirx.Select(value > low, value, low)  # a comparison with NaN is false
    return tirx.Select(value < high, value, high)
