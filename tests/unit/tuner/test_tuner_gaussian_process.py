"""The Gaussian process: what it predicts where nothing was measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tuner.cost_model.gaussian_process import GaussianProcess, GaussianProcessConfig, _log_likelihood

CONFIG = GaussianProcessConfig()


def smooth(inputs: np.ndarray) -> np.ndarray:
    return np.sin(inputs[:, 0]) + 0.5 * inputs[:, 1]


def fitted(inputs: np.ndarray, targets: np.ndarray, config: GaussianProcessConfig = CONFIG) -> GaussianProcess:
    return GaussianProcess(inputs, targets, config)


def test_a_smooth_function_is_predicted_between_its_measurements() -> None:
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-2, 2, (60, 2)), rng.uniform(-1.5, 1.5, (40, 2))
    mean, _ = fitted(seen, smooth(seen)).predict(unseen)
    assert np.abs(mean - smooth(unseen)).max() < 0.1


def test_far_from_all_measurements_the_prior_is_predicted() -> None:
    seen = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    mean, deviation = fitted(seen, smooth(seen)).predict(np.full((1, 2), 500.0))
    assert mean == pytest.approx(smooth(seen).mean())
    assert deviation == pytest.approx(smooth(seen).std())


def test_the_deviation_grows_with_the_distance_from_the_measurements() -> None:
    seen = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    away = np.column_stack([np.linspace(1.0, 9.0, 12), np.zeros(12)])
    _, deviations = fitted(seen, smooth(seen)).predict(away)
    assert (np.diff(deviations) > 0).all()


def _correlation(config: GaussianProcessConfig) -> float:
    """Return how well two columns that matter are predicted among thirty that do not."""
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-2, 2, (60, 32)), rng.uniform(-1.5, 1.5, (200, 32))
    mean, _ = fitted(seen, smooth(seen), config).predict(unseen)
    return float(np.corrcoef(mean, smooth(unseen))[0, 1])


def test_columns_that_do_not_matter_get_long_length_scales() -> None:
    assert _correlation(CONFIG) > 0.9


def test_without_iterations_all_columns_keep_one_length_scale() -> None:
    assert 1 - _correlation(replace(CONFIG, max_iterations=0)) > 10 * (1 - _correlation(CONFIG))


def test_the_gradient_is_that_of_the_log_likelihood() -> None:
    rng = np.random.default_rng(0)
    x, y, step = rng.normal(size=(30, 4)), rng.normal(size=30), 1e-6
    value, gradient = _log_likelihood(x, y, 0.1)
    stretched = [_log_likelihood(x * np.where(np.arange(4) == i, np.exp(step), 1.0), y, 0.1)[0] for i in range(4)]
    noisier, _ = _log_likelihood(x, y, 0.1 * float(np.exp(step)))
    assert (np.array([*stretched, noisier]) - value) / step == pytest.approx(gradient, rel=1e-3, abs=1e-3)


def test_errors_are_as_large_as_the_deviations() -> None:
    """About two thirds of the errors are within a standard deviation, and nearly all within three."""
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-4, 4, (30, 2)), rng.uniform(-4, 4, (400, 2))
    mean, deviations = fitted(seen, smooth(seen)).predict(unseen)
    errors = np.abs(mean - smooth(unseen)) / deviations
    assert (errors < 1).mean() > 0.5
    assert (errors < 3).mean() > 0.95


def test_noise_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    seen = rng.uniform(-2, 2, (80, 2))
    mean, _ = fitted(seen, smooth(seen) + 0.3 * rng.standard_normal(80)).predict(seen)
    assert np.abs(mean - smooth(seen)).mean() < 0.2


def test_equal_targets_and_equal_inputs_do_no_harm() -> None:
    mean, _ = fitted(np.zeros((4, 3)), np.full(4, 7.0)).predict(np.ones((2, 3)))
    assert np.allclose(mean, 7.0)


def test_conditioning_on_pending_points_shrinks_deviations_and_keeps_means() -> None:
    rng = np.random.default_rng(0)
    seen, pending, others = rng.uniform(-2, 2, (20, 2)), rng.uniform(-2, 2, (5, 2)), rng.uniform(-3, 3, (100, 2))
    process = fitted(seen, smooth(seen))
    conditioned = process.condition_on(pending[:2]).condition_on(pending[2:])
    for inputs in (pending, others):
        mean, deviations = process.predict(inputs)
        conditioned_mean, conditioned_deviations = conditioned.predict(inputs)
        assert np.allclose(conditioned_mean, mean, atol=1e-6)
        assert (conditioned_deviations <= deviations + 1e-9).all()
    assert (conditioned.predict(pending)[1] < 0.9 * process.predict(pending)[1]).all()
