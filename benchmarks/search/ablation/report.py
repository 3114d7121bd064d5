"""The report on the ablation of the search."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.spread import Interval, bootstrap, geomean

REFERENCE = "reference"
NOT_RUN = "This benchmark has not been run in its present form."
_FIRST = 8
"""The first batch does not count: it is the same in every arm."""


@dataclass(frozen=True)
class Ratio:
    """The reference's latency over that of the search without a mechanism, in one cell: below 1, it is slower without.

    ``on_the_way`` is the geometric mean over the trials after the first batch, ``final`` the ratio after the last one.
    """

    workload: str
    on_the_way: float
    final: float

    @classmethod
    def of(cls, workload: str, reference: Sequence[float | None], other: Sequence[float | None]) -> Ratio:
        # A search that exhausts its space keeps what it has.
        length = max(len(reference), len(other))
        pairs = [(_at(reference, trial), _at(other, trial)) for trial in range(min(_FIRST, length - 1), length)]
        ratios = [ours / theirs for ours, theirs in pairs if ours is not None and theirs is not None]
        return cls(workload, geomean(ratios), ratios[-1])


def _at(best: Sequence[float | None], trial: int) -> float | None:
    return best[min(trial, len(best) - 1)]


@dataclass(frozen=True)
class Effect:
    """What the search is without a mechanism, over cells: a bootstrap that draws each workload's cells again."""

    on_the_way: Interval
    final: Interval

    @classmethod
    def over(cls, ratios: Sequence[Ratio]) -> Effect:
        by_workload: dict[str, list[Ratio]] = defaultdict(list)
        for ratio in ratios:
            by_workload[ratio.workload].append(ratio)
        groups = by_workload.values()
        return cls(
            bootstrap([[ratio.on_the_way for ratio in group] for group in groups]),
            bootstrap([[ratio.final for ratio in group] for group in groups]),
        )

    @property
    def verdict(self) -> str:
        """What the mechanism does, as far as the intervals do not contain 1."""
        helps = [interval.high < 1 for interval in (self.on_the_way, self.final)]
        hurts = [interval.low > 1 for interval in (self.on_the_way, self.final)]
        if any(helps) and any(hurts):
            return "helps and **hurts**"
        return "helps" if any(helps) else "**hurts**" if any(hurts) else "not shown"


def packed(lines: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the last plan of the cold search and that of the warm one, and the runs of each."""
    for warm in (False, True):
        plans = [line for line in lines if line["kind"] == "plan" and line["warm"] is warm]
        for plan in plans[-1:]:
            yield plan
            yield from (line for line in lines if line["kind"] == "run" and line["key"] == plan["key"])


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    return {"cold": effects(lines, warm=False), "warm": effects(lines, warm=True)}


def effects(lines: Sequence[dict[str, Any]], *, warm: bool) -> str:
    """Return the table of mechanisms; or that nothing was measured."""
    plans = [line for line in lines if line["kind"] == "plan" and line.get("warm") is warm]
    if not plans:
        return NOT_RUN
    (plan,) = plans
    runs: dict[tuple[str, str, int], dict[str, list[float | None]]] = defaultdict(dict)
    for line in lines:
        if line["kind"] == "run" and line["key"] == plan["key"]:
            runs[line["machine"], line["workload"], line["seed"]][line["arm"]] = line["best"]
    rows = []
    for name, what in plan["mechanisms"].items():
        ratios = [
            Ratio.of(workload, arms[REFERENCE], arms[name])
            for (_, workload, _), arms in runs.items()
            if name != REFERENCE and {name, REFERENCE} <= arms.keys()
        ]
        if ratios:
            effect = Effect.over(ratios)
            rows.append((name, what, len(ratios), effect.on_the_way, effect.final, effect.verdict))
    heads = ["mechanism", "what was taken out", "cells", "quality on the way", "final quality", "the mechanism"]
    machines = ", ".join(dict.fromkeys(machine for machine, *_ in runs))
    return f"{plan['trials']} trials a run, on {machines}.\n\n{table(heads, rows)}"


REPORT = Report("ablation", Path(__file__).with_name("report.md.in"), values, packed=packed)
