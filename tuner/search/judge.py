"""What a search thinks of programs that were not measured: first what others taught, then what it has seen itself.

The cost model knows a program by the features of its stores, and orders programs from the first trial on, if other
workloads have taught it. Once enough of this very task has been measured, a Gaussian process judges alone: it knows a
program by its decisions, and after the same few measurements it finds faster programs than the cost model does, or the
two together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.cost_model.features import Features
from tuner.cost_model.gaussian_process import GaussianProcess, Matrix
from tuner.cost_model.model import CostModel, Sample
from tuner.search.coordinates import Coordinates, Places

WARM_UP = 8
"""Measurements of a task before its Gaussian process judges."""
_FAILED = 2.0
"""A program that failed counts as this many times slower than the slowest that ran."""
_NEWEST = 256
"""Programs that the Gaussian process is fitted to; its cost grows with their third power."""


@dataclass
class Described:
    """A program as the models know it: by its decisions, and by its features, which cost more and are seldom needed."""

    coordinates: Coordinates
    extract: Callable[[], Features]

    @cached_property
    def features(self) -> Features:
        return self.extract()


class Judge:
    """Scores the programs of one task, called ``group`` in the cost model, which all tasks of a job share."""

    def __init__(self, group: str, model: CostModel) -> None:
        self._group = group
        self._model = model
        self._measured: list[tuple[Described, float | None]] = []
        self._process: GaussianProcess | None = None
        self._places = Places([])
        self._fitted = 0

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
        if len(self._measured) >= WARM_UP and len(self._measured) > self._fitted:
            self._fitted = len(self._measured)
            self._fit_process()
        if self._process is None:
            self._model.fit()

    def scores(self, programs: Sequence[Described], optimism: float = 0.0) -> Matrix:
        """One a program, higher is faster. Only the order of what was scored after the same `fit` has a meaning.

        ``optimism`` is how many standard deviations above what the Gaussian process expects a program is taken to be:
        above 0, what lies far from all that was measured has a better chance (GP-UCB, Srinivas et al., 2010).
        """
        if self._process is None or not programs:
            return self._model.predict([program.features for program in programs])
        return self.guesses([program.coordinates for program in programs], optimism)

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
        rows = self._places.rows([program.coordinates for program in programs])
        believed = self._places.rows([program.coordinates for program in awaited])
        chosen: list[tuple[int, float]] = []
        for _ in range(min(count, len(programs))):
            expected, deviations = self._process.believing(believed).predict(rows)
            scores = expected + optimism * deviations
            scores[[number for number, _ in chosen]] = -np.inf
            best = int(np.argmax(scores))
            chosen.append((best, float(scores[best])))
            believed = np.concatenate([believed, rows[best : best + 1]])
        return chosen

    def guesses(self, programs: Sequence[Coordinates], optimism: float) -> Matrix:
        """Scores by decisions alone, of programs that need not exist yet; zeros where nothing is known of them."""
        if self._process is None:
            return np.zeros(len(programs))
        expected, deviations = self._process.predict(self._places.rows(programs))
        return expected + optimism * deviations

    def _fit_process(self) -> None:
        newest = self._measured[-_NEWEST:]
        latencies = [latency for _, latency in newest if latency is not None]
        if not latencies:
            return
        failed = _FAILED * max(latencies)
        values = -np.log([failed if latency is None else latency for _, latency in newest])
        coordinates = [program.coordinates for program, _ in newest]
        self._places = Places(coordinates)
        self._process = GaussianProcess(self._places.rows(coordinates), values)
