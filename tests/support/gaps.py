"""How long nothing was measured after a blow: recorded by tests as properties, and shown at the end as a table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping

_PREFIX = "gap after "


def record(record_property: Callable[[str, object], None], database: str, gaps: Mapping[str, float]) -> None:
    """Record the longest time without a finished trial after each blow, in seconds."""
    for blow, seconds in gaps.items():
        record_property(f"{_PREFIX}{blow}, {database}", seconds)


def table(properties: Iterable[tuple[str, object]]) -> list[str]:
    """Return a line for each blow and database, of the gaps among the properties of all tests."""
    found: dict[str, list[float]] = {}
    for name, value in properties:
        if name.startswith(_PREFIX) and isinstance(value, float):
            found.setdefault(name.removeprefix(_PREFIX), []).append(value)
    lines = [f"{blow:28} {len(gaps):6} {statistics.median(gaps):9.1f} {max(gaps):9.1f}" for blow, gaps in found.items()]
    return [f"{'after':28} {'blows':>6} {'median s':>9} {'longest s':>9}", *lines] if lines else []
