"""The gain that more search is expected to bring."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

import pytest

from tuner.search.plateau import Finished, gain_of_next_minute

WINDOW = 4


def _trials(*latencies: float | None, seconds: float = 10.0, task: int = 0) -> list[Finished]:
    """Trials of a task, one every few ``seconds``."""
    return [Finished(seconds * position, task, latency) for position, latency in enumerate(latencies)]


def _gain(
    trials: list[Finished], weights: Mapping[int, int] = MappingProxyType({0: 1}), elsewhere: float = 0.0
) -> float:
    return gain_of_next_minute(trials, weights, window=WINDOW, elsewhere=elsewhere)


def test_the_gain_of_the_window_is_extrapolated_to_a_minute() -> None:
    assert _gain(_trials(2.0, 2.0, 1.9, 1.8, None)) == pytest.approx(0.1 * 60 / 40)


def test_a_window_without_a_gain_expects_none() -> None:
    assert _gain(_trials(1.0, 2.0, None, 1.5, 1.0)) == 0.0
    assert _gain(_trials(1.0, 2.0, 2.0, 2.0, 2.0, seconds=0.0)) == 0.0


def test_nothing_is_expected_before_the_window_is_full() -> None:
    assert _gain(_trials(2.0, 2.0, 2.0, 2.0)) == math.inf


def test_nothing_is_expected_while_a_task_has_no_latency() -> None:
    assert _gain(_trials(None, 2.0, 2.0, 2.0, 2.0)) == math.inf
    assert _gain(_trials(1.0, 1.0, 1.0, 1.0, 1.0), {0: 1, 1: 1}) == math.inf
    assert _gain(_trials(1.0, 1.0, 1.0, 1.0, 1.0), {}) == math.inf


def test_the_gain_is_that_of_the_whole_model() -> None:
    trials = [Finished(0.0, 0, 1.0), Finished(0.0, 1, 1.0), *_trials(1.0, 1.0, 1.0, 0.5, seconds=15.0)]
    assert _gain(trials, {0: 1, 1: 1}) == pytest.approx(0.5 / 2 * 60 / 45)
    assert _gain(trials, {0: 1, 1: 9}) == pytest.approx(0.5 / 10 * 60 / 45)
    assert _gain(trials, {0: 1, 1: 1}, elsewhere=8.0) == pytest.approx(0.5 / 10 * 60 / 45)


def test_a_pause_of_the_search_expects_less_of_what_came_before_it() -> None:
    trials = _trials(2.0, 2.0, 1.9, 1.8)
    paused = [*trials, Finished(trials[-1].ended + 3600, 0, 1.8)]
    assert _gain(paused) < _gain([*trials, Finished(40.0, 0, 1.8)])
