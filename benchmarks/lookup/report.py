"""Writes docs/benchmarks/lookup.md from the kept results.

.venv/bin/python -m benchmarks.lookup.report [--pack]
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser

NAME = "lookup"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
ALLOWED = 2.0
"""Factor between the slowest and the fastest median."""


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.lookup.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(figures: dict[str, Any]) -> str:
    databases = figures["databases"]
    medians = [statistics.median(database["compile_seconds"]) for database in databases]
    return Template(TEMPLATE.read_text()).substitute(
        functions=figures["functions"],
        machine=figures["machine"],
        load=f"{figures['load']:.1f}",
        repeats=len(databases[0]["compile_seconds"]),
        factor=f"{max(medians) / min(medians):.2f}",
        allowed=f"{ALLOWED:g}",
        rows="\n".join(map(_row, databases)),
        results=kept(NAME).name,
    )


def _row(database: dict[str, Any]) -> str:
    compiles, requests = (
        [1e3 * seconds for seconds in database[name]] for name in ("compile_seconds", "request_seconds")
    )
    return (
        f"| {database['bests']:,} | 1 | {statistics.median(compiles):.0f} | {min(compiles):.0f} to {max(compiles):.0f} "
        f"| {statistics.median(requests):.1f} | {min(requests):.1f} to {max(requests):.1f} |"
    )


if __name__ == "__main__":
    main()
