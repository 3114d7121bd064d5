"""Numbers as people read them: three digits and the unit that suits."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from loopwright.schemas import Range


def latency(us: float | None) -> str:
    """Return a latency in microseconds as text: ``7.79 µs``, ``1.50 ms``; ``-`` for None."""
    if us is None:
        return "-"
    if us < 1:
        return _three_digits(us * 1e3, "ns")
    if us < 999.5:
        return _three_digits(us, "µs")
    if us < 999.5e3:
        return _three_digits(us / 1e3, "ms")
    return _three_digits(us / 1e6, "s")


_MICROSECONDS = {"ns": 1e-3, "us": 1.0, "µs": 1.0, "ms": 1e3, "s": 1e6}


def microseconds(text: str) -> float:
    """Read a latency with its unit, ``1.5ms``, or in microseconds without one. Raise ValueError."""
    match = re.fullmatch(r"\s*([\d.]+)\s*([a-zµ]*)\s*", text)
    unit = _MICROSECONDS.get(match[2] or "us") if match else None
    if match is None or unit is None:
        raise ValueError(f"{text!r} is not of the form 120us, 1.5ms or 120, which is in microseconds")
    return float(match[1]) * unit


def ratio(value: float | None, interval: Range | None = None) -> str:
    """Return a speedup as text: ``2.7x``, ``18x``, ``140x``; ``-`` for None.

    It has two digits, as differences of some percent are noise. With an interval, it has as many as the interval bears,
    at least one and at most three: ``2.73x`` for 2.72 to 2.74, ``3x`` for 2 to 5.
    """
    if value is None:
        return "-"
    decimals = _decimals(10 * value) if interval is None else min(_decimals(value), _borne(value, interval))
    return f"{round(value, decimals):.{max(0, decimals)}f}x"


def interval_words(interval: Range) -> str:
    """Return an interval with the digits of its speedup: ``2.4x to 3.1x``, ``over 0x`` without an upper end."""
    low = ratio(interval.low, interval)
    return f"over {low}" if interval.high is None else f"{low} to {ratio(interval.high, interval)}"


def _borne(value: float, interval: Range) -> int:
    """Return the decimals of which the last is as large as half of the interval, or those of the first digit."""
    first = -math.floor(math.log10(value)) if value > 0 else 0
    if interval.high is None:
        return first
    half = (interval.high - interval.low) / 2
    return max(first, -math.floor(math.log10(half))) if half > 0 else _decimals(value)


def plural(count: int, noun: str) -> str:
    """``1 trial``, ``2 trials``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _three_digits(value: float, unit: str) -> str:
    return f"{value:.{_decimals(value)}f} {unit}"


def _decimals(value: float) -> int:
    """Return those of three digits."""
    return 0 if value >= 99.95 else 1 if value >= 9.995 else 2
