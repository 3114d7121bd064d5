"""How long a build may take, by what others of the module took."""

from __future__ import annotations

import math

import pytest

from workers.ray.patience import (
    CALLS,
    ENOUGH,
    LEAST_MEASURING,
    LEAST_SECONDS,
    TIMES,
    Patience,
    measuring_seconds,
)


def after(*seconds: float) -> Patience:
    patience = Patience()
    for one in seconds:
        patience.observe("module", one)
    return patience


def test_nothing_is_given_up_before_it_is_known_what_is_usual() -> None:
    assert after(*[1.0] * (ENOUGH - 1)).seconds("module", "[]") == math.inf
    assert after(*[1.0] * ENOUGH).seconds("module", "[]") < math.inf


def test_one_long_build_makes_no_difference() -> None:
    assert after(*[1.0] * ENOUGH, 60.0).seconds("module", "[]") == pytest.approx(TIMES)


def test_short_builds_are_given_time_nevertheless() -> None:
    assert after(*[0.01] * ENOUGH).seconds("module", "[]") == LEAST_SECONDS


def test_what_is_usual_changes_with_the_programs() -> None:
    assert after(*[1.0] * 500, *[3.0] * 64).seconds("module", "[]") == pytest.approx(3 * TIMES)


def test_modules_are_told_apart_and_the_unscheduled_program_is_waited_for() -> None:
    patience = after(*[1.0] * ENOUGH)
    assert patience.seconds("another", "[]") == math.inf
    assert patience.seconds("module", None) == math.inf


@pytest.mark.parametrize(
    ("cutoffs", "seconds"),
    [
        ([1e-6, 3e-6], LEAST_MEASURING),
        ([0.02, 0.11], CALLS * 0.11),
        ([2.0], 30.0),
        ([1e-6, None], 30.0),
        ([0.0], 30.0),
    ],
    ids=str,
)
def test_a_slow_candidate_is_given_up_by_what_the_best_takes(cutoffs: list[float | None], seconds: float) -> None:
    assert measuring_seconds(cutoffs, 30.0) == pytest.approx(seconds)
