"""Writes docs/benchmarks/database.md from the kept results.

.venv/bin/python -m benchmarks.database.report [--pack]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser

NAME = "database"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
_SPREAD = ("p50_ms", "p99_ms")


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.database.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(figures: dict[str, Any]) -> str:
    databases = figures["databases"]
    names = list(databases)
    return Template(TEMPLATE.read_text()).substitute(
        trials=f"{figures['trials']:,}",
        workloads=f"{figures['workloads']:,}",
        jobs=f"{figures['jobs']:,}",
        machine=figures["machine"],
        load=f"{figures['load_before']:.1f}",
        heads=" | ".join(f"{name} p50 | p99" for name in names),
        rule="---:|" * (2 * len(names) + 1),
        reads=_rows(databases, "questions"),
        writes=_rows(databases, "writes"),
        sizes="\n".join(
            f"| {name} | {found['bytes'] / 1e9:.2f} GB | {found['seed_seconds']:.0f} s |"
            for name, found in databases.items()
        ),
        results=kept(NAME).name,
    )


def _rows(databases: dict[str, Any], part: str) -> str:
    lines = []
    for what, first in next(iter(databases.values()))[part].items():
        measured = [f"{found[part][what][key]:.1f}" for found in databases.values() for key in _SPREAD]
        lines.append(f"| {what} | {' | '.join(measured)} | {first['allowed_ms']:,.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
