"""Gaussian process regression with a Matérn 5/2 kernel.

Numbers in brackets are equations of Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006.

    x      [n, d]   training inputs; all columns are on comparable scales
    y      [n]      training targets, standardised to mean 0 and standard deviation 1
    z      [m, d]   test inputs
    length scalar   length scale l of all columns
    noise  scalar   variance of the noise, as a share of the variance of the targets
    k(a, b)         (1 + r + r² / 3) exp(-r) with r = √5 |a - b| / l (Matérn 5/2, 4.17)
    K      [n, n]   k(x, x) + noise I, with lower Cholesky factor L
    alpha  [n]      K⁻¹ y

    mean(z) = k(z, x) alpha                        (2.25)

The length scale is the one with the largest log marginal likelihood (2.30) among a few. Scales of each column's own,
fitted by an optimiser, showed no gain (docs/benchmarks/ablation.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from tuner.cost_model.config import GaussianProcessConfig

FloatArray = npt.NDArray[np.floating[Any]]


class GaussianProcess:
    """A Gaussian process fitted to inputs [n, d] and targets [n], n at least 2."""

    def __init__(self, inputs: FloatArray, targets: FloatArray, config: GaussianProcessConfig) -> None:
        self._mean = float(targets.mean())
        self._deviation = float(targets.std()) or 1.0
        self._x = inputs
        standard = (targets - self._mean) / self._deviation
        fits = {length: _Fit(inputs, standard, length, config.noise) for length in config.length_scales}
        self._length, self._fit = max(fits.items(), key=lambda item: item[1].log_likelihood)

    def predict(self, inputs: FloatArray) -> FloatArray:
        """Return the posterior mean [m] at inputs [m, d]."""
        return _matern(inputs, self._x, self._length) @ self._fit.alpha * self._deviation + self._mean


class _Fit:
    """Alpha and the log marginal likelihood (2.30), up to a constant, of one length scale."""

    def __init__(self, x: FloatArray, y: FloatArray, length: float, noise: float) -> None:
        cholesky = np.linalg.cholesky(_matern(x, x, length) + noise * np.eye(len(x)))
        halfway = solve_triangular(cholesky, y, lower=True)
        self.alpha = solve_triangular(cholesky, halfway, lower=True, trans="T")
        self.log_likelihood = -0.5 * float(halfway @ halfway) - float(np.log(np.diag(cholesky)).sum())


def _matern(a: FloatArray, b: FloatArray, length: float) -> FloatArray:
    """Return k(a, b) [n, m] of inputs [n, d] and [m, d]."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    r = np.sqrt(5.0 * np.maximum(squares, 0.0)) / length
    return (1.0 + r + r**2 / 3.0) * np.exp(-r)
