"""The speedup of a certificate, by which its race decided, with its interval and its grade."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from loopwright.codegen.kinds import Grade
from tuner.races.sequential import Estimate, estimate
from tuner.types import paired_ratios, speedup

CLEAN = 0.05
"""Distance of an end of the interval from the speedup, as a share of the speedup. Also `loopwright verify` takes
differences of 5 % for noise. Not tuned."""


SITTING = 3
"""Rounds that follow each other and count as one: for seconds, they share the state of a machine that others use, too.
Not tuned."""
_FEW = 5 * SITTING
"""Of fewer rounds, each counts by itself: there are so few if each takes long."""
_WIDER = 1.55
"""Factor from the interval of this race's trimmed mean to that of another race's median: the root of 1 + 1.18 squared,
since a median varies 1.18 times as much as a trimmed mean (normal logarithms, 45 rounds), and both races vary."""


def graded(baseline_run_secs: Sequence[float], best_run_secs: Sequence[float]) -> tuple[Estimate, Grade]:
    """Return the `tuner.types.speedup` with its interval of 95 %, and its grade.

    Another race of the same programs should have its speedup in the interval, too. It is wider by the factor `_WIDER`
    than that of `estimate` for the ratios of the `SITTING` rounds that both ran in, and contains the speedup. ``high``
    is infinite after a single round.
    """
    value = speedup(baseline_run_secs, best_run_secs)
    mean = estimate(_sittings(paired_ratios(baseline_run_secs, best_run_secs)))
    low, high = (mean.value * (end / mean.value) ** _WIDER for end in (mean.low, mean.high))
    interval = Estimate(value, min(low, value), max(high, value))
    return interval, _grade(interval, is_baseline=list(baseline_run_secs) == list(best_run_secs))


def _sittings(rounds: Sequence[float]) -> Sequence[float]:
    """Return the geometric mean of each `SITTING` ratios; those that are left over are left out."""
    if len(rounds) < _FEW:
        return rounds
    return [statistics.geometric_mean(each) for each in zip(*[iter(rounds)] * SITTING, strict=False)]


def _grade(interval: Estimate, *, is_baseline: bool) -> Grade:
    if not is_baseline and interval.low <= 1.0:
        return Grade.INCONCLUSIVE
    farthest = max(interval.value - interval.low, interval.high - interval.value)
    if math.isfinite(farthest) and farthest <= CLEAN * interval.value:
        return Grade.CLEAN
    return Grade.NOISY
