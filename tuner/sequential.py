"""A sequential test of a ratio: more rounds are taken only while the answer is unclear.

A group-sequential test of the mean of logarithms with Student's t, whose errors are divided among the looks by
Bonferroni's inequality: simple, and on the safe side.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from scipy.stats import t


class Verdict(StrEnum):
    BELOW = "below"
    """The ratio is surely not above the bound."""
    ABOVE = "above"
    """It surely is."""
    UNCLEAR = "unclear"


@dataclass(frozen=True, slots=True)
class SequentialConfig:
    """``looks`` are the numbers of rounds after which the test is made, growing.

    ``above_error`` is the probability to find a ratio above the bound that is not, at any of the looks; ``below_error``
    the same for one below that is not.
    """

    looks: tuple[int, ...] = (3, 5, 8, 12, 18, 25)
    above_error: float = 0.005
    below_error: float = 0.05


DEFAULT = SequentialConfig()


@dataclass(frozen=True, slots=True)
class Estimate:
    """A ratio, with its interval of 95 % at the given number of rounds; infinite for a single round."""

    value: float
    low: float
    high: float


def decide(ratios: Sequence[float], bound: float, config: SequentialConfig) -> Verdict:
    """Compare the geometric mean of ratios, one a round, with a bound."""
    if len(ratios) < 2:
        return Verdict.UNCLEAR
    mean, error = _mean_and_error(ratios)
    share, degrees = len(config.looks), len(ratios) - 1
    if mean - float(t.ppf(1 - config.above_error / share, degrees)) * error > math.log(bound):
        return Verdict.ABOVE
    if mean + float(t.ppf(1 - config.below_error / share, degrees)) * error <= math.log(bound):
        return Verdict.BELOW
    return Verdict.UNCLEAR


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the geometric mean of some ratios with its interval. Raises ValueError: there are none."""
    if not ratios:
        raise ValueError("no ratio to estimate from")
    if len(ratios) == 1:
        return Estimate(ratios[0], 0.0, math.inf)
    mean, error = _mean_and_error(ratios)
    width = float(t.ppf(0.975, len(ratios) - 1)) * error
    return Estimate(math.exp(mean), math.exp(mean - width), math.exp(mean + width))


def _mean_and_error(ratios: Sequence[float]) -> tuple[float, float]:
    """Return the mean of the logarithms, and its standard error."""
    logarithms = [math.log(ratio) for ratio in ratios]
    return statistics.fmean(logarithms), statistics.stdev(logarithms) / math.sqrt(len(logarithms))
