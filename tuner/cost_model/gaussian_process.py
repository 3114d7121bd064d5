"""A Gaussian process over rows of numbers: what a few dozen measurements tell of what was not measured yet.

Matérn kernel of smoothness 5/2 with a length for each column: one that matters little is given a great length, known as
automatic relevance determination. Lengths and noise are the likeliest, given the measurements and a prior that keeps
the lengths like each other (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 5.1 and 5.4).
"""

from __future__ import annotations

from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular
from scipy.optimize import minimize

Matrix = npt.NDArray[np.floating[Any]]

_LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Of all columns, to begin with: the likeliest of these."""
_NOISE = 0.05
"""To begin with; a share of the values' variance."""
_NOISES = (0.005, 0.5)
_FAR = 3.0
"""Logarithms of lengths end so far from where they began."""
_STEPS = 30
"""Of the climb to the likeliest, at most."""


class GaussianProcess:
    """Fitted to ``rows`` [measurements, columns], of like scales, and ``values`` [measurements]; at least two."""

    def __init__(self, rows: Matrix, values: Matrix) -> None:
        self._mean = float(values.mean())
        self._spread = float(values.std()) or 1.0
        self._values = (values - self._mean) / self._spread
        self._scales, self._noise = _likeliest(rows, self._values)
        self._rows = rows * self._scales
        self._solve()

    def predict(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Expected values [rows] of rows [rows, columns], and the standard deviations [rows] from what is expected."""
        likeness, _ = _matern(rows * self._scales, self._rows)
        known = (solve_triangular(self._factor, likeness.T, lower=True) ** 2).sum(axis=0)
        deviations = np.sqrt(np.maximum(1.0 - known, 0.0))
        return likeness @ self._weights * self._spread + self._mean, deviations * self._spread

    def believing(self, rows: Matrix) -> GaussianProcess:
        """As if ``rows`` [measurements, columns] had been measured, too, and had come out as expected.

        Expectations stay, deviations shrink around the rows (GP-BUCB, Desautels et al., JMLR 2014).
        """
        believing = copy(self)
        expected = (self.predict(rows)[0] - self._mean) / self._spread
        believing._rows = np.concatenate([self._rows, rows * self._scales])
        believing._values = np.concatenate([self._values, expected])
        believing._solve()
        return believing

    def _solve(self) -> None:
        covariance = _matern(self._rows, self._rows)[0] + self._noise * np.eye(len(self._rows))
        self._factor = np.linalg.cholesky(covariance)
        self._weights = np.linalg.solve(covariance, self._values)


def _likeliest(rows: Matrix, values: Matrix) -> tuple[Matrix, float]:
    """What each column is multiplied by [columns], and the noise."""
    length = max(_LENGTHS, key=lambda length: _likelihood(rows / length, values, _NOISE)[0])

    def unlikelihood(steps: Matrix) -> tuple[float, Matrix]:
        """And its slopes; of steps [columns + 1] from where all began, on the logarithms."""
        scaled = rows / length * np.exp(steps[:-1])
        value, slopes = _likelihood(scaled, values, _NOISE * float(np.exp(steps[-1])))
        return 0.5 * float(steps @ steps) - value, steps - slopes

    bounds = [(-_FAR, _FAR)] * rows.shape[1] + [tuple(np.log(_NOISES) - np.log(_NOISE))]
    start = np.zeros(len(bounds))
    steps = minimize(unlikelihood, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": _STEPS}).x
    return np.exp(steps[:-1]) / length, _NOISE * float(np.exp(steps[-1]))


def _likelihood(rows: Matrix, values: Matrix, noise: float) -> tuple[float, Matrix]:
    """Its logarithm, but for a constant, and its slopes by the logarithms of each column's scale and of the noise."""
    likeness, slope = _matern(rows, rows)
    covariance = likeness + noise * np.eye(len(rows))
    inverse = np.linalg.inv(covariance)
    weights = inverse @ values
    _, logarithm = np.linalg.slogdet(covariance)
    by_covariance = 0.5 * (np.outer(weights, weights) - inverse)
    by_square = by_covariance * slope
    by_scales = 4.0 * (by_square.sum(axis=0) @ rows**2 - (rows * (by_square @ rows)).sum(axis=0))
    value = -0.5 * float(values @ weights) - 0.5 * float(logarithm)
    return value, np.append(by_scales, noise * np.trace(by_covariance))


def _matern(rows: Matrix, others: Matrix) -> tuple[Matrix, Matrix]:
    """How like each other rows are [rows, others], 1 at no distance, and its slope by the square of the distance."""
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2.0 * rows @ others.T
    scaled = np.sqrt(5.0 * np.maximum(squares, 0.0))
    decay = np.exp(-scaled)
    return (1.0 + scaled + scaled**2 / 3.0) * decay, -5.0 / 6.0 * (1.0 + scaled) * decay
