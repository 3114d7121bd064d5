"""The report on the search of two commits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.search.runs import NEAR, Timeline, cells, packed
from benchmarks.spread import interval

MIN_QUALITY = 0.98
MAX_TIME = 1.05
MIN_RATE = 0.9
"""Requirements on the geometric means: what misses one is a regression."""


@dataclass(frozen=True, slots=True)
class Pair:
    base: Timeline
    new: Timeline

    @property
    def goal(self) -> float:
        """Latency at `NEAR` of the base's final quality."""
        return self.base.final / NEAR

    @property
    def quality(self) -> float:
        """The base's final latency over the new one's: above 1, the new code finds faster programs."""
        return self.base.final / self.new.final

    @property
    def time(self) -> float:
        """The new time to the goal over the base's: above 1, the new code needs longer."""
        return self.new.seconds_to(self.goal) / self.base.seconds_to(self.goal)

    @property
    def rate(self) -> float:
        """The new side's trials a second over the base's."""
        return (self.new.trials / self.new.seconds) / (self.base.trials / self.base.seconds)


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (plan,) = (line for line in lines if line["kind"] == "plan")
    pairs = [Pair(cell.curves["base"], cell.curves["new"]) for cell in cells(lines)]
    quality, time = interval([pair.quality for pair in pairs]), interval([pair.time for pair in pairs])
    rate = interval([pair.rate for pair in pairs])
    what = f"time to {NEAR:.0%} of the base's final quality"
    summary = [
        ("final quality, new against base", f"at least {MIN_QUALITY}", quality, _verdict(quality.mean >= MIN_QUALITY)),
        (what, f"at most {MAX_TIME}", time, _verdict(time.mean <= MAX_TIME)),
        ("trials a second, new against base", f"at least {MIN_RATE}", rate, _verdict(rate.mean >= MIN_RATE)),
    ]
    return {
        "base": plan["base"][:12],
        "new": plan["new"],
        "trials": plan["trials"],
        "near": f"{NEAR:.0%}",
        "machines": ", ".join(sorted({run.machine for pair in pairs for run in (pair.base, pair.new)})),
        "count": len(pairs),
        "summary": table(["", "required", "geometric mean (95 % interval)", "verdict"], summary),
        "cells": table(_HEADS, map(_row, pairs)),
    }


_HEADS = ("workload", "seed", "base, µs", "new, µs", "quality", "base, s", "new, s", "time")


def _verdict(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _row(cell: Pair) -> tuple[object, ...]:
    latencies = (f"{cell.base.final * 1e6:.1f}", f"{cell.new.final * 1e6:.1f}")
    seconds = [
        f"{run.seconds_to(cell.goal):.1f}" + (" (never)" if run.reaches(cell.goal) is None else "")
        for run in (cell.base, cell.new)
    ]
    return (cell.base.workload, cell.base.seed, *latencies, f"{cell.quality:.2f}", *seconds, f"{cell.time:.2f}")


REPORT = Report("regression", Path(__file__).with_name("report.md.in"), values, packed=packed, options=" --base COMMIT")
