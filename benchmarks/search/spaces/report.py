"""The report on design spaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.search.runs import NEAR, Cell, cells, packed
from benchmarks.spread import geomean

ARMS = ("A", "T", "C")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    found = cells(lines)
    run = found[0].curves["A"]
    return {
        "trials": run.trials,
        "seed": run.seed,
        "machine": run.machine,
        "near": f"{NEAR:.0%}",
        "times": times(found),
        "qualities": qualities(found),
        "rates": rates(found),
    }


def _goal(cell: Cell) -> float:
    return cell.curves["A"].final / NEAR


def _speedup(cell: Cell, arm: str) -> float:
    return cell.curves["A"].seconds_to(_goal(cell)) / cell.curves[arm].seconds_to(_goal(cell))


def times(cells: list[Cell]) -> str:
    """Return the seconds to the goal by arm, and the factors against A."""
    rows = []
    for cell in cells:
        seconds = [cell.curves[arm].reaches(_goal(cell)) for arm in ARMS]
        shown = ["-" if each is None else f"{each:.1f}" for each in seconds]
        rows.append((cell.workload, *shown, *(f"{_speedup(cell, arm):.1f}x" for arm in ARMS[1:])))
    means = [geomean(_speedup(cell, arm) for cell in cells) for arm in ARMS[1:]]
    rows.append(("geometric mean", "", "", "", *(f"{mean:.1f}x" for mean in means)))
    return table(["workload", "A, s", "T, s", "C, s", "T against A", "C against A"], rows)


def qualities(cells: list[Cell]) -> str:
    """Return the final latencies by arm, and the qualities against A."""
    rows = []
    for cell in cells:
        latencies = [f"{cell.curves[arm].final * 1e6:.1f} µs" for arm in ARMS]
        rows.append((cell.workload, *latencies, *(f"{cell.quality(arm):.2f}x" for arm in ARMS[1:])))
    means = [geomean(cell.quality(arm) for cell in cells) for arm in ARMS[1:]]
    rows.append(("geometric mean", "", "", "", *(f"{mean:.2f}x" for mean in means)))
    return table(["workload", "A", "T", "C", "T against A", "C against A"], rows)


def rates(cells: list[Cell]) -> str:
    """Return the trials a second by arm."""
    runs = [(cell.workload, [cell.curves[arm] for arm in ARMS]) for cell in cells]
    rows = [(workload, *(f"{run.trials / run.seconds:.1f}" for run in each)) for workload, each in runs]
    return table(["workload", "A", "T", "C"], rows)


REPORT = Report("spaces", Path(__file__).with_name("report.md.in"), values, packed=packed)
