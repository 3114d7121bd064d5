"""The tables of the report, as Markdown."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.search.comparison import REFERENCE, Cell, Comparison, by_workload, geomean, overall
from benchmarks.search.requirements import NEAR, rates_by_machine
from benchmarks.search.run_record import PYTORCH

PAIRS = (
    ("C", "A"),
    ("C", "A1"),
    ("T", "A"),
    ("C", "T"),
    ("W", "A"),
    ("W", "C"),
    ("X", "A"),
    ("X", "C"),
    ("S", "C"),
    ("R", "A"),
    ("A1", "A"),
)
"""Arms whose times are compared, if they have run."""


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in lines)


def arms(results: Comparison) -> str:
    rows = [(arm, what, sum(arm in cell.curves for cell in results.cells)) for arm, what in results.plan.arms.items()]
    return table(["arm", "what", "runs"], rows)


def machines(results: Comparison) -> str:
    runs = [next(iter(cell.curves.values())).run for cell in results.cells]
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
    for arm, other in (pair for pair in PAIRS if set(pair) <= set(results.plan.arms)):
        for share in (NEAR, 1.0):
            found = [(cell, cell.speedup(arm, other, share)) for cell in results.cells]
            ratios = by_workload((cell, speedup.run_charged) for cell, speedup in found)
            worst = min(ratios, key=ratios.__getitem__)
            missed = [cell.name for cell, speedup in found if speedup.missed]
            rows.append(
                (
                    f"{arm} against {other}",
                    f"{share:.0%}",
                    f"{geomean(ratios.values()):.1f}x",
                    f"{overall((cell, speedup.strict) for cell, speedup in found):.1f}x",
                    f"{ratios[worst]:.1f}x ({worst})",
                    f"{len(missed)} of {len(found)}" + (f" ({', '.join(missed)})" if missed else ""),
                )
            )
    heads = ["arms", "goal", "speedup", "speedup, strict", "worst workload", "runs that missed the goal"]
    return table(heads, rows)


def seconds_by_cell(results: Comparison) -> str:
    def shown(cell: Cell, arm: str) -> str:
        seconds = cell.seconds_to(NEAR, arm)
        return "-" if seconds is None else f"{seconds:.1f}"

    names = list(results.plan.arms)
    return table(["cell", *names], [(cell.name, *(shown(cell, arm) for arm in names)) for cell in results.cells])


def quality(results: Comparison) -> str:
    others = [arm for arm in results.plan.arms if arm != REFERENCE]
    rows: list[Sequence[str]] = []
    for workload in results.workloads:
        here = results.of(workload)
        final = statistics.median(cell.reference.final for cell in here)
        pytorch = [cell.reference.final / cell.race.seconds[PYTORCH] for cell in here if PYTORCH in cell.race.seconds]
        ratios = [[cell.quality(arm) for cell in here] for arm in others]
        between = "{:.2f}x, {:.2f}x".format(*between_processes(here))
        rows.append((workload, f"{final * 1e6:.1f} µs", *map(spread, [*ratios, pytorch]), between))
    means = [f"{overall((cell, cell.quality(arm)) for cell in results.cells):.2f}x" for arm in others]
    rows.append(("geometric mean", "", *means, "", ""))
    return table(["workload", REFERENCE, *others, "PyTorch", "between processes"], rows)


def rates(results: Comparison) -> str:
    rows = []
    for arm in results.plan.arms:
        runs = [cell.curves[arm].run for cell in results.cells]
        per_second = [run.trials / run.seconds for run in runs]
        peak = max((run.peak_mb for run in runs if run.peak_mb is not None), default=None)
        figures = (statistics.median(per_second), min(per_second), max(per_second))
        rows.append((arm, *(f"{figure:.1f}" for figure in figures), "-" if peak is None else f"{peak:.0f} MB"))
    return table(["arm", "median", "slowest", "fastest", "peak memory"], rows)


def objectives(results: Comparison) -> str:
    by_objective = results.objectives["objectives"]
    counts = list(next(iter(by_objective.values())))
    rows = [
        (name, *(f"{by_count[count][what]:.3f}" for count in counts for what in ("agreement", "top")))
        for name, by_count in by_objective.items()
    ]
    return table(["objective", *(f"{what}, {count} seen" for count in counts for what in ("order", "top 8"))], rows)


def rejects(results: Comparison) -> str:
    summary = results.rejects["summary"]
    rows = [
        ("candidates", summary["candidates"]),
        ("dropped after one or two samples", summary["rejected"]),
        ("of these, within the cutoff by their full median", summary["false"]),
        ("of these, better than the best so far", summary["lost"]),
        ("time of all calls, with the race", f"{summary['seconds']:.1f} s"),
        ("time of all calls, without it", f"{summary['full_seconds']:.1f} s"),
    ]
    return table(["", "measured"], rows)


def between_processes(cells: Iterable[Cell]) -> tuple[float, float]:
    """Return slowest over fastest process of a program, by the processes' medians: median and 90th percentile."""
    medians = [
        [statistics.median(samples) for samples in by_process]
        for cell in cells
        for by_process in cell.race.samples.values()
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
