"""Units of the wire: the database stores seconds, the REST interface answers with microseconds."""

from __future__ import annotations

from typing import overload

_MICROSECONDS_PER_SECOND = 1e6


@overload
def micros(seconds: float) -> float: ...
@overload
def micros(seconds: None) -> None: ...
@overload
def micros(seconds: float | None) -> float | None: ...
def micros(seconds: float | None) -> float | None:
    """Return a duration in microseconds; None stays None."""
    return None if seconds is None else seconds * _MICROSECONDS_PER_SECOND
