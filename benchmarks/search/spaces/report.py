"""The report on design spaces, with some of the tables of the report on the search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report
from benchmarks.search.report import Comparison, quality, rates, seconds_by_cell, speedups
from benchmarks.search.runs import NEAR, cells, packed

ARMS = ("A", "T", "C")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    found = cells(lines)
    run = found[0].curves["A"]
    results = Comparison(run.trials, len(found), dict.fromkeys(ARMS, ""), found)
    return {
        "trials": run.trials,
        "seed": run.seed,
        "machine": run.machine,
        "near": f"{NEAR:.0%}",
        "seconds": seconds_by_cell(results),
        "speedups": speedups(results),
        "qualities": quality(results),
        "rates": rates(results),
    }


REPORT = Report("spaces", Path(__file__).with_name("report.md.in"), values, packed=packed)
