"""The report on the search: requirements, tables and plots."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.requirement import Requirement, missed, verdicts
from benchmarks.search import plots
from benchmarks.search.runs import NEAR, PYTORCH, REFERENCE, Cell, by_workload, cells, overall, packed
from benchmarks.spread import geomean

SMALL = 2e-4
"""Seconds a call below which a kernel is small."""
PAIRS = ("C A", "C A1", "T A", "C T", "W A", "W C", "X A", "X C", "S C", "R A", "A1 A")
"""Arms whose times are compared, if they have run."""
_TIMES = (
    ("cold, time to 95 % of A's final quality, against A", "C", "A", 5, 10),
    ("cold, the same against A1", "C", "A1", 2, 4),
    ("warm, time to 95 % of A's final quality, against A", "W", "A", 20, 50),
)


@dataclass(frozen=True)
class Comparison:
    """Complete cells in the order of the plan's workloads, then of the seeds; the arms with a description each."""

    trials: int
    planned: int
    arms: dict[str, str]
    cells: list[Cell]

    @classmethod
    def of(cls, lines: Sequence[dict[str, Any]]) -> Comparison:
        (plan,) = (line for line in lines if line["kind"] == "plan")
        found = cells(lines)
        found.sort(key=lambda cell: (plan["workloads"].index(cell.workload), cell.seed))
        return cls(plan["trials"], len(plan["workloads"]) * len(plan["seeds"]), plan["arms"], found)

    @property
    def workloads(self) -> dict[str, list[Cell]]:
        """Cells by workload."""
        found: dict[str, list[Cell]] = defaultdict(list)
        for cell in self.cells:
            found[cell.workload].append(cell)
        return found


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times earlier one arm reached a goal than another.

    Attributes:
        run_charged: If the arm never reached the goal, it is charged the time of its whole run.
        missed: Whether it never did.
    """

    run_charged: float
    missed: bool

    @classmethod
    def of(cls, cell: Cell, arm: str, other: str, share: float) -> Speedup:
        """Compare the times to a share of the reference's final quality."""
        goal = cell.curves[REFERENCE].final / share
        ours, theirs = cell.curves[arm], cell.curves[other]
        return cls(theirs.seconds_to(goal) / ours.seconds_to(goal), ours.reaches(goal) is None)

    @property
    def strict(self) -> float:
        """The speedup if an arm that missed the goal is charged at least the other arm's time."""
        return min(1.0, self.run_charged) if self.missed else self.run_charged


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    results = Comparison.of(lines)
    found = list(requirements(results))
    return {
        "trials": results.trials,
        "cells": len(results.cells),
        "planned": results.planned,
        "arms": arms(results),
        "machines": machines(results),
        "requirements": verdicts(found),
        "missed": missed(found),
        "small_kernel_rates": small_kernel_rates(results),
        "speedups": speedups(results),
        "seconds_by_cell": seconds_by_cell(results),
        "quality": quality(results),
        "rates": rates(results),
        "plots": "\n".join(
            f"![{workload}: quality of the best so far by arm](search/{workload}.png)" for workload in results.workloads
        ),
    }


def requirements(results: Comparison) -> Iterator[Requirement]:
    for what, arm, other, must, aim in _TIMES:
        if {arm, other} <= set(results.arms):
            measured = overall((cell, Speedup.of(cell, arm, other, NEAR).run_charged) for cell in results.cells)
            yield Requirement(what, must, aim, measured, f"{measured:.1f}x", unit="x")
    better = overall((cell, cell.quality("C")) for cell in results.cells)
    what = f"cold, final quality after {results.trials} trials, against A"
    yield Requirement(what, 1.10, 1.30, better, f"{better:.2f}x", unit="x")
    if here := [rate for rates in rates_by_machine(results).values() for rate in rates]:
        what, median = f"cold, trials a second on kernels under {SMALL * 1e6:.0f} µs, median", statistics.median(here)
        yield Requirement(what, 4, 10, median, f"{median:.1f}/s", unit="/s")


def rates_by_machine(results: Comparison) -> dict[str, list[float]]:
    """Return trials a second of the cold runs on small kernels, by machine. Unlike a ratio, a rate depends on it."""
    found: dict[str, list[float]] = defaultdict(list)
    for cell in results.cells:
        if cell.curves[REFERENCE].final < SMALL:
            run = cell.curves["C"]
            found[run.machine].append(run.trials / run.seconds)
    return dict(sorted(found.items()))


def arms(results: Comparison) -> str:
    rows = [(arm, what, sum(arm in cell.curves for cell in results.cells)) for arm, what in results.arms.items()]
    return table(["arm", "what", "runs"], rows)


def machines(results: Comparison) -> str:
    runs = [next(iter(cell.curves.values())) for cell in results.cells]
    rows = [(*key, count) for key, count in Counter((run.machine, run.code) for run in runs).items()]
    return table(["machine", "code of search and workers", "cells"], rows)


def small_kernel_rates(results: Comparison) -> str:
    rows = [
        (machine, len(rates), f"{statistics.median(rates):.1f}", f"{min(rates):.1f}", f"{max(rates):.1f}")
        for machine, rates in rates_by_machine(results).items()
    ]
    return table(["machine", "runs", "median", "slowest", "fastest"], rows)


def speedups(results: Comparison) -> str:
    rows = []
    for arm, other in (pair.split() for pair in PAIRS if set(pair.split()) <= set(results.arms)):
        for share in (NEAR, 1.0):
            found = [(cell, Speedup.of(cell, arm, other, share)) for cell in results.cells]
            ratios = by_workload((cell, speedup.run_charged) for cell, speedup in found)
            worst = min(ratios, key=ratios.__getitem__)
            never = [cell.name for cell, speedup in found if speedup.missed]
            rows.append(
                (
                    f"{arm} against {other}",
                    f"{share:.0%}",
                    f"{geomean(ratios.values()):.1f}x",
                    f"{overall((cell, speedup.strict) for cell, speedup in found):.1f}x",
                    f"{ratios[worst]:.1f}x ({worst})",
                    f"{len(never)} of {len(found)}" + (f" ({', '.join(never)})" if never else ""),
                )
            )
    heads = ["arms", "goal", "speedup", "speedup, strict", "worst workload", "runs that missed the goal"]
    return table(heads, rows)


def seconds_by_cell(results: Comparison) -> str:
    def shown(cell: Cell, arm: str) -> str:
        seconds = cell.curves[arm].reaches(cell.curves[REFERENCE].final / NEAR)
        return "-" if seconds is None else f"{seconds:.1f}"

    rows = [(cell.name, *(shown(cell, arm) for arm in results.arms)) for cell in results.cells]
    return table(["cell", *results.arms], rows)


def quality(results: Comparison) -> str:
    others = [arm for arm in results.arms if arm != REFERENCE]
    rows: list[Sequence[str]] = []
    for workload, here in results.workloads.items():
        final = statistics.median(cell.curves[REFERENCE].final for cell in here)
        pytorch = [cell.curves[REFERENCE].final / cell.latencies[PYTORCH] for cell in here if PYTORCH in cell.latencies]
        ratios = [[cell.quality(arm) for cell in here] for arm in others]
        between = "{:.2f}x, {:.2f}x".format(*between_processes(here))
        rows.append((workload, f"{final * 1e6:.1f} µs", *map(spread, [*ratios, pytorch]), between))
    means = [f"{overall((cell, cell.quality(arm)) for cell in results.cells):.2f}x" for arm in others]
    rows.append(("geometric mean", "", *means, "", ""))
    return table(["workload", REFERENCE, *others, "PyTorch", "between processes"], rows)


def rates(results: Comparison) -> str:
    rows = []
    for arm in results.arms:
        runs = [cell.curves[arm] for cell in results.cells]
        per_second = [run.trials / run.seconds for run in runs]
        peak = max((run.peak_mb for run in runs if run.peak_mb is not None), default=None)
        figures = (statistics.median(per_second), min(per_second), max(per_second))
        rows.append((arm, *(f"{figure:.1f}" for figure in figures), "-" if peak is None else f"{peak:.0f} MB"))
    return table(["arm", "median", "slowest", "fastest", "peak memory"], rows)


def between_processes(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return slowest over fastest process of a program, by the processes' medians: median and 90th percentile."""
    medians = [
        [statistics.median(samples) for samples in by_process] for cell in cells for by_process in cell.samples.values()
    ]
    ratios = sorted(max(here) / min(here) for here in medians)
    return statistics.median(ratios), ratios[int(0.9 * len(ratios))]


def spread(values: Sequence[float]) -> str:
    """Return the geometric mean, with the least and the greatest if there are several values."""
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.2f}x"
    return f"{geomean(values):.2f}x ({min(values):.2f}, {max(values):.2f})"


def draw(lines: Sequence[dict[str, Any]], folder: Path) -> None:
    results = Comparison.of(lines)
    plots.draw(results.workloads, list(results.arms), folder)


REPORT = Report("search", Path(__file__).with_name("report.md.in"), values, draw, packed)
