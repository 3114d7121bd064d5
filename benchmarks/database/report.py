"""The report on the tuning database."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

_SPREAD = ("p50_ms", "p99_ms")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    databases = figures["databases"]
    return {
        "trials": f"{figures['trials']:,}",
        "workloads": f"{figures['workloads']:,}",
        "jobs": f"{figures['jobs']:,}",
        "reads": _rows("query", databases, "questions"),
        "writes": _rows("transaction", databases, "writes"),
        "sizes": table(
            ["database", "size", "time to fill"],
            (
                (name, f"{found['bytes'] / 1e9:.2f} GB", f"{found['seed_seconds']:.0f} s")
                for name, found in databases.items()
            ),
            right=True,
        ),
    }


def _rows(what: str, databases: dict[str, Any], part: str) -> str:
    heads = [what, *(head for name in databases for head in (f"{name} p50", "p99")), "limit of p99"]
    rows = []
    for asked, first in next(iter(databases.values()))[part].items():
        measured = [f"{found[part][asked][key]:.1f}" for found in databases.values() for key in _SPREAD]
        rows.append((asked, *measured, f"{first['allowed_ms']:,.0f}"))
    return table(heads, rows, right=True)


REPORT = Report("database", Path(__file__).with_name("report.md.in"), values)
