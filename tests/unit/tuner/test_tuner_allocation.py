"""Which task gets the next trials."""

from __future__ import annotations

import math

from tuner.allocation import Progress, next_task
from tuner.search.config import SearchConfig

CONFIG = SearchConfig()


def _progress(weight: int, *latencies: float | None, baseline: float | None = 1.0, exhausted: bool = False) -> Progress:
    progress = Progress(weight, baseline=baseline, proposed=len(latencies), exhausted=exhausted)
    for latency in latencies:
        progress.record(latency)
    return progress


def _shares(tasks: list[Progress], trials: int) -> list[int]:
    """Trials that each task gets if none brings anything."""
    before = [task.proposed for task in tasks]
    for _ in range(trials):
        number = next_task(tasks, 1, CONFIG)
        assert number is not None
        tasks[number].proposed += 1
        tasks[number].record(None)
    return [task.proposed - was for task, was in zip(tasks, before, strict=True)]


def test_the_curve_is_the_best_so_far() -> None:
    assert _progress(1, None, 3.0, 4.0, None, 2.0).curve == [None, 3.0, 3.0, 3.0, 2.0]


def test_untried_tasks_go_first_the_heaviest_before_the_others() -> None:
    tasks = [_progress(1, 1e-3), _progress(1), _progress(100)]
    assert next_task(tasks, 1, CONFIG) == 2


def test_an_untried_task_that_hardly_matters_waits_where_budget_is_short() -> None:
    tasks = [_progress(1, 0.5), _progress(1, baseline=1e-6), _progress(1, baseline=1e-5)]
    assert next_task(tasks, 1, CONFIG) == 0
    assert next_task(tasks, 2, CONFIG) == 2


def test_untried_tasks_go_first_even_where_no_baseline_is_known() -> None:
    tasks = [_progress(1, 5.0, baseline=None), _progress(1, baseline=None)]
    assert next_task(tasks, 1, CONFIG) == 1


def test_the_heavier_of_two_like_tasks_goes_first() -> None:
    assert next_task([_progress(1, 1e-3), _progress(8, 1e-3)], 1, CONFIG) == 1


def test_the_slower_of_two_like_tasks_goes_first() -> None:
    assert next_task([_progress(1, 1e-3, baseline=1e-3), _progress(1, 5e-3, baseline=5e-3)], 1, CONFIG) == 1


def test_the_task_that_lately_gained_goes_first() -> None:
    flat = _progress(1, *[1e-3] * 48)
    falling = _progress(1, *[2e-3 * 0.98**i for i in range(48)])
    assert next_task([flat, falling], 1, CONFIG) == 1


def test_gains_of_long_ago_are_forgotten() -> None:
    was_falling = _progress(1, *[0.5**i for i in range(10)], *[1e-3] * 60)
    flat = _progress(1, *[1e-3] * 20)
    assert next_task([was_falling, flat], 1, CONFIG) == 1


def test_exhausted_tasks_get_nothing() -> None:
    assert next_task([_progress(1, exhausted=True), _progress(1, 1e-9)], 1, CONFIG) == 1
    assert next_task([_progress(1, exhausted=True)], 1, CONFIG) is None
    assert next_task([], 1, CONFIG) is None


def test_trials_follow_the_time_that_tasks_take() -> None:
    shares = _shares([_progress(1, 1e-3, baseline=1e-3), _progress(3, 1e-3, baseline=1e-3)], 400)
    assert 2.5 < shares[1] / shares[0] < 3.5


def test_a_task_whose_trials_all_fail_does_not_starve_the_others() -> None:
    failing = _progress(1, *[None] * 8, baseline=1e-3)
    working = _progress(1, *[1e-3] * 8, baseline=2e-3)
    shares = _shares([failing, working], 100)
    assert min(shares) >= 30


def test_a_task_may_be_proposed_to_before_anything_came_back() -> None:
    waiting = Progress(1, baseline=1e-3, proposed=8)
    assert 0 < waiting.expected_saving(CONFIG) < math.inf
    assert 0 < Progress(1, proposed=8).expected_saving(CONFIG) < math.inf
