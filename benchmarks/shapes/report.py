"""The report on portfolios of shapes."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from loopwright.comparing.ratios import Ratio, paired

SLOWER = 0.97
"""An extent counts as slower if the whole interval of its ratio is below."""


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (found,) = lines
    models = found["models"]
    ratios = {model["name"]: _ratios(model) for model in models}
    all_ratios = [ratio for each in ratios.values() for ratio in each.values()]
    return {
        "largest": found["largest"],
        "trials": found["trials"],
        "compared": len(all_ratios),
        "slower": sum(ratio.high < SLOWER for ratio in all_ratios),
        "bound": f"{1 - SLOWER:.0%}",
        "summary": table(
            ["model", "buckets", "factor, geometric mean", "smallest factor", "slower"],
            [_row(model, ratios[model["name"]]) for model in models],
        ),
        "extents": table(["extent", *ratios], _extents(ratios)),
    }


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


REPORT = Report("shapes", Path(__file__).with_name("report.md.in"), values)
