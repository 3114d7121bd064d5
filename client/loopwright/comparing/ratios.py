"""Ratios of latencies that were measured in the same rounds, with bootstrap intervals."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Samples = Sequence[Sequence[float]]
"""Seconds a call, by process and round."""

RESAMPLES = 2000
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Ratio:
    """An estimate and what it would be in resampled data, from which its interval follows."""

    value: float
    resampled: npt.NDArray[np.float64]

    @property
    def low(self) -> float:
        return float(np.quantile(self.resampled, (1 - CONFIDENCE) / 2))

    @property
    def high(self) -> float:
        return float(np.quantile(self.resampled, (1 + CONFIDENCE) / 2))

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def paired(numerator: Samples, denominator: Samples) -> Ratio:
    """Return the median over the rounds of one engine's latency over another's in the same round.

    The interval is a bootstrap's that draws processes first and then rounds in each of them, because the rounds of one
    process share the addresses of its buffers.

    Raises:
        ValueError: The engines have no rounds in common.
    """
    rounds = min((len(process) for process in (*numerator, *denominator)), default=0)
    ratios = np.array(
        [
            [a / b for a, b in zip(mine[:rounds], theirs[:rounds], strict=True)]
            for mine, theirs in zip(numerator, denominator, strict=False)
        ]
    )
    if not ratios.size:
        raise ValueError("two engines that share no round cannot be compared")
    generator = np.random.default_rng(0)
    processes = generator.integers(len(ratios), size=(RESAMPLES, len(ratios), 1))
    drawn = ratios[processes, generator.integers(rounds, size=(RESAMPLES, *ratios.shape))]
    return Ratio(float(np.median(ratios)), np.median(drawn.reshape(RESAMPLES, -1), axis=1))


def geometric_mean(ratios: Sequence[Ratio]) -> Ratio:
    """Return the geometric mean over cases. Its interval is about the noise of these cases, not about other cases.

    Raises:
        ValueError: There are no ratios.
    """
    if not ratios:
        raise ValueError("no ratio to take the mean of")
    value = math.exp(statistics.fmean(math.log(ratio.value) for ratio in ratios))
    logarithms = np.log(np.stack([ratio.resampled for ratio in ratios]))
    return Ratio(value, np.exp(logarithms.mean(axis=0)))
