"""Writes docs/benchmarks/shapes.md from the kept results.

.venv/bin/python -m benchmarks.shapes.report [--pack]
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser
from benchmarks.search.tables import table
from loopwright.comparing.ratios import Ratio, paired

NAME = "shapes"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
SLOWER = 0.97
"""An extent counts as slower if the whole interval of its ratio is below."""


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.shapes.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(found: dict[str, Any]) -> str:
    """Return the report of the benchmark's figures."""
    noted, models = found["conditions"], found["models"]
    ratios = {model["name"]: _ratios(model) for model in models}
    all_ratios = [ratio for each in ratios.values() for ratio in each.values()]
    slower = sum(ratio.high < SLOWER for ratio in all_ratios)
    return Template(TEMPLATE.read_text()).substitute(
        largest=found["largest"],
        trials=found["trials"],
        conditions=f"{noted['cpu']}, {noted['threads']} threads, {noted['date']}",
        compared=len(all_ratios),
        slower=slower,
        bound=f"{1 - SLOWER:.0%}",
        summary=table(
            ["model", "buckets", "factor, geometric mean", "smallest factor", "slower"],
            [_row(model, ratios[model["name"]]) for model in models],
        ),
        extents=table(["extent", *ratios], _extents(ratios)),
        results=kept(NAME).name,
    )


def _ratios(model: dict[str, Any]) -> dict[int, Ratio]:
    """Return the untuned function's time over the portfolio's, by extent."""
    return {int(extent): paired([untuned], [tuned]) for extent, (untuned, tuned) in model["extents"].items()}


def _row(model: dict[str, Any], ratios: dict[int, Ratio]) -> list[str]:
    least = min(ratios, key=lambda extent: ratios[extent].value)
    return [
        model["name"],
        ", ".join(map(str, model["buckets"])),
        f"{statistics.geometric_mean(ratio.value for ratio in ratios.values()):.2f}",
        f"{ratios[least]} at {least}",
        f"{sum(ratio.high < SLOWER for ratio in ratios.values())} of {len(ratios)}",
    ]


def _extents(ratios: dict[str, dict[int, Ratio]]) -> list[list[str]]:
    extents = next(iter(ratios.values()))
    return [[str(extent), *(str(each[extent]) for each in ratios.values())] for extent in extents]


if __name__ == "__main__":
    main()
