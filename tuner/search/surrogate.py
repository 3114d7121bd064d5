"""The surrogate model of one task: predicts programs that were not measured, and selects batches.

Until enough trials of the task have ended, the XGBoost ranking predicts from features of the program: it is trained on
other workloads, too. Then a Gaussian process over encoded decisions predicts alone: it knows this task better,
and encoding is cheaper than extracting features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tuner.cost_model.gaussian_process import FloatArray, GaussianProcess
from tuner.cost_model.model import CostModel, Sample
from tuner.search.config import SearchConfig
from tuner.search.encoding import Encoding, Vectorizer
from tuner.search.individual import Individual

Pause = Callable[[], None]
"""Called every few milliseconds of computing: lets timings that wait go first."""


def no_pause() -> None:
    """Return at once: nothing waits."""


class Surrogate:
    """Predicts programs of one task, which is a group in the cost model that all tasks of a job share."""

    def __init__(self, group: str, model: CostModel, config: SearchConfig) -> None:
        self._group = group
        self._model = model
        self._config = config
        self._observed: list[tuple[Encoding, float | None]] = []
        self._process: GaussianProcess | None = None
        self._vectorizer = Vectorizer([])
        self._fitted = 0

    @property
    def ready(self) -> bool:
        """Whether predictions tell programs apart."""
        return self._model.ready or self._process is not None

    @property
    def experienced(self) -> bool:
        """Whether predictions come from trials of this task."""
        return self._process is not None or (self._config.gp_points == 0 and self._model.ready)

    def observe(self, individual: Individual, latency: float | None) -> None:
        """Add a finished trial: its latency in seconds, or None if it failed."""
        if latency is None and self._config.failure_factor is None:
            return
        self._model.observe(Sample(self._group, individual.features, latency))
        self._observed.append((individual.encoding, latency))

    def fit(self) -> None:
        """Fit the model in use to what was observed since the last call, if there is enough."""
        if self._config.gp_points > 0 and len(self._observed) >= max(self._config.gp_warm_up, self._fitted + 1):
            self._fitted = len(self._observed)
            self._fit_process()
        if self._process is None:
            self._model.fit()

    def predict(self, individuals: Sequence[Individual], beta: float, pause: Pause = no_pause) -> FloatArray:
        """Return the acquisition value of each program, float64 [programs]; higher is faster.

        With the Gaussian process it is the upper confidence bound of the negative log latency, mean + beta x deviation
        (GP-UCB, Srinivas et al., ICML 2010); with the ranking it is the score. Values are comparable between two calls
        of `fit`.
        """
        if self._process is not None:
            return self.predict_encodings([individual.encoding for individual in individuals], beta)
        features = []
        for individual in individuals:  # extracting features takes long, and only the ranking needs them
            pause()
            features.append(individual.features)
        return self._model.predict(features)

    def predict_encodings(self, encodings: Sequence[Encoding], beta: float) -> FloatArray:
        """Return the acquisition values of encodings, which need not belong to a program; zeros without a process."""
        if self._process is None:
            return np.zeros(len(encodings))
        mean, deviation = self._process.predict(self._vectorizer.transform(encodings))
        return mean + beta * deviation

    def select_batch(
        self, individuals: Sequence[Individual], count: int, *, beta: float, pending: Sequence[Individual]
    ) -> list[Individual]:
        """Return up to ``count`` programs to be measured together, the best first, with their ``predicted`` set.

        With an exploring acquisition (beta > 0) they are selected one by one, with the process conditioned on pending
        and already selected programs, so that a batch does not consist of near duplicates.
        """
        if self._process is None or beta == 0.0 or not individuals or not self._config.kriging_believer:
            values = self.predict(individuals, beta)
            ranked = np.argsort(-values, kind="stable")[:count]
            return [_select(individuals[index], values[index]) for index in ranked]
        rows = self._vectorizer.transform([individual.encoding for individual in individuals])
        believed = self._vectorizer.transform([individual.encoding for individual in pending])
        left = np.ones(len(rows), dtype=bool)
        selected: list[Individual] = []
        while len(selected) < count and left.any():
            mean, deviation = self._process.condition_on(believed).predict(rows)
            values = np.where(left, mean + beta * deviation, -np.inf)
            best = int(np.argmax(values))
            left[best] = False
            selected.append(_select(individuals[best], values[best]))
            believed = np.concatenate([believed, rows[best : best + 1]])
        return selected

    def _fit_process(self) -> None:
        """Fit to negative log latencies: a step is then a factor of speed."""
        newest = self._observed[-self._config.gp_points :]
        latencies = [latency for _, latency in newest if latency is not None]
        if not latencies:
            return
        failed = (self._config.failure_factor or 1.0) * max(latencies)
        targets = -np.log([failed if latency is None else latency for _, latency in newest])
        encodings = [encoding for encoding, _ in newest]
        self._vectorizer = Vectorizer(encodings)
        self._process = GaussianProcess(self._vectorizer.transform(encodings), targets, self._config.gp)


def _select(individual: Individual, value: float) -> Individual:
    individual.predicted = float(value)
    return individual
