"""The surrogate model of one task: predicts programs that were not measured, and selects batches.

Until enough trials of the task have ended, the XGBoost ranking predicts from features of the program: it is trained on
other workloads, too. Then a Gaussian process over encoded decisions predicts alone: it knows this task better,
and encoding is cheaper than extracting features.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright.codegen.kinds import Predictor
from tuner.cost_model.gaussian_process import FloatArray, GaussianProcess
from tuner.cost_model.model import CostModel, Sample
from tuner.search.config import SearchConfig
from tuner.search.encoding import Encoding, Vectorizer
from tuner.search.individual import Individual


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
        """Whether the ranking tells programs apart."""
        return self._model.ready

    @property
    def experienced(self) -> bool:
        """Whether the Gaussian process predicts, from trials of this task."""
        return self._process is not None

    def observe(self, individual: Individual, latency: float | None) -> None:
        """Add a finished trial: its latency in seconds, or None if it failed."""
        self._model.observe(Sample(self._group, individual.features, latency))
        self._observed.append((individual.encoding, latency))

    def fit(self) -> None:
        """Fit the model in use to what was observed since the last call, if there is enough."""
        if len(self._observed) >= max(self._config.gp_warm_up, self._fitted + 1):
            self._fitted = len(self._observed)
            self._fit_process()
        if self._process is None:
            self._model.fit()

    def predict(self, encodings: Sequence[Encoding]) -> FloatArray:
        """Return the negative log latency of each encoding by the Gaussian process, float64 [programs].

        Higher is faster. Without a process, they are zeros.
        """
        if self._process is None:
            return np.zeros(len(encodings))
        return self._process.predict(self._vectorizer.transform(encodings))

    def select_batch(self, individuals: Sequence[Individual], count: int) -> list[Individual]:
        """Return the ``count`` programs with the highest scores of the ranking, the best first, as ``predicted``."""
        scores = self._model.predict([individual.features for individual in individuals])
        ranked = np.argsort(-scores, kind="stable")[:count]
        for index in ranked:
            individuals[index].predicted = float(scores[index])
            individuals[index].predicted_by = Predictor.RANKING
        return [individuals[index] for index in ranked]

    def _fit_process(self) -> None:
        """Fit to negative log latencies: a step is then a factor of speed."""
        newest = self._observed[-self._config.gp_points :]
        latencies = [latency for _, latency in newest if latency is not None]
        if not latencies:
            return
        failed = self._config.failure_factor * max(latencies)
        targets = -np.log([failed if latency is None else latency for _, latency in newest])
        encodings = [encoding for encoding, _ in newest]
        self._vectorizer = Vectorizer(encodings)
        self._process = GaussianProcess(self._vectorizer.transform(encodings), targets, self._config.gp)
