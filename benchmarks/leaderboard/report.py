"""Writes docs/benchmarks/leaderboard.md from the kept results.

.venv/bin/python -m benchmarks.leaderboard.report [--pack]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser

NAME = "leaderboard"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
PAGE = 50
"""Rows of a page."""
ALLOWED_MS = 200.0
"""Of a page's 95th percentile."""
ALLOWED_VIEW_MS = 1000.0
"""Of the first view's 95th percentile."""


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.leaderboard.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(figures: dict[str, Any]) -> str:
    databases = figures["databases"]
    pages = [spread for database in databases.values() for spread in database["questions"].values()]
    rows = [
        (what, *(f"{database['questions'][what][key]:.1f}" for database in databases.values() for key in SPREAD))
        for what in next(iter(databases.values()))["questions"]
    ]
    views = [
        (name, *(f"{database['first_view'][key]:.0f} ms" for key in SPREAD), f"{database['seed_seconds']:.0f} s")
        for name, database in databases.items()
    ]
    return Template(TEMPLATE.read_text()).substitute(
        workloads=f"{figures['workloads']:,}",
        page=PAGE,
        repeats=figures["repeats"],
        machine=figures["machine"],
        load=f"{figures['load_before']:.1f}",
        allowed=f"{ALLOWED_MS:.0f}",
        slowest_p95=f"{max(spread['p95_ms'] for spread in pages):.0f}",
        slowest_p50=f"{max(spread['p50_ms'] for spread in pages):.0f}",
        heads=" | ".join(f"{name} p50 | {name} p95" for name in databases),
        rule="---:|" * (2 * len(databases)),
        pages=_rows(rows),
        allowed_view=f"{ALLOWED_VIEW_MS:.0f}",
        views=_rows(views),
        results=kept(NAME).name,
    )


SPREAD = ("p50_ms", "p95_ms")


def _rows(rows: list[tuple[str, ...]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    main()
