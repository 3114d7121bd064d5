"""Quantisation of one element in TIR."""

from __future__ import annotations

from typing import Any

from tvm import te, tirx


def whole(quotient: Any, zero: Any, dtype: str) -> Any:
    """Return the integer next to a quotient, plus a zero point unless that is None, within a dtype; as float32.

    Of two integers it is the even one, and of NaN the least that the dtype has.
    """
    low, high = (float(limit(dtype).value) for limit in (tirx.min_value, tirx.max_value))
    least, most = (tirx.const(end, "float32") if zero is None else end - zero for end in (low, high))
    value = tirx.Select(quotient > least, quotient, least)  # a comparison with NaN is false
    value = te.nearbyint(tirx.Select(value < most, value, most))
    return value if zero is None else value + zero
