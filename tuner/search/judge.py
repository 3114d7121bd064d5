"""What a search thinks of programs that were not measured: two models, of which each sees what the other does not.

The cost model knows a program by the features of its stores, and what other workloads taught it; a Gaussian process
knows it by its decisions, and after the same few measurements brings more programs into their true order. The scores of
each are standardised on the programs measured, and added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner.cost_model.features import Features
from tuner.cost_model.gaussian_process import GaussianProcess, Matrix
from tuner.cost_model.model import WARM_UP, CostModel, Sample
from tuner.search.coordinates import Coordinates, Places

_FAILED = 2.0
"""A program that failed counts as this many times slower than the slowest that ran."""
_NEWEST = 256
"""Programs that the Gaussian process is fitted to; its cost grows with their third power."""


@dataclass(frozen=True, slots=True)
class Described:
    """A program as the models know it."""

    features: Features
    coordinates: Coordinates


class Judge:
    """Scores the programs of one task, called ``group`` in the cost model, which all tasks of a job share."""

    def __init__(self, group: str, model: CostModel) -> None:
        self._group = group
        self._model = model
        self._measured: list[tuple[Described, float | None]] = []
        self._process: GaussianProcess | None = None
        self._places = Places([])
        self._fitted = 0
        self._scales = ((0.0, 1.0), (0.0, 1.0))

    @property
    def ready(self) -> bool:
        return self._model.ready or self._process is not None

    @property
    def experienced(self) -> bool:
        """Whether enough of this very task was measured."""
        return self._process is not None

    def observe(self, program: Described, latency: float | None) -> None:
        """Learn from a measurement in seconds; None where the program failed."""
        self._model.observe(Sample(self._group, program.features, latency))
        self._measured.append((program, latency))

    def fit(self) -> None:
        """Take up what was observed since the last time, if there is enough."""
        self._model.fit()
        if len(self._measured) >= WARM_UP and len(self._measured) > self._fitted:
            self._fitted = len(self._measured)
            self._fit_process()

    def scores(self, programs: Sequence[Described], optimism: float = 0.0) -> Matrix:
        """One a program, higher is faster. Only the order of what was scored after the same `fit` has a meaning.

        ``optimism`` is how many standard deviations above what the Gaussian process expects a program is taken to be:
        above 0, what lies far from all that was measured has a better chance (GP-UCB, Srinivas et al., 2010).
        """
        if not programs:
            return np.zeros(0)
        by_features = self._by_features(programs)
        if self._process is None:
            return by_features
        return self._together(by_features, self._by_decisions([p.coordinates for p in programs], optimism))

    def choose(
        self, programs: Sequence[Described], count: int, optimism: float, awaited: Sequence[Described]
    ) -> list[tuple[int, float]]:
        """Numbers and scores of up to ``count`` programs to be measured together, the best first.

        Where there is optimism, one by one, each as if those before it, and those ``awaited``, had been measured and
        came out as expected: it is for what they leave unknown.
        """
        if self._process is None or optimism == 0.0 or not programs:
            scores = self.scores(programs)
            return [(int(number), float(scores[number])) for number in np.argsort(-scores, kind="stable")[:count]]
        by_features = self._by_features(programs)
        rows = self._places.rows([program.coordinates for program in programs])
        believed = self._places.rows([program.coordinates for program in awaited])
        chosen: list[tuple[int, float]] = []
        for _ in range(min(count, len(programs))):
            expected, deviations = self._process.believing(believed).predict(rows)
            scores = self._together(by_features, expected + optimism * deviations)
            scores[[number for number, _ in chosen]] = -np.inf
            best = int(np.argmax(scores))
            chosen.append((best, float(scores[best])))
            believed = np.concatenate([believed, rows[best : best + 1]])
        return chosen

    def guesses(self, programs: Sequence[Coordinates], optimism: float) -> Matrix:
        """The same by decisions alone, of programs that need not exist yet; zeros where nothing is known of them."""
        return np.zeros(len(programs)) if self._process is None else self._by_decisions(programs, optimism)

    def _fit_process(self) -> None:
        newest = self._measured[-_NEWEST:]
        latencies = [latency for _, latency in newest if latency is not None]
        if not latencies:
            return
        failed = _FAILED * max(latencies)
        values = -np.log([failed if latency is None else latency for _, latency in newest])
        programs = [program for program, _ in newest]
        coordinates = [program.coordinates for program in programs]
        self._places = Places(coordinates)
        self._process = GaussianProcess(self._places.rows(coordinates), values)
        self._scales = _scale(self._by_features(programs)), _scale(values)

    def _together(self, by_features: Matrix, by_decisions: Matrix) -> Matrix:
        (mean, spread), (other_mean, other_spread) = self._scales
        return (by_features - mean) / spread + (by_decisions - other_mean) / other_spread

    def _by_features(self, programs: Sequence[Described]) -> Matrix:
        return self._model.predict([program.features for program in programs])

    def _by_decisions(self, programs: Sequence[Coordinates], optimism: float) -> Matrix:
        assert self._process is not None
        expected, deviations = self._process.predict(self._places.rows(programs))
        return expected + optimism * deviations


def _scale(values: Matrix) -> tuple[float, float]:
    """Mean and standard deviation, 1 where all values are equal."""
    return float(values.mean()), float(values.std()) or 1.0
