"""The outcome of the benchmark: what the kept lines say of each case."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from benchmarks.quality.engines import OURS, RIVALS, STOCK
from benchmarks.runner import latest
from loopwright.comparing.protocol import EngineResult
from loopwright.comparing.ratios import Ratio, paired

CASE = "case"
"""``kind`` of the line that describes a case."""
STEPS = ("tuned", "stock", "timed")
"""Of a case, in this order, as ``kind`` of its lines."""
NEAR = 0.95
"""Share of the final quality that counts as nearly as good."""


@dataclass(frozen=True)
class Outcome:
    """One case.

    Attributes:
        kind: A `benchmarks.quality.cases.case.Kind`, as text.
        engines: The results of the engines that were asked to compute the case.
        conditions: Of the timing step (`benchmarks.runner.conditions`).
        tuned: The line of the tuning step; None if Loopwright did not tune the case.
        stock: The line of the stock step; None if the case has none.
    """

    name: str
    family: str
    kind: str
    precision: str
    tolerance: float
    engines: dict[str, EngineResult]
    conditions: dict[str, Any]
    tuned: dict[str, Any] | None
    stock: dict[str, Any] | None

    def latency(self, engine: str) -> float | None:
        """Return the median seconds of a call; None if the engine cannot compute the case."""
        samples = self._samples(engine)
        return statistics.median(itertools.chain(*samples)) if samples else None

    @property
    def best_rival(self) -> str | None:
        """The rival with the lowest latency; None if no rival can compute the case."""
        latencies = {rival: latency for rival in RIVALS if (latency := self.latency(rival)) is not None}
        return min(latencies, key=latencies.__getitem__, default=None)

    @cached_property
    def against_rivals(self) -> Ratio | None:
        """Latency of the best rival over Loopwright's."""
        return self._over_ours(self.best_rival)

    @cached_property
    def against_stock(self) -> Ratio | None:
        """Latency of stock MetaSchedule's program over Loopwright's."""
        return self._over_ours(STOCK)

    @property
    def certified(self) -> float | None:
        """Seconds of a call by the certificates: weight times certified time over the tasks."""
        tasks = self.tuned["tasks"] if self.tuned else []
        if not tasks or not all(task["certified"] for task in tasks):
            return None
        return float(sum(task["weight"] * task["best_us"] for task in tasks)) / 1e6

    @property
    def user_over_certified(self) -> float | None:
        """Median latency in the user's process over the certified time."""
        latency, certified = self.latency(OURS), self.certified
        return latency / certified if latency is not None and certified is not None else None

    @property
    def qualities(self) -> list[float]:
        """Quality of the best so far after 0, 1, 2 … finished trials, over the final one; after 0 it is the baseline's.

        Quality is the inverse of the weighted latency, as the job measured it; empty without a complete history.
        """
        if not self.tuned or any(task["baseline_us"] is None for task in self.tuned["tasks"]):
            return []
        weights = {task["workload"]: task["weight"] for task in self.tuned["tasks"]}
        best = {task["workload"]: task["baseline_us"] for task in self.tuned["tasks"]}
        totals = [sum(weights[name] * best[name] for name in weights)]
        for workload, number, latency in self.tuned["history"]:
            if latency is not None:
                best[workload] = min(best[workload], latency)
            if number > 0:
                totals.append(sum(weights[name] * best[name] for name in weights))
        return [totals[-1] / total for total in totals]

    @property
    def trials_to_near(self) -> int | None:
        """Trials until the best so far had `NEAR` of the final quality."""
        return next((trials for trials, quality in enumerate(self.qualities) if quality >= NEAR), None)

    def _over_ours(self, engine: str | None) -> Ratio | None:
        samples, ours = self._samples(engine), self._samples(OURS)
        return paired(samples, ours) if samples and ours else None

    def _samples(self, engine: str | None) -> list[list[float]]:
        return self.engines[engine].samples if engine in self.engines else []


def outcomes(lines: Iterable[dict[str, Any]]) -> list[Outcome]:
    """Return the outcome of every case that was timed, in the order of the lines that describe them."""
    described: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for line in lines:
        (described if line["kind"] == CASE else steps).append(line)
    found = latest(steps, "kind", "case")
    return [
        Outcome(
            name=line["case"],
            family=line["family"],
            kind=line["group"],
            precision=line["precision"],
            tolerance=line["tolerance"],
            engines={name: EngineResult.from_json(result) for name, result in timed["engines"].items()},
            conditions=timed["conditions"],
            tuned=found.get(("tuned", line["case"])),
            stock=found.get(("stock", line["case"])),
        )
        for line in described
        if (timed := found.get(("timed", line["case"]))) is not None
    ]
