"""Spearman's rank correlation; `statistics.correlation` knows it from Python 3.12 on."""

from __future__ import annotations

import statistics
from collections.abc import Sequence


def spearman(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return the correlation in [-1, 1]; None with fewer than three pairs, or if all values of one side are equal."""
    if len(one) < 3 or len(set(one)) == 1 or len(set(other)) == 1:
        return None
    return statistics.correlation(_ranks(one), _ranks(other))


def _ranks(values: Sequence[float]) -> list[float]:
    """Places from 0; equal values share the mean of theirs."""
    places: dict[float, list[int]] = {}
    for place, value in enumerate(sorted(values)):
        places.setdefault(value, []).append(place)
    return [statistics.fmean(places[value]) for value in values]
