"""The plots of the report: quality of the best so far over time, one plot a workload."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from matplotlib.figure import Figure

from benchmarks.search.runs import REFERENCE, Cell

COLOURS = ("#999999", "#e69f00", "#cc79a7", "#0072b2", "#009e73", "#56b4e9", "#f0e442", "#d55e00")
"""Okabe and Ito's palette, which people with colour blindness can tell apart."""


def draw(workloads: Mapping[str, Sequence[Cell]], arms: Sequence[str], folder: Path) -> None:
    """Write one PNG file a workload. The reference's final quality is 1; each run is a line."""
    folder.mkdir(parents=True, exist_ok=True)
    for workload, cells in workloads.items():
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for number, cell in enumerate(cells):
            for arm, colour in zip(arms, COLOURS, strict=False):
                curve = cell.curves[arm]
                seconds = [*(seconds for seconds, _ in curve.steps), curve.seconds]
                latencies = [*(latency for _, latency in curve.steps), curve.final]
                quality = [cell.curves[REFERENCE].final / latency for latency in latencies]
                label = arm if number == 0 else None
                axes.step(seconds, quality, where="post", color=colour, label=label, linewidth=1.2)
        axes.set(xscale="log", ylim=(0, None), xlabel="seconds", ylabel="A's final latency over the best so far")
        axes.set_title(workload)
        axes.legend(frameon=False)
        axes.grid(True, which="both", alpha=0.2)
        figure.savefig(folder / f"{workload}.png", dpi=110)
