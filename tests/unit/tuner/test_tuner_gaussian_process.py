"""The Gaussian process: what it expects where nothing was measured."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.cost_model.gaussian_process import GaussianProcess, _likelihood


def smooth(rows: np.ndarray) -> np.ndarray:
    return np.sin(rows[:, 0]) + 0.5 * rows[:, 1]


def test_what_was_not_measured_is_told_from_what_was() -> None:
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-2, 2, (60, 2)), rng.uniform(-1.5, 1.5, (40, 2))
    expected, _ = GaussianProcess(seen, smooth(seen)).predict(unseen)
    assert np.abs(expected - smooth(unseen)).max() < 0.1


def test_where_nothing_was_measured_the_mean_is_expected() -> None:
    seen = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    expected, deviation = GaussianProcess(seen, smooth(seen)).predict(np.full((1, 2), 500.0))
    assert expected == pytest.approx(smooth(seen).mean())
    assert deviation == pytest.approx(smooth(seen).std())


def test_the_farther_from_what_was_measured_the_less_is_known() -> None:
    seen = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    away = np.column_stack([np.linspace(1.0, 9.0, 12), np.zeros(12)])
    _, deviations = GaussianProcess(seen, smooth(seen)).predict(away)
    assert (np.diff(deviations) > 0).all()


def test_columns_that_do_not_matter_are_found_out() -> None:
    """Thirty columns of noise beside the two that count: one length for all would drown them."""
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-2, 2, (60, 32)), rng.uniform(-1.5, 1.5, (200, 32))
    expected, _ = GaussianProcess(seen, smooth(seen)).predict(unseen)
    assert np.corrcoef(expected, smooth(unseen))[0, 1] > 0.9


def test_the_slopes_are_the_likelihoods() -> None:
    rng = np.random.default_rng(0)
    rows, values, step = rng.normal(size=(30, 4)), rng.normal(size=30), 1e-6
    value, slopes = _likelihood(rows, values, 0.1)
    stretched = [_likelihood(rows * np.where(np.arange(4) == i, np.exp(step), 1.0), values, 0.1)[0] for i in range(4)]
    noisier, _ = _likelihood(rows, values, 0.1 * float(np.exp(step)))
    assert (np.array([*stretched, noisier]) - value) / step == pytest.approx(slopes, rel=1e-3, abs=1e-3)


def test_surprises_are_as_large_as_it_says() -> None:
    """Of what was not measured, about two thirds lie within a standard deviation, and nearly all within three."""
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-4, 4, (30, 2)), rng.uniform(-4, 4, (400, 2))
    expected, deviations = GaussianProcess(seen, smooth(seen)).predict(unseen)
    off = np.abs(expected - smooth(unseen)) / deviations
    assert (off < 1).mean() > 0.5
    assert (off < 3).mean() > 0.95


def test_noise_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    seen = rng.uniform(-2, 2, (80, 2))
    expected, _ = GaussianProcess(seen, smooth(seen) + 0.3 * rng.standard_normal(80)).predict(seen)
    assert np.abs(expected - smooth(seen)).mean() < 0.2


def test_equal_values_and_equal_rows_do_no_harm() -> None:
    rows = np.zeros((4, 3))
    expected, _ = GaussianProcess(rows, np.full(4, 7.0)).predict(np.ones((2, 3)))
    assert np.allclose(expected, 7.0)


def test_what_it_believes_to_be_measured_surprises_it_less_and_changes_no_expectation() -> None:
    rng = np.random.default_rng(0)
    seen, awaited, others = rng.uniform(-2, 2, (20, 2)), rng.uniform(-2, 2, (5, 2)), rng.uniform(-3, 3, (100, 2))
    process = GaussianProcess(seen, smooth(seen))
    believing = process.believing(awaited[:2]).believing(awaited[2:])
    for rows in (awaited, others):
        expected, deviations = process.predict(rows)
        expected_now, deviations_now = believing.predict(rows)
        assert np.allclose(expected_now, expected, atol=1e-6)
        assert (deviations_now <= deviations + 1e-9).all()
    assert (believing.predict(awaited)[1] < 0.9 * process.predict(awaited)[1]).all()
