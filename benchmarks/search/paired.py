"""Paired comparison of runs: their timelines as one closing session timed them, and intervals over cells."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from scipy.stats import t as student

from benchmarks.search.run_record import Run, name_of

NEAR = 0.95
"""Share of the final quality to which times are taken."""
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Timeline:
    """One run: ``steps`` are (seconds after its start, latency of the best so far in the closing session)."""

    arm: str
    workload: str
    seed: int
    machine: str
    code: str
    seconds: float
    trials: int
    failed: int
    steps: tuple[tuple[float, float], ...]

    @classmethod
    def of(cls, run: Run, latencies: dict[str, float]) -> Timeline:
        """Combine a run's record with the latencies of the closing session, by program name."""
        steps = tuple((entry.seconds, latencies[name_of(entry.trace_json)]) for entry in run.incumbents)
        return cls(run.arm, run.workload, run.seed, run.machine, run.code, run.seconds, run.trials, run.failed, steps)

    @classmethod
    def from_json(cls, fields: dict[str, Any]) -> Timeline:
        return cls(**fields | {"steps": tuple((seconds, latency) for seconds, latency in fields["steps"])})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def final(self) -> float:
        """Latency of the run's answer, in seconds a call."""
        return self.steps[-1][1]

    def reaches(self, latency: float) -> bool:
        return any(best <= latency for _, best in self.steps)

    def seconds_to(self, latency: float) -> float:
        """Return the seconds until the best so far was as fast; a run that never was is charged all its time."""
        return next((seconds for seconds, best in self.steps if best <= latency), self.seconds)


@dataclass(frozen=True, slots=True)
class Interval:
    """Geometric mean of ratios over cells, with its confidence interval."""

    mean: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.mean:.3f} ({self.low:.3f} to {self.high:.3f})"


def interval(ratios: Sequence[float]) -> Interval:
    """Return Student's interval for the mean logarithm of ratios, one a cell: a paired t-test on logarithms.

    Requires at least two ratios.
    """
    logarithms = [math.log(ratio) for ratio in ratios]
    mean = statistics.fmean(logarithms)
    error = statistics.stdev(logarithms) / math.sqrt(len(logarithms))
    half = float(student.ppf((1 + CONFIDENCE) / 2, len(logarithms) - 1)) * error
    return Interval(math.exp(mean), math.exp(mean - half), math.exp(mean + half))


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))
