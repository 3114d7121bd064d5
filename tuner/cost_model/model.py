"""The XGBoost cost model: ranks candidates of one workload against each other.

A program's score is the sum of the scores of its stores, as in Ansor and MetaSchedule (`PackSum`), but it is
trained on order, not on value: RankNet's pairwise logistic loss (Burges et al., ICML 2005) within each workload,
each pair weighted by how far apart the two latencies are. A program that failed to build or run ranks below all
that ran, so failures teach, too.

A base model, trained on all that a device class has seen, ranks from the first trial on; a job's own model then learns
what the base gets wrong (as XGBoost's ``base_margin``). A base that orders the job's own trials no better than chance
is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from tuner.cost_model.features import Features

WARM_UP = 16
"""Samples before the job's own model ranks at all; fewer fit noise."""

BASE_TRUST = 0.6
"""Share of the job's pairs that a base must order rightly, once there are `WARM_UP` samples; chance is 0.5."""

_ROUNDS = 40
_BASE_ROUNDS = 120
_MAX_GROUP = 512
"""Pairs grow with the square of a workload's samples: the newest this many are used."""

PARAMETERS = {
    "max_depth": 6,
    "eta": 0.2,
    "lambda": 1.0,
    "min_child_weight": 0.0,
    "subsample": 1.0,
    "tree_method": "hist",
    "max_bin": 64,
    "nthread": 1,  # the host's other cores belong to builders
    "base_score": 0.0,
    "verbosity": 0,
}


@dataclass(frozen=True, slots=True)
class Sample:
    """A finished trial as the model learns it; ``latency`` in seconds, None where it failed."""

    group: str
    features: Features
    latency: float | None


def train_base(samples: Sequence[Sample], seed: int) -> bytes:
    """A base model in XGBoost's UBJSON, from samples of at least one workload. Equal samples and seed, equal bytes."""
    return bytes(_train(samples, seed, _BASE_ROUNDS).save_raw("ubj"))


class CostModel:
    """Scores candidates; higher is faster. Only the order of scores within a workload has a meaning.

    ``base`` is what `train_base` returned for the device class, or None.
    """

    def __init__(self, seed: int, base: bytes | None = None) -> None:
        self._seed = seed
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
        """Train anew on all samples, if there are enough and any is new."""
        if len(self._samples) < WARM_UP or len(self._samples) == self._fitted:
            return
        if self._base is not None and self._base_agreement() < BASE_TRUST:
            self._base = None
        self._booster = _train(self._samples, self._seed, _ROUNDS, self._base)
        self._fitted = len(self._samples)

    def predict(self, features: Sequence[Features]) -> npt.NDArray[np.float64]:
        """Scores, float64 [programs]; zeros before the model is ready."""
        if not self.ready or not features:
            return np.zeros(len(features))
        rows, owner = pack(features)
        per_store = np.zeros(len(rows))
        for booster in (self._base, self._booster):
            if booster is not None:
                per_store += booster.inplace_predict(rows)
        return np.bincount(owner, weights=per_store, minlength=len(features)).astype(np.float64)

    def _base_agreement(self) -> float:
        """Share of the samples' pairs, weighted by how far they are apart, that the base orders rightly."""
        assert self._base is not None
        right = total = 0.0
        for members in _groups(self._samples):
            rows, owner = pack([sample.features for sample in members])
            scores = np.bincount(owner, weights=self._base.inplace_predict(rows), minlength=len(members))
            weights = _pair_weights(members)
            right += float(weights[scores[:, None] > scores[None, :]].sum())
            total += float(weights.sum())
        return right / total if total > 0 else 1.0


def _groups(samples: Sequence[Sample]) -> list[list[Sample]]:
    """Samples by workload, the newest of each."""
    groups: dict[str, list[Sample]] = {}
    for sample in samples:
        groups.setdefault(sample.group, []).append(sample)
    return [members[-_MAX_GROUP:] for members in groups.values()]


def _train(samples: Sequence[Sample], seed: int, rounds: int, base: xgb.Booster | None = None) -> xgb.Booster:
    """A booster of the samples' order, on top of ``base`` if there is one."""
    groups = _groups(samples)
    rows, owner = pack([sample.features for members in groups for sample in members])
    margin = None if base is None else base.inplace_predict(rows)
    return xgb.train(
        {**PARAMETERS, "seed": seed},
        xgb.DMatrix(rows, base_margin=margin),
        num_boost_round=rounds,
        obj=_PairwiseOrder(groups, owner),
    )


def pack(features: Sequence[Features]) -> tuple[Features, npt.NDArray[np.intp]]:
    """All stores of all programs as rows [stores, 164], and for each row the program it belongs to [stores]."""
    owner = np.repeat(np.arange(len(features)), [len(f) for f in features])
    return np.concatenate(features), owner


class _PairwiseOrder:
    """Gradient of RankNet's loss on program scores, handed to each store of the program."""

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
    """weights[i, j] > 0 where i is faster than j, float64 [programs, programs]; each program's pairs sum to about 1."""
    speed = throughput(members)
    gap = speed[:, None] - speed[None, :]
    return np.where(gap > 0, gap, 0.0) / max(len(members) - 1, 1)


def throughput(members: list[Sample]) -> npt.NDArray[np.float64]:
    """Best latency over own latency, float64 [programs] in (0, 1]; failures are 0 less a margin."""
    measured = [sample.latency for sample in members if sample.latency is not None]
    best = min(measured, default=1.0)
    return np.array([-0.1 if s.latency is None else best / s.latency for s in members])
