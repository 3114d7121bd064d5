"""Estimates what more search would gain, so that a search can stop when that is little.

The quantity is the latency of one run of the model: the sum over its tasks of weight times best latency. The estimate
extrapolates the gain of the latest trials linearly: with W trials in the window, which took s seconds,

    gain of the next minute = (1 - latency now / latency before the window) * 60 / s.

Searches have diminishing returns, so a linear extrapolation exceeds the expected gain. A decay fitted to the curve
would extrapolate more closely, but improvements come in few large steps, too few to fit anything to. The window is a
number of trials, because an improvement is an event of a trial: on a slow device a minute without one says little.
Times come from the trials themselves, so that a search that is resumed continues with the same estimate, and the time
in between counts as time that the window took.
`docs/benchmarks/quality.md` reports what this rule saves and loses on recorded searches.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_MINUTE = 60.0
_LEAST_SECONDS = 1e-3
"""What a window takes at least: the clocks of two workers may differ."""


@dataclass(frozen=True, slots=True)
class Finished:
    """A finished trial: when it ended (seconds since 1970), its task, and its latency in seconds; None if it failed."""

    ended: float
    task: int
    latency: float | None


def gain_of_next_minute(
    finished: Sequence[Finished], weights: Mapping[int, int], *, window: int, elsewhere: float = 0.0
) -> float:
    """Return the share of the model's latency that the next minute is expected to save, at most.

    Infinite if the ``window`` is not full yet, or if a task had no latency before it.

    Args:
        finished: All trials of the search, baselines included, in the order in which they ended.
        weights: How often the model calls each task that is searched, by its number.
        window: Trials from which the gain is extrapolated.
        elsewhere: Seconds of one run of the model that other tasks take, which are not searched.
    """
    if len(finished) <= window:
        return math.inf
    before = _latency(finished[:-window], weights)
    if not 0.0 < before < math.inf:
        return math.inf
    gain = (before - _latency(finished, weights)) / (before + elsewhere)
    seconds = max(finished[-1].ended - finished[-window - 1].ended, _LEAST_SECONDS)
    return gain * _MINUTE / seconds


def _latency(finished: Iterable[Finished], weights: Mapping[int, int]) -> float:
    """Return the model's latency after these trials; infinite if a task has none."""
    best = dict.fromkeys(weights, math.inf)
    for trial in finished:
        if trial.task in best and trial.latency is not None:
            best[trial.task] = min(best[trial.task], trial.latency)
    return sum(weights[task] * latency for task, latency in best.items())
