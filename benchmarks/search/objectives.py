"""Which objective ranks best: the same measured trials and the same trees, trained in different ways.

    .venv/bin/python -m benchmarks.search.objectives

Reads the teachers' trials (`benchmarks.search` makes them). For each workload a model sees some trials, picked at
random, and orders the others. Results go to docs/benchmarks/search/objectives.json.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from benchmarks.search.run_record import RUNS
from benchmarks.search.teachers import samples
from tuner.cost_model.features import Features
from tuner.cost_model.model import PARAMETERS, CostModel, Sample, pack, throughput

RESULTS = RUNS.parent / "objectives.json"
SEEN = (16, 32, 64)
SPLITS = 5
TOP = 8
"""As many as are proposed at a time."""
_ROUNDS = 40
_LEAST = 80
"""Trials that a workload must have."""

Scores = npt.NDArray[np.float64]
Objective = Callable[[Sequence[Sample], Sequence[Features]], Scores]


def order(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """Loopwright's: RankNet's loss on the sum of the stores' scores, pairs weighted by their distance."""
    model = CostModel(0)
    for sample in seen:
        model.observe(sample)
    model.fit()
    return model.predict(unseen)


def order_of_the_measured(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """Loopwright's, without the trials that failed."""
    return order([sample for sample in seen if sample.latency is not None], unseen)


def squared(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """Squared error of the sum of the stores' scores against best latency over own latency, failures being 0."""
    return _additive(seen, unseen, weighted=False)


def squared_weighted(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """As MetaSchedule's cost model: the same, each program weighted by its label."""
    return _additive(seen, unseen, weighted=True)


def ndcg(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """XGBoost's `rank:ndcg` on features summed over the stores."""
    return _pooled(seen, unseen, "rank:ndcg")


def pairwise(seen: Sequence[Sample], unseen: Sequence[Features]) -> Scores:
    """XGBoost's `rank:pairwise` on features summed over the stores."""
    return _pooled(seen, unseen, "rank:pairwise")


OBJECTIVES: dict[str, Objective] = {
    "order, additive": order,
    "order, additive, without failures": order_of_the_measured,
    "squared error, additive": squared,
    "squared error, additive, weighted by label": squared_weighted,
    "rank:ndcg, pooled": ndcg,
    "rank:pairwise, pooled": pairwise,
}


def _labels(samples: Sequence[Sample]) -> Scores:
    return np.maximum(throughput(list(samples)), 0.0)


def _additive(seen: Sequence[Sample], unseen: Sequence[Features], weighted: bool) -> Scores:
    labels = _labels(seen)
    weights = labels if weighted else np.ones(len(seen))
    rows, owner = pack([sample.features for sample in seen])

    def gradient(predicted: npt.NDArray[np.float32], _: xgb.DMatrix) -> tuple[Scores, Scores]:
        error = np.bincount(owner, weights=predicted, minlength=len(seen)) - labels
        return (error * weights)[owner], weights[owner]

    booster = xgb.train(PARAMETERS, xgb.DMatrix(rows), num_boost_round=_ROUNDS, obj=gradient)
    there, whose = pack(unseen)
    return np.bincount(whose, weights=booster.inplace_predict(there), minlength=len(unseen)).astype(np.float64)


def _pooled(seen: Sequence[Sample], unseen: Sequence[Features], objective: str) -> Scores:
    # XGBoost ranks by grades, of which its NDCG takes up to 31.
    grades = np.round(_labels(seen) * 31)
    data = xgb.DMatrix(np.stack([s.features.sum(axis=0) for s in seen]), grades, qid=np.zeros(len(seen)))
    booster = xgb.train({**PARAMETERS, "objective": objective}, data, num_boost_round=_ROUNDS)
    return booster.inplace_predict(np.stack([features.sum(axis=0) for features in unseen])).astype(np.float64)


def main() -> None:
    groups: dict[str, list[Sample]] = {}
    for sample in samples():
        groups.setdefault(sample.group, []).append(sample)
    usable = [members for members in groups.values() if len(members) >= _LEAST]
    results = {
        name: {str(count): _judge(objective, usable, count) for count in SEEN} for name, objective in OBJECTIVES.items()
    }
    RESULTS.write_text(json.dumps({"workloads": len(usable), "objectives": results}, indent=1) + "\n")
    print(RESULTS)


def _judge(objective: Objective, groups: list[list[Sample]], count: int) -> dict[str, float]:
    """Means over workloads and splits.

    ``agreement``: share of the unseen pairs, of those more than 5 % apart, in the right order. ``top``: best latency of
    the unseen over the best among the `TOP` that the model likes best; 1 where it finds the best.
    """
    agreements, tops = [], []
    for number, members in enumerate(groups):
        for split in range(SPLITS):
            places = np.random.default_rng([number, split]).permutation(len(members))
            seen = [members[i] for i in places[:count]]
            unseen = [members[i] for i in places[count:]]
            scores = objective(seen, [sample.features for sample in unseen])
            speed = throughput(unseen)
            faster = speed[:, None] > 1.05 * np.maximum(speed[None, :], 0.0)
            agreements.append(float((scores[:, None] > scores[None, :])[faster].mean()))
            tops.append(float(speed[np.argsort(-scores)[:TOP]].max()))
    return {"agreement": statistics.fmean(agreements), "top": statistics.fmean(tops)}


if __name__ == "__main__":
    main()
