"""Writes docs/benchmarks/gates.md from the kept results.

.venv/bin/python -m benchmarks.gates.report [--pack]
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser
from benchmarks.search.tables import table

NAME = "gates"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
REQUIRED = 0.01
"""Share of runs that may find a regression where there is none."""


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.gates.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(found: dict[str, Any]) -> str:
    """Return the report of the benchmark's figures."""
    runs, noted = found["runs"], found["conditions"]
    alarms = sum(run["verdict"] == "regression" for run in runs)
    names = list(dict.fromkeys(run["workload"] for run in runs))
    rows = [_row(name, [run for run in runs if run["workload"] == name]) for name in names]
    reached = "reached" if alarms / len(runs) < REQUIRED else "**missed**"
    return Template(TEMPLATE.read_text()).substitute(
        bound=f"{found['bound'] - 1:.0%}",
        conditions=f"{noted['cpu']}, {noted['threads']} threads, {noted['date']}",
        noise="disturbed by bursts of work on all cores" if found["noise"] else "otherwise idle",
        runs=len(runs),
        alarms=alarms,
        verdict=(
            f"False alarms: {alarms} of {len(runs)} runs ({alarms / len(runs):.2%}); required: less than "
            f"{REQUIRED:.0%}, {reached}"
        ),
        table=table(
            [
                "workload",
                "runs",
                "false alarms",
                "unclear",
                "rounds, median (maximum)",
                "seconds per run, median",
                "ratio, 5th to 95th percentile",
            ],
            [*rows, _row("all", runs)],
        ),
        results=kept(NAME).name,
    )


def _row(name: str, runs: list[dict[str, Any]]) -> list[str]:
    verdicts = Counter(run["verdict"] for run in runs)
    rounds = [run["rounds"] for run in runs]
    ratios = sorted(run["slowdown"][0] for run in runs)
    low, high = (ratios[round(share * (len(ratios) - 1))] for share in (0.05, 0.95))
    return [
        name,
        str(len(runs)),
        str(verdicts["regression"]),
        str(verdicts["unclear"]),
        f"{statistics.median(rounds):g} ({max(rounds)})",
        f"{statistics.median(run['seconds'] for run in runs):.1f}",
        f"{low:.3f} to {high:.3f}",
    ]


if __name__ == "__main__":
    main()
