"""Gaussian process regression with a Matérn 5/2 kernel and automatic relevance determination.

Numbers in brackets are equations and sections of Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006.

    x      [n, d]   training inputs; all columns are on comparable scales
    y      [n]      training targets, standardised to mean 0 and standard deviation 1
    z      [m, d]   test inputs
    scales [d]      inverse length scales 1 / l: each column of an input is multiplied by its scale (ARD, section 5.1)
    noise  scalar   variance of the noise, as a share of the variance of the targets
    k(a, b)         (1 + r + r² / 3) exp(-r) with r = √5 |a - b| of scaled inputs (Matérn 5/2, 4.17)
    K      [n, n]   k(x, x) + noise I, with lower Cholesky factor L
    alpha  [n]      K⁻¹ y

    mean(z)     = k(z, x) alpha                    (2.25)
    variance(z) = 1 - |L⁻¹ k(x, z)|²               (2.26)

Scales and noise minimise the negative log marginal likelihood (2.30) with a standard normal prior on the logarithms of
scales and noise, relative to where the optimiser starts: columns share one length scale unless the data say otherwise.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

FloatArray = npt.NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class GaussianProcessConfig:
    """How the hyperparameters are fitted. None of the values is tuned."""

    length_scales: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0)
    """Length scales of all columns from which the optimiser may start; it starts from the most likely one."""
    noise: float = 0.05
    """Noise variance from which the optimiser starts, as a share of the variance of the targets."""
    noise_bounds: tuple[float, float] = (0.005, 0.5)
    """Bounds of the noise variance, as shares of the variance of the targets."""
    max_log_step: float = 3.0
    """Bound on how far the natural logarithm of a length scale moves from its start."""
    max_iterations: int = 30
    """Iterations of L-BFGS. 0 keeps one length scale for all columns and the initial noise."""


class GaussianProcess:
    """A Gaussian process fitted to inputs [n, d] and targets [n], n at least 2."""

    def __init__(self, inputs: FloatArray, targets: FloatArray, config: GaussianProcessConfig) -> None:
        self._mean = float(targets.mean())
        self._deviation = float(targets.std()) or 1.0
        self._y = (targets - self._mean) / self._deviation
        self._scales, self._noise = _fit_hyperparameters(inputs, self._y, config)
        self._x = inputs * self._scales
        self._factorise()

    def predict(self, inputs: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the posterior mean [m] and standard deviation [m], without noise, at inputs [m, d]."""
        cross, _ = _matern(inputs * self._scales, self._x)
        explained = (solve_triangular(self._cholesky, cross.T, lower=True) ** 2).sum(axis=0)
        deviations = np.sqrt(np.maximum(1.0 - explained, 0.0))
        return cross @ self._alpha * self._deviation + self._mean, deviations * self._deviation

    def condition_on(self, pending: FloatArray) -> GaussianProcess:
        """Return the process as if inputs [p, d] had been measured with their posterior means as results.

        Means stay as they are and deviations shrink (kriging believer, Ginsbourger et al., 2010; GP-BUCB, Desautels et
        al., JMLR 2014).
        """
        conditioned = copy(self)
        fantasies = (self.predict(pending)[0] - self._mean) / self._deviation
        conditioned._x = np.concatenate([self._x, pending * self._scales])
        conditioned._y = np.concatenate([self._y, fantasies])
        conditioned._factorise()
        return conditioned

    def _factorise(self) -> None:
        covariance = _matern(self._x, self._x)[0] + self._noise * np.eye(len(self._x))
        self._cholesky = np.linalg.cholesky(covariance)
        self._alpha = np.linalg.solve(covariance, self._y)


def _fit_hyperparameters(x: FloatArray, y: FloatArray, config: GaussianProcessConfig) -> tuple[FloatArray, float]:
    """Return the scales [d] and the noise."""
    length = max(config.length_scales, key=lambda length: _log_likelihood(x / length, y, config.noise)[0])
    if config.max_iterations == 0:  # of which SciPy would make one
        return np.full(x.shape[1], 1.0 / length), config.noise

    def negative_log_posterior(theta: FloatArray) -> tuple[float, FloatArray]:
        """Return it and its gradient; theta [d + 1] are logarithms of scales and noise, relative to the start."""
        scaled = x / length * np.exp(theta[:-1])
        value, gradient = _log_likelihood(scaled, y, config.noise * float(np.exp(theta[-1])))
        return 0.5 * float(theta @ theta) - value, theta - gradient

    bounds = [(-config.max_log_step, config.max_log_step)] * x.shape[1]
    bounds += [tuple(np.log(config.noise_bounds) - np.log(config.noise))]
    options = {"maxiter": config.max_iterations}
    start = np.zeros(len(bounds))
    theta = minimize(negative_log_posterior, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options).x
    return np.exp(theta[:-1]) / length, config.noise * float(np.exp(theta[-1]))


def _log_likelihood(x: FloatArray, y: FloatArray, noise: float) -> tuple[float, FloatArray]:
    """Return the log marginal likelihood up to a constant (2.30) of scaled inputs, and its gradient [d + 1] (5.9).

    The gradient is by the logarithms of the columns' scales and of the noise.
    """
    kernel, slope = _matern(x, x)
    covariance = kernel + noise * np.eye(len(x))
    inverse = np.linalg.inv(covariance)
    alpha = inverse @ y
    _, log_determinant = np.linalg.slogdet(covariance)
    by_covariance = 0.5 * (np.outer(alpha, alpha) - inverse)
    by_distance = by_covariance * slope
    by_scales = 4.0 * (by_distance.sum(axis=0) @ x**2 - (x * (by_distance @ x)).sum(axis=0))
    value = -0.5 * float(y @ alpha) - 0.5 * float(log_determinant)
    return value, np.append(by_scales, noise * np.trace(by_covariance))


def _matern(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return k(a, b) [n, m] of scaled inputs [n, d] and [m, d], and its derivative by the squared distance."""
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2.0 * a @ b.T
    r = np.sqrt(5.0 * np.maximum(squares, 0.0))
    decay = np.exp(-r)
    return (1.0 + r + r**2 / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay
