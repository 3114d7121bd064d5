"""A Gaussian process over rows of numbers: what a few dozen measurements tell of what was not measured yet.

Matérn kernel of smoothness 5/2, one length for all columns; length and noise are those that make the measurements
likeliest, out of a small grid (Rasmussen and Williams, Gaussian Processes for Machine Learning, 2006, 5.4).
"""

from __future__ import annotations

import itertools
from copy import copy
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.floating[Any]]

_LENGTHS = (1.0, 2.0, 4.0, 8.0, 16.0)
_NOISES = (0.01, 0.05, 0.2, 0.5)
"""Shares of the values' variance."""


class GaussianProcess:
    """Fitted to ``rows`` [measurements, columns], of like scales, and ``values`` [measurements]; at least two."""

    def __init__(self, rows: Matrix, values: Matrix) -> None:
        self._rows = rows
        self._values = values
        self._mean = float(values.mean())
        self._spread = float(values.std()) or 1.0
        scaled = (values - self._mean) / self._spread
        distances = _distances(rows, rows)
        fits = (self._fit(distances, scaled, length, noise) for length, noise in itertools.product(_LENGTHS, _NOISES))
        _, self._length, self._noise, self._factor, self._weights = max(fits, key=lambda fit: fit[0])

    def predict(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Expected values [rows] of rows [rows, columns], and the standard deviations [rows] from what is expected."""
        likeness = _matern(_distances(rows, self._rows), self._length)
        known = (np.linalg.solve(self._factor, likeness.T) ** 2).sum(axis=0)
        deviations = np.sqrt(np.maximum(1.0 - known, 0.0))
        return likeness @ self._weights * self._spread + self._mean, deviations * self._spread

    def believing(self, rows: Matrix) -> GaussianProcess:
        """As if ``rows`` [measurements, columns] had been measured, too, and had come out as expected.

        Expectations stay, deviations shrink around the rows (GP-BUCB, Desautels et al., JMLR 2014).
        """
        believing = copy(self)
        believing._rows = np.concatenate([self._rows, rows])
        believing._values = np.concatenate([self._values, self.predict(rows)[0]])
        scaled = (believing._values - self._mean) / self._spread
        distances = _distances(believing._rows, believing._rows)
        *_, believing._factor, believing._weights = self._fit(distances, scaled, self._length, self._noise)
        return believing

    @staticmethod
    def _fit(
        distances: Matrix, values: Matrix, length: float, noise: float
    ) -> tuple[float, float, float, Matrix, Matrix]:
        """Logarithm of the likelihood but for a constant; length and noise; Cholesky factor; weights of the values."""
        covariance = _matern(distances, length) + noise * np.eye(len(values))
        factor = np.linalg.cholesky(covariance)
        weights = np.linalg.solve(covariance, values)
        likelihood = -0.5 * float(values @ weights) - float(np.log(np.diag(factor)).sum())
        return likelihood, length, noise, factor, weights


def _distances(rows: Matrix, others: Matrix) -> Matrix:
    squares = (rows**2).sum(axis=1)[:, None] + (others**2).sum(axis=1)[None, :] - 2.0 * rows @ others.T
    return np.sqrt(np.maximum(squares, 0.0))


def _matern(distances: Matrix, length: float) -> Matrix:
    scaled = np.sqrt(5.0) * distances / length
    return (1.0 + scaled + scaled**2 / 3.0) * np.exp(-scaled)
