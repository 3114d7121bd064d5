"""Writes docs/benchmarks/scale.md from the kept results.

.venv/bin/python -m benchmarks.scale.report [--pack]
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser
from benchmarks.scale.sharing import LARGE, SMALL, over

NAME = "scale"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.scale.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(figures: dict[str, Any]) -> str:
    shared = figures["sharing"]
    alone = shared["alone_s"]
    return Template(TEMPLATE.read_text()).substitute(
        jobs=figures["jobs"],
        measurement=f"{figures['measurement_s']:g}",
        machine=figures["machine"],
        load=f"{figures['load_before']:.1f}",
        devices="\n".join(
            f"| {name} | {row['devices']} | {100 * row['busy']:.0f} % | {row['trials_per_s']:.0f} | "
            f"{row['search_ms']:.1f} | {row['rest_ms']:.1f} | {row['cores']:.2f} |"
            for name, rows in figures["databases"].items()
            for row in rows
        ),
        small=SMALL,
        large=f"{LARGE:,}",
        count=len(shared["at_once_s"]),
        sharing="\n".join(
            [
                _row("alone", alone, alone),
                _row("one after another beside the large one", shared["one_by_one_s"], alone),
                _row("all at once beside the large one", shared["at_once_s"], alone),
                _row("known already, beside the large one", shared["answered_s"], alone),
            ]
        ),
        shared=shared["large_trials"],
        cancel=f"{shared['cancel_s']:.1f}",
        results=kept(NAME).name,
    )


def _row(what: str, seconds: list[float], alone: list[float]) -> str:
    multiples = over(seconds, alone)
    return (
        f"| {what} | {statistics.median(seconds):.1f} | {min(seconds):.1f} to {max(seconds):.1f} | "
        f"{statistics.median(multiples):.1f} | {max(multiples):.1f} |"
    )


if __name__ == "__main__":
    main()
