"""How the closing of a job is planned within its time."""

from __future__ import annotations

import math

import pytest

from tuner.closing import Closing, beside, closing_seconds, model_seconds, plan_race, together
from tuner.search.config import SearchConfig

CONFIG = SearchConfig()


@pytest.mark.parametrize(("share", "contenders", "repeats"), [(0.06, 24, True), (0.04, 8, False), (0.0, 8, False)])
def test_without_a_limit_tasks_that_matter_have_all_contenders(share: float, contenders: int, repeats: bool) -> None:
    plan = plan_race(share, 1.0 - share, math.inf, CONFIG)
    assert (plan.contenders, plan.repeats) == (contenders, repeats)
    assert plan.seconds == CONFIG.race_seconds


def test_the_only_task_of_a_job_has_all_of_its_time() -> None:
    assert plan_race(1.0, 0.0, 9.0, CONFIG).seconds == 9.0
    assert plan_race(1.0, 0.0, 30.0, CONFIG).repeats
    assert plan_race(1.0, 0.0, 30.0, CONFIG).seconds == 10.0
    assert plan_race(1.0, 0.0, 1e9, CONFIG).seconds == CONFIG.race_seconds


@pytest.mark.parametrize("left", [0.0, -50.0, 1.0])
def test_a_race_without_time_is_run_with_a_contender_at_least(left: float) -> None:
    plan = plan_race(0.5, 0.5, left, CONFIG)
    assert 1 <= plan.contenders <= 5
    assert 0 < plan.seconds <= 0.5
    assert not plan.repeats


@pytest.mark.parametrize("left", [4.0, 25.0, 70.0])
def test_races_follow_the_shares_and_stay_within_what_is_left(left: float) -> None:
    shares = [0.5, 0.3, 0.12, 0.06, 0.02]
    started, seconds = left, []
    for place, share in enumerate(shares):
        plan = plan_race(share, math.fsum(shares[place + 1 :]), left, CONFIG)
        seconds.append(plan.seconds * (3 if plan.repeats else 1))
        left -= seconds[-1]
    assert seconds == sorted(seconds, reverse=True)
    assert sum(seconds) <= started + len(shares) * 0.1


def test_a_small_function_of_many_takes_a_tenth_of_a_second() -> None:
    plan = plan_race(1 / 267, 266 / 267, 10.0, CONFIG)
    assert plan.contenders >= 3
    assert plan.seconds <= 0.1


def _kept(
    races: int,
    *builds: float,
    whole: float = 1e4,
    share: float = 0.01,
    unscheduled: float = 0.0,
) -> float:
    return closing_seconds(whole, [Closing(share, unscheduled, 64)] * races, builds, CONFIG)


def test_a_slow_machine_keeps_more_time_for_its_races() -> None:
    assert _kept(50, 0.2) < 30.0
    assert _kept(50, 0.1, 0.8, 0.9) > 2 * _kept(50, 0.1, 0.2, 0.9)
    assert _kept(50, share=0.06) > _kept(50) > 0
    assert model_seconds(1, [1.0]) == 0.0 < model_seconds(2, [1.0])


def test_slow_unscheduled_functions_keep_the_time_of_their_calls() -> None:
    assert 8 * 0.5 < _kept(3, unscheduled=0.5) / 3 - _kept(3) / 3 < 20 * 0.5


def test_time_is_kept_for_the_rounds_of_tasks_that_matter_but_most_is_for_the_search() -> None:
    assert _kept(1, share=1.0, whole=20.0) - _kept(1, whole=20.0) == pytest.approx(
        4.0 + _beside(share=1.0) - _beside(share=0.01)
    )
    assert _kept(70, 3.0, whole=40.0) == pytest.approx(40.0 * CONFIG.closing_share)


def _beside(share: float) -> float:
    return beside([Closing(share, 0.0, 64)], [], CONFIG)


def test_small_functions_are_raced_together_unless_their_arguments_are_large() -> None:
    little, large = Closing(0.01, 0.0, 64), Closing(0.01, 0.0, 2**25 + 1)
    assert together([Closing(0.9, 0.0, 64), little, little], CONFIG) == 1
    assert together([little, little], CONFIG) == 2
    assert 2 < together([little] * 100, CONFIG) < 20
    assert together([large, large, little], CONFIG) == 1
    assert together([little, large, large], CONFIG) == 2
    assert together([Closing(0.01, 0.0, 2**40)], CONFIG) == 1
