"""Which model ranks best: the same measured trials; the same trees, trained in different ways; a Gaussian process.

    .venv/bin/python -m benchmarks.search.objectives

Reads the teachers' trials (`benchmarks.search` makes them). For each workload a model sees some trials, picked at
random, and orders the others. Results go to benchmarks/results/search/objectives.json.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import xgboost as xgb

from benchmarks.search.race import host_target
from benchmarks.search.run_record import RUNS
from benchmarks.search.teachers import Lesson, lessons
from tuner.cost_model.model import PARAMETERS, CostModel, Sample, pack, throughput
from tuner.search.config import SearchConfig
from tuner.search.individual import Individual
from tuner.search.surrogate import Surrogate

RESULTS = RUNS.parent / "objectives.json"
SEEN = (16, 32, 64)
SPLITS = 5
TOP = 8
"""As many as are proposed at a time."""
_ROUNDS = 40
_LEAST = 80
"""Trials that a workload must have."""

Scores = npt.NDArray[np.floating[Any]]
Objective = Callable[[Sequence[Lesson], Sequence[Individual]], Scores]


def decisions(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """A Gaussian process over the decisions: Loopwright's, where enough of a task was measured."""
    surrogate = Surrogate("workload", CostModel(0), SearchConfig())
    for program, latency in seen:
        surrogate.observe(program, latency)
    surrogate.fit()
    return surrogate.predict([program.encoding for program in unseen], beta=0.0)


def order(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """RankNet's loss on the sum of the stores' scores, pairs weighted by their distance: Loopwright's, before."""
    cost_model = CostModel(0)
    for sample in _samples(seen):
        cost_model.observe(sample)
    cost_model.fit()
    return cost_model.predict([program.features for program in unseen])


def both(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """The two, standardised on what was seen, and added up."""
    programs = [program for program, _ in seen]
    total = np.zeros(len(unseen))
    for objective in (decisions, order):
        known, asked = np.split(objective(seen, [*programs, *unseen]), [len(programs)])
        total += (asked - known.mean()) / (known.std() or 1.0)
    return total


def order_of_the_measured(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """The order, without the trials that failed."""
    return order([(program, latency) for program, latency in seen if latency is not None], unseen)


def squared(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """Squared error of the sum of the stores' scores against best latency over own latency, failures being 0."""
    return _additive(seen, unseen, weighted=False)


def squared_weighted(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """As MetaSchedule's cost model: the same, each program weighted by its label."""
    return _additive(seen, unseen, weighted=True)


def ndcg(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """XGBoost's `rank:ndcg` on features summed over the stores."""
    return _pooled(seen, unseen, "rank:ndcg")


def pairwise(seen: Sequence[Lesson], unseen: Sequence[Individual]) -> Scores:
    """XGBoost's `rank:pairwise` on features summed over the stores."""
    return _pooled(seen, unseen, "rank:pairwise")


OBJECTIVES: dict[str, Objective] = {
    "Gaussian process over decisions": decisions,
    "order, additive": order,
    "the two added up": both,
    "order, additive, without failures": order_of_the_measured,
    "squared error, additive": squared,
    "squared error, additive, weighted by label": squared_weighted,
    "rank:ndcg, pooled": ndcg,
    "rank:pairwise, pooled": pairwise,
}


def _samples(lessons: Sequence[Lesson]) -> list[Sample]:
    return [Sample("workload", program.features, latency) for program, latency in lessons]


def _additive(seen: Sequence[Lesson], unseen: Sequence[Individual], weighted: bool) -> Scores:
    labels = _labels(seen)
    weights = labels if weighted else np.ones(len(seen))
    rows, owner = pack([program.features for program, _ in seen])

    def gradient(predicted: npt.NDArray[np.float32], _: xgb.DMatrix) -> tuple[Scores, Scores]:
        error = np.bincount(owner, weights=predicted, minlength=len(seen)) - labels
        return (error * weights)[owner], weights[owner]

    booster = xgb.train(PARAMETERS, xgb.DMatrix(rows), num_boost_round=_ROUNDS, obj=gradient)
    there, whose = pack([program.features for program in unseen])
    return np.bincount(whose, weights=booster.inplace_predict(there), minlength=len(unseen)).astype(np.float64)


def _pooled(seen: Sequence[Lesson], unseen: Sequence[Individual], objective: str) -> Scores:
    # XGBoost ranks by grades, of which its NDCG takes up to 31.
    grades = np.round(_labels(seen) * 31)
    data = xgb.DMatrix(np.stack([p.features.sum(axis=0) for p, _ in seen]), grades, qid=np.zeros(len(seen)))
    booster = xgb.train({**PARAMETERS, "objective": objective}, data, num_boost_round=_ROUNDS)
    pooled = np.stack([program.features.sum(axis=0) for program in unseen])
    return booster.inplace_predict(pooled).astype(np.float64)


def _labels(lessons: Sequence[Lesson]) -> Scores:
    return np.maximum(throughput(_samples(lessons)), 0.0)


def main() -> None:
    target_json = host_target()
    usable = [members for members in lessons(target_json).values() if len(members) >= _LEAST]
    results = {
        name: {str(count): _judged(objective, usable, count) for count in SEEN}
        for name, objective in OBJECTIVES.items()
    }
    RESULTS.write_text(json.dumps({"workloads": len(usable), "objectives": results}, indent=1) + "\n")
    print(RESULTS)


def _judged(objective: Objective, groups: list[list[Lesson]], count: int) -> dict[str, float]:
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
            scores = objective(seen, [program for program, _ in unseen])
            speed = throughput(_samples(unseen))
            faster = speed[:, None] > 1.05 * np.maximum(speed[None, :], 0.0)
            agreements.append(float((scores[:, None] > scores[None, :])[faster].mean()))
            tops.append(float(speed[np.argsort(-scores)[:TOP]].max()))
    return {"agreement": statistics.fmean(agreements), "top": statistics.fmean(tops)}


if __name__ == "__main__":
    main()
