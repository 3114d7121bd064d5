"""The Gaussian process: what it predicts where nothing was measured."""

from __future__ import annotations

import numpy as np
import pytest

from tuner.cost_model.config import GaussianProcessConfig
from tuner.cost_model.gaussian_process import GaussianProcess

CONFIG = GaussianProcessConfig()


def smooth(inputs: np.ndarray) -> np.ndarray:
    return np.sin(inputs[:, 0]) + 0.5 * inputs[:, 1]


def fitted(inputs: np.ndarray, targets: np.ndarray, config: GaussianProcessConfig = CONFIG) -> GaussianProcess:
    return GaussianProcess(inputs, targets, config)


def test_a_smooth_function_is_predicted_between_its_measurements() -> None:
    rng = np.random.default_rng(0)
    seen, unseen = rng.uniform(-2, 2, (60, 2)), rng.uniform(-1.5, 1.5, (40, 2))
    mean = fitted(seen, smooth(seen)).predict(unseen)
    assert np.abs(mean - smooth(unseen)).max() < 0.15


def test_far_from_all_measurements_the_prior_is_predicted() -> None:
    seen = np.random.default_rng(0).uniform(-1, 1, (40, 2))
    assert fitted(seen, smooth(seen)).predict(np.full((1, 2), 500.0)) == pytest.approx(smooth(seen).mean())


@pytest.mark.parametrize("length", [1.0, 16.0])
def test_the_likeliest_length_scale_is_taken(length: float) -> None:
    """A function that varies slowly is predicted far from its measurements only if that is found out."""
    rng = np.random.default_rng(0)
    seen, unseen = 2 * length * rng.uniform(-1, 1, (60, 2)), 2 * length * rng.uniform(-1, 1, (200, 2))

    def error(config: GaussianProcessConfig) -> float:
        mean = fitted(seen, smooth(seen / length), config).predict(unseen)
        return float(np.abs(mean - smooth(unseen / length)).mean())

    others = [scale for scale in CONFIG.length_scales if not length / 2 <= scale <= 4 * length]
    assert error(CONFIG) < min(error(GaussianProcessConfig((scale,))) for scale in others)


def test_noise_is_not_learned() -> None:
    rng = np.random.default_rng(0)
    seen = rng.uniform(-2, 2, (80, 2))
    mean = fitted(seen, smooth(seen) + 0.3 * rng.standard_normal(80)).predict(seen)
    assert np.abs(mean - smooth(seen)).mean() < 0.2


def test_equal_targets_and_equal_inputs_do_no_harm() -> None:
    mean = fitted(np.zeros((4, 3)), np.full(4, 7.0)).predict(np.ones((2, 3)))
    assert np.allclose(mean, 7.0)
