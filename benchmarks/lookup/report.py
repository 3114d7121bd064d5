"""The report on compiling against databases of different sizes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

ALLOWED = 2.0
"""Factor between the slowest and the fastest median."""
_HEADS = ("bests", "requests", "compilation: median, ms", "range, ms", "request: median, ms", "range, ms")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    databases = figures["databases"]
    medians = [statistics.median(database["compile_seconds"]) for database in databases]
    return {
        "functions": figures["functions"],
        "repeats": len(databases[0]["compile_seconds"]),
        "factor": f"{max(medians) / min(medians):.2f}",
        "allowed": f"{ALLOWED:g}",
        "rows": table(_HEADS, map(_row, databases), right=True),
    }


def _row(database: dict[str, Any]) -> tuple[object, ...]:
    compiles, requests = (
        [1e3 * seconds for seconds in database[name]] for name in ("compile_seconds", "request_seconds")
    )
    return (
        f"{database['bests']:,}",
        1,
        f"{statistics.median(compiles):.0f}",
        f"{min(compiles):.0f} to {max(compiles):.0f}",
        f"{statistics.median(requests):.1f}",
        f"{min(requests):.1f} to {max(requests):.1f}",
    )


REPORT = Report("lookup", Path(__file__).with_name("report.md.in"), values)
