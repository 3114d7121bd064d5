"""What repeated measurements say: percentiles, geometric means, and intervals of paired ratios."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import t as student

CONFIDENCE = 0.95
_RESAMPLES = 10_000


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


def bootstrap(groups: Sequence[Sequence[float]]) -> Interval:
    """Return the geometric mean over groups of ratios, with the percentile interval of a bootstrap.

    The bootstrap draws the ratios of each group again. The interval is about these groups, not about others.
    """
    generator = np.random.default_rng(0)
    drawn = [np.log(group)[generator.integers(len(group), size=(_RESAMPLES, len(group)))] for group in groups]
    means = np.mean([each.mean(axis=1) for each in drawn], axis=0)
    low, high = np.quantile(means, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(geomean(map(geomean, groups)), math.exp(low), math.exp(high))


def geomean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value below or at which ``percent`` of all are; 0 if there are none."""
    if len(values) < 2:
        return max(values, default=0.0)
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]
