"""Draws the report of whatever runs and closing sessions there are: docs/benchmarks/search.md and its plots.

    .venv/bin/python -m benchmarks.search.report

All qualities are those of the closing session (`benchmarks.search.race`), never what an arm said of itself.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.search.arms import ARMS, TRIALS
from benchmarks.search.objectives import RESULTS as OBJECTIVES
from benchmarks.search.ours import ABLATIONS
from benchmarks.search.race import PYTORCH, RACE, name_of
from benchmarks.search.rejects import RESULTS as REJECTS
from benchmarks.search.run_record import RUNS, Run, load
from benchmarks.search.workloads import WORKLOADS

REPORT = RUNS.parents[1] / "search.md"
NEAR = 0.95
SMALL = 2e-4
"""Seconds a call, below which a kernel is small."""


@dataclass(frozen=True, slots=True)
class Curve:
    """One run as the closing session sees it: ``steps`` are (seconds, trial, best latency so far), falling."""

    run: Run
    steps: tuple[tuple[float, int, float], ...]

    @property
    def final(self) -> float:
        return self.steps[-1][2]

    def reaches(self, latency: float) -> float | None:
        """Seconds until the best so far was as fast as ``latency``; None if it never was."""
        return next((seconds for seconds, _, best in self.steps if best <= latency), None)


def curve(run: Run, seconds: dict[str, float]) -> Curve:
    """The arm keeps what it believed to be the best; what counts is how fast that was."""
    steps: list[tuple[float, int, float]] = []
    for entry in run.incumbents:
        steps.append((entry.seconds, entry.trial, seconds[name_of(entry.trace_json)]))
    return Curve(run, tuple(steps))


def curves() -> dict[str, dict[str, list[Curve]]]:
    """Curves by workload and arm, for what was raced."""
    raced: dict[str, Any] = json.loads(RACE.read_text())
    found: dict[str, dict[str, list[Curve]]] = {}
    for path in sorted(RUNS.glob("*.json")):
        run = load(path)
        seconds = raced.get(run.workload, {}).get("seconds", {})
        if run.incumbents and all(name_of(entry.trace_json) in seconds for entry in run.incumbents):
            found.setdefault(run.workload, {}).setdefault(run.arm, []).append(curve(run, seconds))
    return {workload: found[workload] for workload in WORKLOADS if "A" in found.get(workload, {})}


@dataclass(frozen=True, slots=True)
class Speed:
    """How much sooner than ``other`` an arm was at a share of A's final quality, over all workloads.

    ``ratios`` holds one number a workload (median over seeds): its time limit where the arm never got there, marked in
    ``missed``, so that a miss counts at least as badly as the slowest run.
    """

    ratios: dict[str, float]
    missed: tuple[str, ...]

    @property
    def mean(self) -> float:
        return geomean(self.ratios.values())


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def reached(found: list[Curve], latency: float) -> tuple[float, bool]:
    """Median seconds of the runs; a run that never got there counts as its whole time, and the median says if so."""
    times = sorted((c.reaches(latency) is None, c.reaches(latency) or c.run.seconds) for c in found)
    missed, seconds = times[len(times) // 2]
    return seconds, missed


def speed(found: dict[str, dict[str, list[Curve]]], arm: str, other: str, share: float) -> Speed:
    ratios, missed = {}, []
    for workload, arms in found.items():
        if arm not in arms or other not in arms:
            continue
        goal = statistics.median(c.final for c in arms["A"]) / share
        theirs, _ = reached(arms[other], goal)
        ours, never = reached(arms[arm], goal)
        ratios[workload] = theirs / ours
        if never:
            missed.append(workload)
    return Speed(ratios, tuple(missed))


def quality(found: dict[str, dict[str, list[Curve]]], arm: str) -> dict[str, float]:
    """A's final latency over the arm's, medians over seeds: above 1, the arm's code is faster."""
    return {
        workload: statistics.median(c.final for c in arms["A"]) / statistics.median(c.final for c in arms[arm])
        for workload, arms in found.items()
        if arm in arms
    }


def main() -> None:
    found = curves()
    raced = json.loads(RACE.read_text())
    REPORT.write_text("\n".join(text(found, raced)) + "\n")
    plot(found)
    print(REPORT)


def text(found: dict[str, dict[str, list[Curve]]], raced: dict[str, Any]) -> Iterable[str]:
    present = [arm for arm in ARMS if any(arm in arms for arms in found.values())]
    yield "# Search, side by side"
    yield ""
    yield "Made by `python -m benchmarks.search`, `.race` and `.report`; raw runs and the closing session's samples"
    yield "are in [search/](search/). Every arm tunes for the same target and threads, in random order, for"
    yield f"{TRIALS} trials. Loopwright's arms end with its closing race of the best few."
    yield ""
    yield "| arm | what | runs |"
    yield "|---|---|---|"
    for arm in present:
        yield f"| {arm} | {ARMS[arm]} | {sum(len(arms.get(arm, [])) for arms in found.values())} |"
    yield ""
    yield from figures_text(found)
    yield "## Seconds to 95 % and to 100 % of A's final quality"
    yield ""
    yield "How many times sooner than the other arm: geometric mean over workloads, the worst workload, and the"
    yield "workloads where the median run never got there. Those count as if it had at its end."
    yield ""
    yield "| | share | workloads | mean | worst | never |"
    yield "|---|---|---|---|---|---|"
    for arm, other in (
        ("C", "A"),
        ("C", "A1"),
        ("W", "A"),
        ("W", "C"),
        ("X", "A"),
        ("X", "C"),
        ("S", "C"),
        ("R", "A"),
        ("A1", "A"),
    ):
        for share in (NEAR, 1.0):
            result = speed(found, arm, other, share)
            if result.ratios:
                worst = min(result.ratios, key=result.ratios.__getitem__)
                yield (
                    f"| {arm} against {other} | {share:.0%} | {len(result.ratios)} | {result.mean:.1f}x "
                    f"| {result.ratios[worst]:.1f}x ({worst}) | {', '.join(result.missed) or '-'} |"
                )
    yield ""
    yield "By workload, seconds to 95 % of A's final quality: the median run, and all runs in ascending order where"
    yield "there are several; a dash for one that never got there."
    yield ""
    yield "| workload | " + " | ".join(present) + " |"
    yield "|---|" + "---|" * len(present)
    for workload, arms in found.items():
        goal = _final(arms["A"]) / NEAR
        yield f"| {workload} | " + " | ".join(_seconds(arms.get(arm, []), goal) for arm in present) + " |"
    yield ""
    yield f"## Final quality after {TRIALS} trials"
    yield ""
    yield "A's latency over the arm's, medians over seeds: above 1, the arm's code is faster; in brackets the worst and"
    yield "the best seed. PyTorch is its own operator on as many threads. Means are over the workloads that an arm ran."
    yield "All programs run in several processes; the last column says how far apart the slowest and the fastest"
    yield "process of a program are (the median program, the 90th percentile)."
    yield ""
    yield "| workload | A | " + " | ".join(arm for arm in present if arm != "A") + " | PyTorch | between processes |"
    yield "|---|" + "---|" * (len(present) + 2)
    for workload, arms in found.items():
        final = _final(arms["A"])
        cells = [_spread([final / c.final for c in arms.get(arm, [])]) for arm in present if arm != "A"]
        torch = raced[workload]["seconds"].get(PYTORCH)
        cells.append(_times(None if torch is None else final / torch))
        cells.append("{:.2f}x, {:.2f}x".format(*between_processes(raced[workload]["samples"])))
        yield f"| {workload} | {final * 1e6:.1f} µs | " + " | ".join(cells) + " |"
    means = [_times(geomean(quality(found, arm).values())) for arm in present if arm != "A"]
    yield "| geometric mean | | " + " | ".join(means) + " | | |"
    yield ""
    yield "## Trials a second, and peak memory of the tuner's process"
    yield ""
    yield "| arm | trials a second: median, slowest, fastest | peak memory |"
    yield "|---|---|---|"
    for arm in present:
        runs = [c.run for arms in found.values() for c in arms.get(arm, [])]
        rates = [run.trials / run.seconds for run in runs]
        peak = max((run.peak_mb for run in runs if run.peak_mb is not None), default=None)
        shown = "-" if peak is None else f"{peak:.0f} MB"
        yield f"| {arm} | {statistics.median(rates):.1f}, {min(rates):.1f}, {max(rates):.1f} | {shown} |"
    yield ""
    yield from ablation_text(found)
    yield from objectives_text()
    yield from rejects_text()
    yield "## Best so far"
    yield ""
    for workload in found:
        yield f"![{workload}: best latency so far by arm](search/{workload}.png)"


def figures_text(found: dict[str, dict[str, list[Curve]]]) -> Iterable[str]:
    """What the search is to reach, and what it reached."""
    yield "## What was asked for, and what was found"
    yield ""
    yield "Geometric means over workloads."
    yield ""
    yield "| figure | must | aim | found |"
    yield "|---|---|---|---|"
    for what, arm, other, must, aim in (
        ("cold, seconds to 95 % of A's final quality, against A", "C", "A", 5, 10),
        ("the same against A1", "C", "A1", 2, 4),
        ("warm, the same against A", "W", "A", 20, 50),
    ):
        result = speed(found, arm, other, NEAR)
        if result.ratios:
            yield f"| {what} | {must}x | {aim}x | {result.mean:.1f}x |"
    ratios = quality(found, "C")
    if ratios:
        yield f"| cold, final quality at {TRIALS} trials against A | 1.10x | 1.30x | {geomean(ratios.values()):.2f}x |"
    small = {workload: arms for workload, arms in found.items() if _final(arms["A"]) < SMALL}
    rates = [c.run.trials / c.run.seconds for arms in small.values() for c in arms.get("C", [])]
    if rates:
        yield (
            f"| cold, trials a second, kernels under {SMALL * 1e6:.0f} µs (median) "
            f"| 4 | 10 | {statistics.median(rates):.1f} |"
        )
    yield ""


def ablation_text(found: dict[str, dict[str, list[Curve]]]) -> Iterable[str]:
    present = [arm for arm in ABLATIONS if any(arm in arms for arms in found.values())]
    if not present:
        return
    yield "## Each mechanism taken out once"
    yield ""
    yield "Beside C or W as it is, geometric means over workloads: final quality above 1 means that the code is faster"
    yield "without the mechanism, time above 1 that it takes so many times longer to 95 % of A's final quality."
    yield ""
    yield "| arm | without | workloads | final quality | time |"
    yield "|---|---|---|---|---|"
    for arm in present:
        whole = arm[0]
        both = {workload: arms for workload, arms in found.items() if arm in arms and whole in arms}
        final = geomean(_final(arms[whole]) / _final(arms[arm]) for arms in both.values())
        slower = 1 / speed(both, arm, whole, NEAR).mean
        yield f"| {arm} | {ABLATIONS[arm][0]} | {len(both)} | {final:.2f}x | {slower:.2f}x |"
    yield ""


def _final(runs: list[Curve]) -> float:
    return statistics.median(c.final for c in runs)


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


def between_processes(samples: dict[str, list[list[float]]]) -> tuple[float, float]:
    """Slowest over fastest process of a program, by the processes' medians: median and 90th percentile of programs."""
    medians = [[statistics.median(taken) for taken in by_process] for by_process in samples.values()]
    ratios = sorted(max(found) / min(found) for found in medians)
    return statistics.median(ratios), ratios[int(0.9 * len(ratios))]


def _seconds(runs: list[Curve], goal: float) -> str:
    if not runs:
        return "-"
    seconds, missed = reached(runs, goal)
    told = "-" if missed else f"{seconds:.1f}"
    if len(runs) == 1:
        return told
    times = sorted((c.reaches(goal) or math.inf) for c in runs)
    return f"{told} ({', '.join('-' if math.isinf(value) else f'{value:.1f}' for value in times)})"


def _spread(values: list[float]) -> str:
    """The median; in brackets the least and the greatest where there are several."""
    if len(values) < 2:
        return _times(values[0] if values else None)
    return f"{statistics.median(values):.2f}x ({min(values):.2f}, {max(values):.2f})"


def _times(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}x"


def plot(found: dict[str, dict[str, list[Curve]]]) -> None:
    """One picture a workload: latency of the best so far over seconds, a line a run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    colours = dict(
        zip(ARMS, ("#999999", "#e69f00", "#cc79a7", "#0072b2", "#009e73", "#56b4e9", "#f0e442"), strict=True)
    )
    for workload, arms in found.items():
        figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
        for arm in [arm for arm in colours if arm in arms]:
            for number, c in enumerate(arms[arm]):
                seconds = [step[0] for step in c.steps] + [c.run.seconds]
                latency = [step[2] * 1e6 for step in c.steps] + [c.final * 1e6]
                label = arm if number == 0 else None
                axes.step(seconds, latency, where="post", color=colours[arm], label=label, linewidth=1.2)
        axes.set(xscale="log", yscale="log", xlabel="seconds", ylabel="µs a call", title=workload)
        axes.legend(frameon=False)
        axes.grid(True, which="both", alpha=0.2)
        figure.savefig(RUNS.parent / f"{workload}.png", dpi=110)
        pyplot.close(figure)


if __name__ == "__main__":
    main()
