"""The interval of a certificate's speedup, and its grade."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from loopwright.codegen.kinds import Grade
from tuner.races.sequential import Estimate, estimate

CLEAN = 0.05
"""Distance of an end of the interval from the speedup, as a share of the speedup. Also `loopwright verify` takes
differences of 5 % for noise. Not tuned."""


def graded(baseline_run_secs: Sequence[float], best_run_secs: Sequence[float]) -> tuple[Estimate, Grade]:
    """Return the ratio of the medians with its interval of 95 %, and its grade.

    The interval is that of `estimate` for the ratios of the rounds that both ran in, and contains the ratio of the
    medians. ``high`` is infinite after a single round.
    """
    speedup = statistics.median(baseline_run_secs) / statistics.median(best_run_secs)
    paired = estimate([base / best for base, best in zip(baseline_run_secs, best_run_secs, strict=False)])
    interval = Estimate(speedup, min(paired.low, speedup), max(paired.high, speedup))
    return interval, _grade(interval, is_baseline=list(baseline_run_secs) == list(best_run_secs))


def _grade(interval: Estimate, *, is_baseline: bool) -> Grade:
    if not is_baseline and interval.low <= 1.0:
        return Grade.INCONCLUSIVE
    farthest = max(interval.value - interval.low, interval.high - interval.value)
    if math.isfinite(farthest) and farthest <= CLEAN * interval.value:
        return Grade.CLEAN
    return Grade.NOISY
