"""The report on many devices and many jobs."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.scale.sharing import LARGE, SMALL, over

_DEVICES = ("database", "devices", "busy", "trials/s", "search ms", "rest ms", "cores used")
_SHARING = ("small jobs", "median s", "range s", "median multiple", "largest multiple")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    shared = figures["sharing"]
    rows = {
        "alone": "alone_s",
        "one after another beside the large one": "one_by_one_s",
        "all at once beside the large one": "at_once_s",
        "known already, beside the large one": "answered_s",
    }
    return {
        "jobs": figures["jobs"],
        "measurement": f"{figures['measurement_s']:g}",
        "devices": table(
            _DEVICES, ((name, *_device(row)) for name, rows in figures["databases"].items() for row in rows), right=True
        ),
        "small": SMALL,
        "large": f"{LARGE:,}",
        "count": len(shared["at_once_s"]),
        "sharing": table(
            _SHARING, ((what, *_job(shared[key], shared["alone_s"])) for what, key in rows.items()), right=True
        ),
        "shared": shared["large_trials"],
        "cancel": f"{shared['cancel_s']:.1f}",
    }


def _device(row: dict[str, Any]) -> tuple[object, ...]:
    busy, times = f"{100 * row['busy']:.0f} %", (f"{row[name]:.1f}" for name in ("search_ms", "rest_ms"))
    return row["devices"], busy, f"{row['trials_per_s']:.0f}", *times, f"{row['cores']:.2f}"


def _job(seconds: list[float], alone: list[float]) -> tuple[str, ...]:
    multiples = over(seconds, alone)
    return (
        f"{statistics.median(seconds):.1f}",
        f"{min(seconds):.1f} to {max(seconds):.1f}",
        f"{statistics.median(multiples):.1f}",
        f"{max(multiples):.1f}",
    )


REPORT = Report("scale", Path(__file__).with_name("report.md.in"), values)
