"""The plots of the report: every engine's latency by case, and quality over trials."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from matplotlib.figure import Figure

from benchmarks.quality.engines import OURS, RIVALS
from benchmarks.quality.outcome import NEAR, Outcome
from benchmarks.search.plots import COLOURS

_MARKS = dict(zip(RIVALS, zip("osD^", COLOURS[1:], strict=False), strict=True))


def figures(found: Sequence[Outcome]) -> dict[str, Figure]:
    """Return the plots by name: one of speeds for each kind of case, and one of trials."""
    drawn = {}
    for kind in dict.fromkeys(outcome.kind for outcome in found):
        here = [outcome for outcome in found if outcome.kind == kind and outcome.latency(OURS) is not None]
        if here:
            drawn[kind.replace(" ", "-")] = speeds(here, f"{kind}s" if kind != "low precision" else kind)
    tuned = [outcome.qualities for outcome in found if outcome.kind == "operator" and outcome.qualities]
    return drawn | ({"trials": trials(tuned)} if tuned else {})


def speeds(found: Sequence[Outcome], title: str) -> Figure:
    """Return a row of marks for each case: each rival's latency over Loopwright's, with the best one's interval."""
    figure = Figure(figsize=(7, 1.2 + 0.24 * len(found)), layout="constrained")
    axes = figure.subplots()
    for row, outcome in enumerate(found):
        ours = outcome.latency(OURS)
        assert ours is not None
        for rival, (mark, colour) in _MARKS.items():
            latency = outcome.latency(rival)
            if latency is not None:
                label = rival if row == 0 else None
                axes.plot(latency / ours, row, mark, color=colour, markersize=4.5, label=label)
        ratio = outcome.against_rivals
        if ratio is not None:
            axes.plot([ratio.low, ratio.high], [row, row], color="#000000", linewidth=1.2)
    axes.axvline(1, color="#000000", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_yticks(range(len(found)), [outcome.name for outcome in found])
    axes.set_ylim(len(found) - 0.5, -0.5)
    axes.set(xlabel="latency over Loopwright's (right of 1: Loopwright is faster)", title=title)
    axes.legend(frameon=False, fontsize=8)
    axes.grid(True, which="both", alpha=0.2)
    return figure


def trials(qualities: Sequence[Sequence[float]]) -> Figure:
    """Return a line for each single operator, and their median."""
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for curve in qualities:
        axes.step(range(len(curve)), curve, where="post", color=COLOURS[0], linewidth=0.8, alpha=0.6)
    length = max(len(curve) for curve in qualities)
    # A search of a small space ends early, and keeps what it has.
    median = [statistics.median(curve[min(trial, len(curve) - 1)] for curve in qualities) for trial in range(length)]
    axes.step(range(length), median, where="post", color=COLOURS[3], linewidth=2, label="median")
    axes.axhline(NEAR, color="#000000", linewidth=0.8)
    axes.set(xlabel="trials", ylabel="quality over the final quality", ylim=(0, 1.02), title="single operators")
    axes.legend(frameon=False)
    axes.grid(True, alpha=0.2)
    return figure
