"""The report on the list of best schedules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

PAGE = 50
"""Rows of a page."""
ALLOWED_MS = 200.0
"""Of a page's 95th percentile."""
ALLOWED_VIEW_MS = 1000.0
"""Of the first view's 95th percentile."""
_SPREAD = ("p50_ms", "p95_ms")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    databases = figures["databases"]
    pages = [spread for database in databases.values() for spread in database["questions"].values()]
    rows = [
        (what, *(f"{database['questions'][what][key]:.1f}" for database in databases.values() for key in _SPREAD))
        for what in next(iter(databases.values()))["questions"]
    ]
    views = [
        (name, *(f"{database['first_view'][key]:.0f} ms" for key in _SPREAD), f"{database['seed_seconds']:.0f} s")
        for name, database in databases.items()
    ]
    heads = ["request", *(f"{name} {percentile}" for name in databases for percentile in ("p50", "p95"))]
    return {
        "workloads": f"{figures['workloads']:,}",
        "page": PAGE,
        "repeats": figures["repeats"],
        "allowed": f"{ALLOWED_MS:.0f}",
        "slowest_p95": f"{max(spread['p95_ms'] for spread in pages):.0f}",
        "slowest_p50": f"{max(spread['p50_ms'] for spread in pages):.0f}",
        "pages": table(heads, rows, right=True),
        "allowed_view": f"{ALLOWED_VIEW_MS:.0f}",
        "views": table(["database", "p50", "p95", "time to fill"], views, right=True),
    }


REPORT = Report("leaderboard", Path(__file__).with_name("report.md.in"), values)
