"""Draws the report of the cells that are complete: docs/benchmarks/search.md and its plots.

    .venv/bin/python -m benchmarks.search.report

All qualities are those of the cells' closing sessions (`benchmarks.search.race`), never what an arm said of itself.
"""

from __future__ import annotations

import json
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.search.arms import ARMS, SEEDS, TRIALS, Cell, plan
from benchmarks.search.objectives import RESULTS as OBJECTIVES
from benchmarks.search.ours import ABLATIONS
from benchmarks.search.race import PYTORCH, name_of, path_of
from benchmarks.search.rejects import RESULTS as REJECTS
from benchmarks.search.run_record import RUNS, Run, load
from benchmarks.search.workloads import WORKLOADS

REPORT = RUNS.parents[1] / "search.md"
NEAR = 0.95
SMALL = 2e-4
"""Seconds a call, below which a kernel is small."""

PAIRS = (
    ("C", "A"),
    ("C", "A1"),
    ("W", "A"),
    ("W", "C"),
    ("X", "A"),
    ("X", "C"),
    ("S", "C"),
    ("R", "A"),
    ("A1", "A"),
)
"""Arms whose times are compared."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One run as the closing session sees it: ``steps`` are (seconds, latency of what it then held for the best)."""

    run: Run
    steps: tuple[tuple[float, float], ...]

    @property
    def final(self) -> float:
        return self.steps[-1][1]

    def reaches(self, latency: float) -> float | None:
        """Seconds until the best so far was as fast as ``latency``; None if it never was."""
        return next((seconds for seconds, best in self.steps if best <= latency), None)


@dataclass(frozen=True, slots=True)
class Closed:
    """A complete cell: curves by arm, and the closing session."""

    cell: Cell
    curves: dict[str, Curve]
    raced: dict[str, Any]

    def quality(self, arm: str) -> float:
        """A's final latency over the arm's: above 1, the arm's code is faster."""
        return self.curves["A"].final / self.curves[arm].final

    def sooner(self, arm: str, other: str, share: float) -> tuple[float, bool]:
        """How many times sooner than ``other`` the arm was at a share of A's final quality, and whether it never was.

        A run that never got there counts as if it had at its end.
        """
        goal = self.curves["A"].final / share
        reached = self.curves[arm].reaches(goal)
        theirs = self.curves[other].reaches(goal) or self.curves[other].run.seconds
        return theirs / (reached or self.curves[arm].run.seconds), reached is None


def closed() -> Iterator[Closed]:
    """The complete cells, in the order of the workloads."""
    for cell in sorted(plan(list(WORKLOADS)), key=lambda cell: (list(WORKLOADS).index(cell.workload), cell.seed)):
        if path_of(cell).exists():
            raced = json.loads(path_of(cell).read_text())
            runs = [load(RUNS / f"{cell.workload}.{arm}.{cell.seed}.json") for arm in cell.arms]
            yield Closed(cell, {run.arm: _curve(run, raced["seconds"]) for run in runs}, raced)


def _curve(run: Run, seconds: dict[str, float]) -> Curve:
    return Curve(run, tuple((entry.seconds, seconds[name_of(entry.trace_json)]) for entry in run.incumbents))


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def by_workload(values: Iterable[tuple[Cell, float]]) -> dict[str, float]:
    """Geometric means over the seeds."""
    found: dict[str, list[float]] = {}
    for cell, value in values:
        found.setdefault(cell.workload, []).append(value)
    return {workload: geomean(members) for workload, members in found.items()}


def overall(values: Iterable[tuple[Cell, float]]) -> float:
    """Geometric mean over the workloads, of their means: a workload counts the same with one seed or with three."""
    return geomean(by_workload(values).values())


def main() -> None:
    cells = list(closed())
    REPORT.write_text("\n".join(text(cells)) + "\n")
    plot(cells)
    print(REPORT)


def text(cells: list[Closed]) -> Iterator[str]:
    yield "# Search, side by side"
    yield ""
    yield "Made by `python -m benchmarks.search` and `.report`; raw runs and the closing sessions' samples are in"
    yield f"[search/](search/). A cell is a workload with a seed: all arms tune it for {TRIALS} trials, in random"
    yield "order, on one machine, for the same target and threads; then all that was ever the best of a run is timed"
    yield "anew, interleaved, in several processes. Figures are ratios within a cell; means are geometric, over seeds,"
    yield "then over workloads. Loopwright's arms end with its closing race of the best few."
    yield ""
    yield f"{len(cells)} of {len(WORKLOADS) * len(SEEDS)} cells are complete."
    yield ""
    if not cells:
        return
    yield "| arm | what | runs |"
    yield "|---|---|---|"
    for arm, what in ARMS.items():
        yield f"| {arm} | {what} | {sum(arm in one.curves for one in cells)} |"
    yield ""
    yield "| machine | code of search and workers | cells |"
    yield "|---|---|---|"
    runs = [next(iter(one.curves.values())).run for one in cells]
    for (machine, code), count in Counter((run.machine, run.code) for run in runs).items():
        yield f"| {machine} | {code} | {count} |"
    yield ""
    yield from figures_text(cells)
    yield from time_text(cells)
    yield from quality_text(cells)
    yield from rates_text(cells)
    yield from ablation_text(cells)
    yield from objectives_text()
    yield from rejects_text()
    yield "## Best so far"
    yield ""
    for workload in dict.fromkeys(one.cell.workload for one in cells):
        yield f"![{workload}: quality of the best so far by arm](search/{workload}.png)"


def figures_text(cells: list[Closed]) -> Iterator[str]:
    """What the search is to reach, and what it reached."""
    yield "## What was asked for, and what was found"
    yield ""
    yield "| figure | must | aim | found |"
    yield "|---|---|---|---|"
    for what, arm, other, must, aim in (
        ("cold, seconds to 95 % of A's final quality, against A", "C", "A", 5, 10),
        ("the same against A1", "C", "A1", 2, 4),
        ("warm, the same against A", "W", "A", 20, 50),
    ):
        found = overall((one.cell, one.sooner(arm, other, NEAR)[0]) for one in cells)
        yield f"| {what} | {must}x | {aim}x | {found:.1f}x |"
    quality = overall((one.cell, one.quality("C")) for one in cells)
    yield f"| cold, final quality at {TRIALS} trials against A | 1.10x | 1.30x | {quality:.2f}x |"
    # A rate, unlike the ratios above, is the machine's as much as the tuner's.
    rates: dict[str, list[float]] = {}
    for run in (one.curves["C"].run for one in cells if one.curves["A"].final < SMALL):
        rates.setdefault(run.machine, []).append(run.trials / run.seconds)
    if rates:
        rate = statistics.median(rate for here in rates.values() for rate in here)
        yield f"| cold, trials a second, kernels under {SMALL * 1e6:.0f} µs (median) | 4 | 10 | {rate:.1f} |"
        yield ""
        shown = "; ".join(
            f"{statistics.median(here):.1f} on {machine} ({min(here):.1f} to {max(here):.1f}, {len(here)} runs)"
            for machine, here in sorted(rates.items())
        )
        yield f"Trials a second by machine, closing race included: {shown}."
    yield ""


def time_text(cells: list[Closed]) -> Iterator[str]:
    yield "## Seconds to 95 % and to 100 % of A's final quality"
    yield ""
    yield "How many times sooner than the other arm: the mean, the worst workload, and the cells where the arm never"
    yield "got there. Those count as if it had at its end; the mean in brackets counts them as no sooner at all."
    yield ""
    yield "| | share | mean | worst | never |"
    yield "|---|---|---|---|---|"
    for arm, other in PAIRS:
        for share in (NEAR, 1.0):
            found = [(one.cell, *one.sooner(arm, other, share)) for one in cells]
            ratios = by_workload((cell, ratio) for cell, ratio, _ in found)
            strict = overall((cell, min(1.0, ratio) if missed else ratio) for cell, ratio, missed in found)
            worst = min(ratios, key=ratios.__getitem__)
            never = [cell.name for cell, _, missed in found if missed]
            yield (
                f"| {arm} against {other} | {share:.0%} | {geomean(ratios.values()):.1f}x ({strict:.1f}x) "
                f"| {ratios[worst]:.1f}x ({worst}) | {len(never)} of {len(cells)}{_named(never)} |"
            )
    yield ""
    yield "By cell, seconds to 95 % of A's final quality; a dash where the arm never got there."
    yield ""
    yield "| cell | " + " | ".join(ARMS) + " |"
    yield "|---|" + "---|" * len(ARMS)
    for one in cells:
        goal = one.curves["A"].final / NEAR
        reached = [one.curves[arm].reaches(goal) for arm in ARMS]
        shown = ["-" if seconds is None else f"{seconds:.1f}" for seconds in reached]
        yield f"| {one.cell.name} | " + " | ".join(shown) + " |"
    yield ""


def quality_text(cells: list[Closed]) -> Iterator[str]:
    yield f"## Final quality after {TRIALS} trials"
    yield ""
    yield "A's latency over the arm's: above 1, the arm's code is faster; in brackets the worst and the best seed."
    yield "PyTorch is its own operator on as many threads. The last column says how far apart the slowest and the"
    yield "fastest process of a program are (the median program, the 90th percentile)."
    yield ""
    others = [arm for arm in ARMS if arm != "A"]
    yield "| workload | A | " + " | ".join(others) + " | PyTorch | between processes |"
    yield "|---|---|" + "---|" * (len(others) + 2)
    for workload in dict.fromkeys(one.cell.workload for one in cells):
        here = [one for one in cells if one.cell.workload == workload]
        final = statistics.median(one.curves["A"].final for one in here)
        shown = [_spread([one.quality(arm) for one in here]) for arm in others]
        torch = [
            one.curves["A"].final / one.raced["seconds"][PYTORCH] for one in here if PYTORCH in one.raced["seconds"]
        ]
        shown.append(_spread(torch))
        shown.append("{:.2f}x, {:.2f}x".format(*between_processes(one.raced["samples"] for one in here)))
        yield f"| {workload} | {final * 1e6:.1f} µs | " + " | ".join(shown) + " |"
    means = [overall((one.cell, one.quality(arm)) for one in cells) for arm in others]
    yield "| geometric mean | | " + " | ".join(f"{mean:.2f}x" for mean in means) + " | | |"
    yield ""


def rates_text(cells: list[Closed]) -> Iterator[str]:
    yield "## Trials a second, and peak memory of the tuner's process"
    yield ""
    yield "| arm | trials a second: median, slowest, fastest | peak memory |"
    yield "|---|---|---|"
    for arm in ARMS:
        runs = [one.curves[arm].run for one in cells]
        rates = [run.trials / run.seconds for run in runs]
        peak = max((run.peak_mb for run in runs if run.peak_mb is not None), default=None)
        shown = "-" if peak is None else f"{peak:.0f} MB"
        yield f"| {arm} | {statistics.median(rates):.1f}, {min(rates):.1f}, {max(rates):.1f} | {shown} |"
    yield ""


def ablation_text(cells: list[Closed]) -> Iterator[str]:
    here = [one for one in cells if any(arm in one.curves for arm in ABLATIONS)]
    if not here:
        return
    yield "## Each mechanism taken out once"
    yield ""
    yield f"Beside C or W as it is, with one seed on {', '.join(one.cell.workload for one in here)}. Final quality"
    yield "above 1 means that the code is faster without the mechanism, time above 1 that it takes so many times longer"
    yield "to 95 % of A's final quality. In brackets the least and the greatest."
    yield ""
    yield "| arm | without | final quality | time |"
    yield "|---|---|---|---|"
    for arm, (what, _) in ABLATIONS.items():
        whole = arm[0]
        quality = [one.curves[whole].final / one.curves[arm].final for one in here]
        slower = [one.sooner(whole, arm, NEAR)[0] for one in here]
        yield f"| {arm} | {what} | {_spread(quality)} | {_spread(slower)} |"
    yield ""


def objectives_text() -> Iterable[str]:
    if not OBJECTIVES.exists():
        return
    results = json.loads(OBJECTIVES.read_text())
    yield "## Objectives of the cost model, offline"
    yield ""
    yield f"The same trials of {results['workloads']} workloads and the same trees (`benchmarks.search.objectives`)."
    yield "Order: share of unseen pairs more than 5 % apart that the model puts in the right order. Top 8: speed of the"
    yield "best of the eight programs that it likes best, 1 being the best of all."
    yield ""
    counts = list(next(iter(results["objectives"].values())))
    heads = [f"{what}, {count} seen" for count in counts for what in ("order", "top 8")]
    yield "| objective | " + " | ".join(heads) + " |"
    yield "|---|" + "---|" * len(heads)
    for name, by_count in results["objectives"].items():
        cells = [f"{by_count[count][what]:.3f}" for count in counts for what in ("agreement", "top")]
        yield f"| {name} | " + " | ".join(cells) + " |"
    yield ""


def rejects_text() -> Iterable[str]:
    if not REJECTS.exists():
        return
    summary = json.loads(REJECTS.read_text())["summary"]
    yield "## What racing loses"
    yield ""
    yield f"{summary['candidates']} candidates were measured in full, and the race replayed on their samples"
    yield f"(`benchmarks.search.rejects`): it drops {summary['rejected']} after a sample or two. {summary['false']} of"
    yield f"these were within the cutoff by their full median, and {summary['lost']} better than the best so far."
    yield f"Calls take {summary['seconds']:.1f} s instead of {summary['full_seconds']:.1f} s."
    yield ""


def between_processes(raced: Iterable[dict[str, list[list[float]]]]) -> tuple[float, float]:
    """Slowest over fastest process of a program, by the processes' medians: median and 90th percentile of programs."""
    medians = [[statistics.median(taken) for taken in by_process] for one in raced for by_process in one.values()]
    ratios = sorted(max(found) / min(found) for found in medians)
    return statistics.median(ratios), ratios[int(0.9 * len(ratios))]


def _named(cells: list[str]) -> str:
    return f" ({', '.join(cells)})" if cells else ""


def _spread(values: list[float]) -> str:
    """The geometric mean; in brackets the least and the greatest where there are several."""
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.2f}x"
    return f"{geomean(values):.2f}x ({min(values):.2f}, {max(values):.2f})"


def plot(cells: list[Closed]) -> None:
    """One picture a workload: quality of the best so far, A's final one being 1, over seconds; a line a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colours = dict(
        zip(ARMS, ("#999999", "#e69f00", "#cc79a7", "#0072b2", "#009e73", "#56b4e9", "#f0e442"), strict=True)
    )
    for workload in dict.fromkeys(one.cell.workload for one in cells):
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        for number, one in enumerate(one for one in cells if one.cell.workload == workload):
            for arm, colour in colours.items():
                c = one.curves[arm]
                seconds = [seconds for seconds, _ in c.steps] + [c.run.seconds]
                quality = [one.curves["A"].final / latency for latency in [*(best for _, best in c.steps), c.final]]
                label = arm if number == 0 else None
                axes.step(seconds, quality, where="post", color=colour, label=label, linewidth=1.2)
        axes.set(xscale="log", ylim=(0, None), xlabel="seconds", ylabel="A's final latency over the best so far")
        axes.set_title(workload)
        axes.legend(frameon=False)
        axes.grid(True, which="both", alpha=0.2)
        figure.savefig(RUNS.parent / f"{workload}.png", dpi=110)
        pyplot.close(figure)


if __name__ == "__main__":
    main()
