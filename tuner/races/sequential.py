"""A sequential test of a ratio: more rounds are taken only while the answer is unclear.

A group-sequential test of the trimmed mean of logarithms with Student's t (Yuen, The two-sample trimmed t for unequal
population variances, 1974): rounds that were disturbed are far off, and would widen the interval of a plain mean. The
errors are divided among the looks by Bonferroni's inequality: simple, and on the safe side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

_TRIMMED = 0.2
"""Share of the rounds at either end. With fewer than five, none are left out."""


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
    """Compare the trimmed geometric mean of ratios, one a round, with a bound."""
    if len(ratios) < 2:
        return Verdict.UNCLEAR
    mean, error, degrees = _trimmed(ratios)
    share = len(config.looks)
    if mean - _quantile(degrees, 1 - config.above_error / share) * error > math.log(bound):
        return Verdict.ABOVE
    if mean + _quantile(degrees, 1 - config.below_error / share) * error <= math.log(bound):
        return Verdict.BELOW
    return Verdict.UNCLEAR


def estimate(ratios: Sequence[float]) -> Estimate:
    """Return the trimmed geometric mean of some ratios with its interval. Raises ValueError: there are none."""
    if not ratios:
        raise ValueError("no ratio to estimate from")
    if len(ratios) == 1:
        return Estimate(ratios[0], 0.0, math.inf)
    mean, error, degrees = _trimmed(ratios)
    width = _quantile(degrees, 0.975) * error
    return Estimate(math.exp(mean), math.exp(mean - width), math.exp(mean + width))


def _trimmed(ratios: Sequence[float]) -> tuple[float, float, int]:
    """Return the trimmed mean of the logarithms, its standard error, and the degrees of freedom."""
    logarithms = np.sort(np.log(ratios))
    count = len(ratios)
    cut = int(_TRIMMED * count)
    kept = logarithms[cut : count - cut]
    # Winsorised: each that is left out counts as the nearest that is kept.
    deviation = float(np.std(np.clip(logarithms, kept[0], kept[-1]), ddof=1))
    error = deviation * math.sqrt((count - 1) / (len(kept) * (len(kept) - 1)))
    return float(np.mean(kept)), error, len(kept) - 1


def _quantile(degrees: float, probability: float) -> float:
    """Return a quantile of Student's t."""
    from scipy.special import stdtrit  # a quarter of a second, which a controller's start does not wait for

    return float(stdtrit(degrees, probability))
