"""Which task gets the next trials."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.support.tuner_programs import elementwise, matmul
from tuner.allocation import Progress, negligible, next_task, trivial, tuned_seconds, untuned_seconds
from tuner.search.config import SearchConfig
from tuner.types import Operation

CONFIG = SearchConfig()


def _progress(
    weight: int,
    *latencies: float | None,
    baseline: float | None = 1.0,
    exhausted: bool = False,
    estimate: float = 1.0,
) -> Progress:
    progress = Progress(weight, estimate, baseline, proposed=len(latencies), exhausted=exhausted)
    for latency in latencies:
        progress.record(latency)
    return progress


def _shares(tasks: list[Progress], trials: int) -> list[int]:
    """Trials that each task gets if none brings anything."""
    before = [task.proposed for task in tasks]
    for _ in range(trials):
        number = next_task(tasks, CONFIG)
        assert number is not None
        tasks[number].proposed += 1
        tasks[number].record(None)
    return [task.proposed - was for task, was in zip(tasks, before, strict=True)]


def test_the_curve_is_the_best_so_far() -> None:
    assert _progress(1, None, 3.0, 4.0, None, 2.0).curve == [None, 3.0, 3.0, 3.0, 2.0]


def test_untried_tasks_go_first_the_heaviest_before_the_others() -> None:
    tasks = [_progress(1, 1e-3), _progress(1), _progress(100)]
    assert next_task(tasks, CONFIG) == 2


def test_no_task_has_a_second_batch_before_each_had_its_first() -> None:
    tasks = [_progress(9, 0.5), *(_progress(1, baseline=None, estimate=1e-6 * (i % 5)) for i in range(30))]
    order = []
    for _ in range(30):
        number = next_task(tasks, CONFIG)
        assert number is not None
        order.append(tasks[number].estimate)
        tasks[number].proposed += 1
        tasks[number].record(1e-3 if number % 2 else None)
    assert 0 < tasks[0].proposed == len(tasks[0].curve) == 1
    assert order == sorted(order, reverse=True)
    assert next_task(tasks, CONFIG) == 0


def test_what_is_measured_of_an_untried_task_takes_the_place_of_its_estimate() -> None:
    tasks = [_progress(1, baseline=2.0, estimate=5.0), _progress(1, baseline=None, estimate=3.0)]
    assert next_task(tasks, CONFIG) == 1


def test_a_task_waits_for_its_first_trial_before_it_gets_more() -> None:
    heavy, light = Progress(9, 1.0, proposed=1), _progress(1, 1e-3)
    assert next_task([heavy, light], CONFIG) == 1
    assert next_task([heavy], CONFIG) is None
    heavy.record(1.0)
    assert next_task([heavy, light], CONFIG) == 0


def test_a_task_whose_first_candidate_failed_counts_with_its_unscheduled_time() -> None:
    failed = _progress(1, None, baseline=None, estimate=0.2)
    assert next_task([_progress(1, 1e-3, baseline=None), failed], CONFIG) == 1
    assert next_task([_progress(1, 0.3, baseline=None), failed], CONFIG) == 0


def test_tasks_that_hardly_matter_get_no_second_batch() -> None:
    tasks = [_progress(1, *[10.0] * 400, baseline=20.0), *(_progress(4, 0.02) for _ in range(5))]
    assert trivial(tasks, CONFIG) == {1, 2, 3, 4, 5}
    assert _shares(tasks, 100) == [100, 0, 0, 0, 0, 0]


def test_tasks_that_hardly_matter_get_what_the_others_cannot_use() -> None:
    tasks = [_progress(1, 10.0, baseline=20.0, exhausted=True), _progress(1, 0.02), _progress(1, 0.03)]
    assert next_task(tasks, CONFIG) == 2


def test_many_small_tasks_matter_together() -> None:
    alike = [_progress(1, 1e-3, baseline=1e-3) for _ in range(310)]
    little = trivial(alike, CONFIG)
    assert len(little) == 15
    assert next_task(alike, CONFIG) not in little
    assert trivial([_progress(99, 1.0), _progress(1, 1.0)], CONFIG) == set()
    assert trivial([_progress(100, 1.0), _progress(1, 1.0)], CONFIG) == {1}


def test_a_task_of_unknown_latency_is_not_trivial() -> None:
    assert trivial([_progress(1, 1.0), Progress(1), _progress(1, None, baseline=None)], CONFIG) == set()
    assert trivial([], CONFIG) == set()


def test_functions_that_hardly_matter_even_unscheduled_are_negligible() -> None:
    copy = replace(elementwise(24), operation=Operation("copy"))
    little = [replace(copy, args=copy.args * (1 + i)) for i in range(4)]
    product = replace(matmul(), operation=Operation("matmul", "float32", 1e9))
    tasks = [(product, 2), *((each, 1) for each in little)]
    assert negligible(tasks, None, CONFIG) == {1, 2, 3, 4}
    # The faster the machine, the more the others matter; and what is called often matters.
    assert 4 not in negligible(tasks, 1e15, CONFIG)
    assert negligible([(product, 2), (copy, 10_000)], None, CONFIG) == set()
    # Who computes an unknown amount may matter.
    unknown = replace(copy, operation=Operation("", "float32", None))
    assert negligible([(product, 2), (unknown, 1)], None, CONFIG) == set()
    assert negligible([(copy, 1)], None, CONFIG) == set()
    many = [(copy, 1)] * 100_000
    assert 0 < len(negligible([(product, 2), *many], None, CONFIG)) < 90_000


def test_a_negligible_task_gets_no_trials_and_has_the_time_of_its_estimate() -> None:
    little = Progress(1, 1e-6, negligible=True)
    assert next_task([little, _progress(1, 1e-3, exhausted=True)], CONFIG) is None
    assert next_task([little, _progress(1, 1e-3)], CONFIG) == 1
    assert little.latency == 1e-6


@pytest.mark.parametrize("flop", [None, 4e9])
def test_the_untuned_time_grows_with_operations_and_bytes(flop: float | None) -> None:
    small, large = elementwise(), matmul()
    assert untuned_seconds(small) > 0
    heavy = replace(small, operation=Operation("matmul", "float32", flop))
    assert untuned_seconds(heavy) >= (flop or 0.0) / 1e9
    assert untuned_seconds(replace(small, args=(*small.args, *large.args))) > untuned_seconds(small)
    assert 0 < tuned_seconds(heavy, None) < untuned_seconds(heavy)


def test_the_heavier_of_two_like_tasks_goes_first() -> None:
    assert next_task([_progress(1, 1e-3), _progress(8, 1e-3)], CONFIG) == 1


def test_the_slower_of_two_like_tasks_goes_first() -> None:
    assert next_task([_progress(1, 1e-3, baseline=1e-3), _progress(1, 5e-3, baseline=5e-3)], CONFIG) == 1


def test_the_task_that_lately_gained_goes_first() -> None:
    flat = _progress(1, *[1e-3] * 48)
    falling = _progress(1, *[2e-3 * 0.98**i for i in range(48)])
    assert next_task([flat, falling], CONFIG) == 1


def test_gains_of_long_ago_are_forgotten() -> None:
    was_falling = _progress(1, *[0.5**i for i in range(10)], *[1e-3] * 60)
    flat = _progress(1, *[1e-3] * 20)
    assert next_task([was_falling, flat], CONFIG) == 1


def test_exhausted_tasks_get_nothing() -> None:
    assert next_task([_progress(1, exhausted=True), _progress(1, 1e-9)], CONFIG) == 1
    assert next_task([_progress(1, exhausted=True)], CONFIG) is None
    assert next_task([], CONFIG) is None


def test_trials_follow_the_time_that_tasks_take() -> None:
    shares = _shares([_progress(1, 1e-3, baseline=1e-3), _progress(3, 1e-3, baseline=1e-3)], 400)
    assert 2.5 < shares[1] / shares[0] < 3.5


def test_a_task_whose_trials_all_fail_does_not_starve_the_others() -> None:
    failing = _progress(1, *[None] * 8, baseline=1e-3)
    working = _progress(1, *[1e-3] * 8, baseline=2e-3)
    shares = _shares([failing, working], 100)
    assert min(shares) >= 30
