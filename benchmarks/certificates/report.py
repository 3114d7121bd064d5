"""The report on the repeatability of certificates."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.certificates.functions import SITTINGS
from benchmarks.report import Report, table
from tuner.races.sequential import estimate

REQUIRED = 0.95
"""Share of the speedups of another sitting that lie in the interval of the first."""
SMALL_SECONDS = 20e-6
MOST_ERROR = 0.1
"""Of the certified latency of a function that takes less than `SMALL_SECONDS`."""
_HEADS = (
    "function", "certified, µs", "plain timing, µs", "speedup (interval)", "grade", "again", "under load",
    "grade under load",
)  # fmt: skip


Sittings = dict[str, dict[str, Any]]
"""The lines of a function."""


def packed(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the last lines of the functions that were certified in all sittings."""
    for found in _by_function(lines).values():
        if len(found) == len(SITTINGS):
            yield from found.values()


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    by_function = _by_function(lines)
    every = list(by_function.values())
    small = [found["first"] for found in every if found["first"]["plain_s"] < SMALL_SECONDS]
    errors = [abs(line["best_s"] / line["plain_s"] - 1) for line in small]
    seconds = [line["seconds"] for line in lines]
    return {
        "count": len(every),
        "processes": SITTINGS["under load"],
        "restarted": _share(every, "again"),
        "loaded": _share(every, "under load"),
        "small": f"{sum(error < MOST_ERROR for error in errors)} of {len(errors)}, the largest {max(errors):.1%}",
        "drift": f"{statistics.median(abs(_change(found)) for found in every):.0%}",
        "by_round": f"{sum(map(_is_inside_by_round, every))} of {len(every)}",
        "seconds": f"{statistics.median(seconds):.1f}",
        "table": table(_HEADS, [_row(name, found) for name, found in by_function.items()], right=True),
    }


def _by_function(lines: Sequence[dict[str, Any]]) -> dict[str, Sittings]:
    found: dict[str, Sittings] = defaultdict(dict)
    for line in lines:
        found[line["function"]][line["sitting"]] = line
    return found


def _share(every: Sequence[Sittings], sitting: str) -> str:
    inside = sum(_is_inside(found, sitting) for found in every)
    reached = "reached" if inside / len(every) >= REQUIRED else "**missed**"
    return f"{inside} of {len(every)} ({inside / len(every):.0%}; required: {REQUIRED:.0%}, {reached})"


def _is_inside(found: Sittings, sitting: str) -> bool:
    return bool(found["first"]["low"] <= found[sitting]["speedup"] <= found["first"]["high"])


def _is_inside_by_round(found: Sittings) -> bool:
    """Return the same for the sitting after a new start, if each round of the first counted by itself."""
    baseline, best = found["first"]["samples"]
    interval = estimate([each / other for each, other in zip(baseline, best, strict=False)])
    return interval.low <= found["again"]["speedup"] <= interval.high


def _change(found: Sittings) -> float:
    """Return by how much a program's latency was another one after the new start."""
    return float(found["again"]["best_s"] / found["first"]["best_s"]) - 1


def _row(name: str, found: Sittings) -> list[str]:
    first, loaded = found["first"], found["under load"]
    others = [
        f"{found[sitting]['speedup']:.3g}" + ("" if _is_inside(found, sitting) else " (outside)")
        for sitting in ("again", "under load")
    ]
    return [
        name,
        f"{first['best_s'] * 1e6:.3g}",
        f"{first['plain_s'] * 1e6:.3g}",
        f"{first['speedup']:.3g} ({first['low']:.3g} to {first['high']:.3g})",
        first["grade"],
        *others,
        loaded["grade"],
    ]


REPORT = Report("certificates", Path(__file__).with_name("report.md.in"), values, packed=packed)
