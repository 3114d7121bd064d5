"""What the kept results say: curves of each run as the closing race timed them, and ratios between arms.

All latencies are those of the closing race (`benchmarks.search.race`), never those that an arm measured itself.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import kept, unpack
from benchmarks.search.run_record import Race, Run, name_of

RESULTS = kept("search")
REFERENCE = "A"
"""The arm whose final quality is the goal: stock MetaSchedule."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What was to be run; the arms by name, with a description each."""

    trials: int
    seeds: list[int]
    workloads: list[str]
    arms: dict[str, str]


@dataclass(frozen=True, slots=True)
class Curve:
    """One run as the closing race timed it: ``steps`` are (seconds, latency of the best so far)."""

    run: Run
    steps: tuple[tuple[float, float], ...]

    @property
    def final(self) -> float:
        return self.steps[-1][1]

    def reaches(self, latency: float) -> float | None:
        """Return the seconds until the best so far was as fast as ``latency``; None if it never was."""
        return next((seconds for seconds, best in self.steps if best <= latency), None)


@dataclass(frozen=True, slots=True)
class Speedup:
    """How many times earlier one arm reached a goal than another.

    Attributes:
        run_charged: If the arm never reached the goal, it is charged the time of its whole run.
        strict: If it never did, it is charged at least the other arm's time.
        missed: Whether it never did.
    """

    run_charged: float
    missed: bool

    @property
    def strict(self) -> float:
        return min(1.0, self.run_charged) if self.missed else self.run_charged


@dataclass(frozen=True, slots=True)
class Cell:
    """A workload with a seed: the curve of each arm, and the closing race that timed them."""

    workload: str
    seed: int
    curves: dict[str, Curve]
    race: Race

    @property
    def name(self) -> str:
        return f"{self.workload}.{self.seed}"

    @property
    def reference(self) -> Curve:
        return self.curves[REFERENCE]

    def quality(self, arm: str) -> float:
        """Return the reference's final latency over the arm's: above 1, the arm's code is faster."""
        return self.reference.final / self.curves[arm].final

    def seconds_to(self, share: float, arm: str) -> float | None:
        """Return the seconds until the arm reached a share of the reference's final quality; None if it never did."""
        return self.curves[arm].reaches(self.reference.final / share)

    def speedup(self, arm: str, other: str, share: float) -> Speedup:
        """Compare the times to a share of the reference's final quality."""
        seconds, other_seconds = self.seconds_to(share, arm), self.seconds_to(share, other)
        charged = seconds or self.curves[arm].run.seconds
        return Speedup((other_seconds or self.curves[other].run.seconds) / charged, seconds is None)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The kept results: complete cells in the order of the plan's workloads, then of the seeds."""

    plan: Plan
    cells: list[Cell]
    objectives: dict[str, Any]
    rejects: dict[str, Any]

    @property
    def workloads(self) -> list[str]:
        """Workloads of which a cell is complete."""
        return list(dict.fromkeys(cell.workload for cell in self.cells))

    def of(self, workload: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.workload == workload]


def read(path: Path = RESULTS) -> Comparison:
    lines = lines_by_kind(path)
    (plan,), (objectives,), (rejects,) = lines["plan"], lines["objectives"], lines["rejects"]
    cells = complete_cells(lines)
    cells.sort(key=lambda cell: (plan["workloads"].index(cell.workload), cell.seed))
    return Comparison(Plan(**plan), cells, objectives, rejects)


def lines_by_kind(path: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the lines of a results file by their kind: ``run``, ``race`` and others."""
    lines: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in unpack(path):
        lines[line.pop("kind")].append(line)
    return lines


def complete_cells(lines: dict[str, list[dict[str, Any]]]) -> list[Cell]:
    """Return the cells whose closing race is among the lines, in the order of the races."""
    runs: dict[tuple[str, int], list[Run]] = defaultdict(list)
    for line in lines["run"]:
        run = Run.from_json(line)
        runs[run.workload, run.seed].append(run)
    return [_cell(Race(**line), runs[line["workload"], line["seed"]]) for line in lines["race"]]


def _cell(race: Race, runs: list[Run]) -> Cell:
    curves = {
        run.arm: Curve(run, tuple((entry.seconds, race.seconds[name_of(entry.trace_json)]) for entry in run.incumbents))
        for run in runs
    }
    return Cell(race.workload, race.seed, curves, race)


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def by_workload(values: Iterable[tuple[Cell, float]]) -> dict[str, float]:
    """Return geometric means over the seeds, by workload."""
    members: dict[str, list[float]] = defaultdict(list)
    for cell, value in values:
        members[cell.workload].append(value)
    return {workload: geomean(here) for workload, here in members.items()}


def overall(values: Iterable[tuple[Cell, float]]) -> float:
    """Return the geometric mean over workloads of their means: a workload counts the same with one seed or three."""
    return geomean(by_workload(values).values())
