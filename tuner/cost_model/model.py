"""The XGBoost cost model: ranks the candidates of one workload against each other.

A program's score is the sum of its stores' scores, as in Ansor and MetaSchedule (`PackSum`), but the model is trained
on order instead of value: RankNet's pairwise logistic loss (Burges et al., ICML 2005) within each workload, each pair
weighted by how far apart its two latencies are. A program that failed to build or to run ranks below all that ran.

A base model, trained on all trials of a device class, ranks from the first trial on. A job's own model then learns the
base model's residual (XGBoost's ``base_margin``). A base model that does not order the job's own trials is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from tuner.cost_model.config import RankingConfig
from tuner.cost_model.features import Features

PARAMETERS = {
    "max_depth": 6,
    "eta": 0.2,
    "lambda": 1.0,
    "min_child_weight": 0.0,
    "subsample": 1.0,
    "tree_method": "hist",
    "max_bin": 64,
    "nthread": 1,  # the other cores of the host belong to builders
    "base_score": 0.0,
    "verbosity": 0,
}
"""XGBoost's own parameters. Not tuned."""


@dataclass(frozen=True, slots=True)
class Sample:
    """A finished trial of workload ``group``; ``latency`` in seconds, None if it failed."""

    group: str
    features: Features
    latency: float | None


def train_base(samples: Sequence[Sample], seed: int, config: RankingConfig = RankingConfig()) -> bytes:
    """Return a base model as XGBoost's UBJSON. Requires samples of at least one workload. Deterministic."""
    return bytes(_train(_groups(samples, config.max_group), seed, config.base_rounds).save_raw("ubj"))


class CostModel:
    """Scores candidates; higher is faster. Scores of different workloads are not comparable.

    ``base`` is what `train_base` returned for the device class, or None.
    """

    def __init__(self, seed: int, base: bytes | None = None, config: RankingConfig = RankingConfig()) -> None:
        self._seed = seed
        self._config = config
        self._base = None if base is None else xgb.Booster({"nthread": 1}, model_file=bytearray(base))
        self._samples: list[Sample] = []
        self._booster: xgb.Booster | None = None
        self._fitted = 0

    def observe(self, sample: Sample) -> None:
        self._samples.append(sample)

    @property
    def ready(self) -> bool:
        return self._booster is not None or self._base is not None

    def fit(self) -> None:
        """Train on all samples, if there are enough and any is new."""
        if len(self._samples) < self._config.warm_up or len(self._samples) == self._fitted:
            return
        groups = _groups(self._samples, self._config.max_group)
        if self._base is not None and _agreement(self._base, groups) < self._config.base_trust:
            self._base = None
        self._booster = _train(groups, self._seed, self._config.rounds, self._base)
        self._fitted = len(self._samples)

    def predict(self, features: Sequence[Features]) -> npt.NDArray[np.float64]:
        """Return scores, float64 [programs]; zeros before the model is ready."""
        if not self.ready or not features:
            return np.zeros(len(features))
        rows, owner = pack(features)
        per_store = np.zeros(len(rows))
        for booster in (self._base, self._booster):
            if booster is not None:
                per_store += booster.inplace_predict(rows)
        return np.bincount(owner, weights=per_store, minlength=len(features)).astype(np.float64)


def _groups(samples: Sequence[Sample], max_group: int) -> list[list[Sample]]:
    """Return the newest samples of each workload."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.group, []).append(sample)
    return [members[-max_group:] for members in groups.values()]


def _agreement(base: xgb.Booster, groups: list[list[Sample]]) -> float:
    """Return the share of the samples' pairs, weighted by their distance, that a base model orders correctly."""
    correct = total = 0.0
    for members in groups:
        rows, owner = pack([sample.features for sample in members])
        scores = np.bincount(owner, weights=base.inplace_predict(rows), minlength=len(members))
        weights = _pair_weights(members)
        correct += float(weights[scores[:, None] > scores[None, :]].sum())
        total += float(weights.sum())
    return correct / total if total > 0 else 1.0


def _train(groups: list[list[Sample]], seed: int, rounds: int, base: xgb.Booster | None = None) -> xgb.Booster:
    """Return a booster trained on the order of the samples, on top of ``base`` if there is one."""
    rows, owner = pack([sample.features for members in groups for sample in members])
    margin = None if base is None else base.inplace_predict(rows)
    return xgb.train(
        {**PARAMETERS, "seed": seed},
        xgb.DMatrix(rows, base_margin=margin),
        num_boost_round=rounds,
        obj=_PairwiseOrder(groups, owner),
    )


def pack(features: Sequence[Features]) -> tuple[Features, npt.NDArray[np.intp]]:
    """Return all stores of all programs as rows [stores, 164], and the index of each row's program [stores]."""
    owner = np.repeat(np.arange(len(features)), [len(f) for f in features])
    return np.concatenate(features), owner


class _PairwiseOrder:
    """Gradient and hessian of RankNet's loss by a program's score, which are those of each of its stores."""

    def __init__(self, groups: list[list[Sample]], owner: npt.NDArray[np.intp]) -> None:
        self._owner = owner
        self._programs = sum(len(members) for members in groups)
        self._blocks: list[tuple[slice, npt.NDArray[np.float64]]] = []
        start = 0
        for members in groups:
            stop = start + len(members)
            self._blocks.append((slice(start, stop), _pair_weights(members)))
            start = stop

    def __call__(
        self, predicted: npt.NDArray[np.float32], _: xgb.DMatrix
    ) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
        scores = np.bincount(self._owner, weights=predicted, minlength=self._programs)
        gradient = np.zeros(self._programs)
        hessian = np.zeros(self._programs)
        for block, weights in self._blocks:
            margin = scores[block, None] - scores[None, block]
            wrong = 1.0 / (1.0 + np.exp(np.clip(margin, -30, 30)))  # probability given to the wrong order
            pull = weights * wrong
            gradient[block] = pull.sum(axis=0) - pull.sum(axis=1)
            curvature = pull * (1.0 - wrong)
            hessian[block] = curvature.sum(axis=0) + curvature.sum(axis=1)
        return gradient[self._owner], np.maximum(hessian[self._owner], 1e-6)


def _pair_weights(members: list[Sample]) -> npt.NDArray[np.float64]:
    """Return float64 [programs, programs], positive where i is faster than j; each program's pairs sum to about 1."""
    speed = throughput(members)
    gap = speed[:, None] - speed[None, :]
    return np.where(gap > 0, gap, 0.0) / max(len(members) - 1, 1)


def throughput(members: list[Sample]) -> npt.NDArray[np.float64]:
    """Return best latency over own latency, float64 [programs] in (0, 1]; failures get -0.1, below all others."""
    measured = [sample.latency for sample in members if sample.latency is not None]
    best = min(measured, default=1.0)
    return np.array([-0.1 if s.latency is None else best / s.latency for s in members])
