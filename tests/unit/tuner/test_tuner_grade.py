"""The interval and the grade of a certificate."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest

from loopwright.codegen.kinds import Grade
from tuner.races.grade import graded
from tuner.races.sequential import Estimate


@pytest.mark.parametrize(
    ("baseline", "best", "grade"),
    [
        ([2.0, 2.02, 1.98, 2.01, 2.0], [1.0, 1.01, 0.99, 1.0, 1.0], Grade.CLEAN),
        ([2.0, 2.8, 1.9, 2.5, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0], Grade.NOISY),
        ([2.0, 9.0, 0.3, 5.0, 2.0], [1.0, 1.0, 1.0, 1.0, 1.0], Grade.INCONCLUSIVE),
        ([1.01, 1.0, 1.02, 0.99, 1.01], [1.0, 1.0, 1.0, 1.0, 1.0], Grade.INCONCLUSIVE),
        ([2.0], [1.0], Grade.INCONCLUSIVE),
        ([1.0, 2.0, 1.0], [1.0, 2.0, 1.0], Grade.CLEAN),
    ],
)
def test_a_grade_says_how_sure_a_speedup_is(baseline: list[float], best: list[float], grade: Grade) -> None:
    interval, found = graded(baseline, best)
    assert found is grade
    assert interval.low <= interval.value <= interval.high
    assert interval.value == np.median(np.divide(baseline, best))


def test_a_single_round_has_no_upper_end() -> None:
    interval, _ = graded([2.0], [1.0])
    assert (interval.low, interval.high) == (0.0, math.inf)


@pytest.mark.parametrize("state", [0.0, 0.1, 0.5], ids=["independent", "somewhat", "mostly the machine's"])
def test_most_intervals_contain_the_ratio_of_another_race(state: float) -> None:
    """``state``: how much rounds differ by what three of them share."""
    generator = np.random.default_rng(0)

    def race() -> Estimate:
        baseline = 2.0 * generator.lognormal(0, 0.1, 45) * np.repeat(generator.lognormal(0, state, 15), 3)
        return graded(baseline.tolist(), generator.lognormal(0, 0.1, 45).tolist())[0]

    races = [race() for _ in range(400)]
    inside = sum(one.low <= other.value <= one.high for one, other in pairwise(races))
    assert inside >= 0.92 * 399


def test_most_intervals_contain_the_true_ratio() -> None:
    generator = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        baseline, best = 2.0 * generator.lognormal(0, 0.1, 15), generator.lognormal(0, 0.1, 15)
        interval, _ = graded(baseline.tolist(), best.tolist())
        inside += interval.low <= 2.0 <= interval.high
    assert inside >= 0.92 * 400
