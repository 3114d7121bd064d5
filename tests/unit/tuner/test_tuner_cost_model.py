"""The model ranks from few samples, and failures teach it, too."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tuner.cost_model.config import RankingConfig
from tuner.cost_model.features import FEATURES, Features, from_bytes, to_bytes
from tuner.cost_model.model import CostModel, Sample, train_base

WARM_UP = RankingConfig().warm_up


def _programs(count: int, seed: int) -> list[Features]:
    rng = np.random.default_rng(seed)
    return [rng.random((int(rng.integers(1, 5)), FEATURES), dtype=np.float32) for _ in range(count)]


def _latency(features: Features) -> float:
    """Slower by the fourth and the tenth feature of every store."""
    return float(1e-3 * (0.2 + features[:, 3].sum() + 2 * features[:, 9].sum()))


def _order_agreement(scores: np.ndarray, latencies: list[float]) -> float:
    """Share of pairs that the scores put in the right order."""
    faster = np.array(latencies)[:, None] < np.array(latencies)[None, :]
    higher = scores[:, None] > scores[None, :]
    return float(higher[faster].mean())


def _trained(count: int, seed: int = 0, group: str = "g") -> CostModel:
    model = CostModel(seed)
    for features in _programs(count, seed=1):
        model.observe(Sample(group, features, _latency(features)))
    model.fit()
    return model


def _agreement(model: CostModel) -> float:
    unseen = _programs(60, seed=2)
    return _order_agreement(model.predict(unseen), [_latency(f) for f in unseen])


def test_it_learns_an_order_from_its_first_samples() -> None:
    assert _agreement(_trained(WARM_UP)) > 0.75


def test_more_samples_teach_more() -> None:
    assert _agreement(_trained(200)) > 0.9


def test_it_is_not_ready_before() -> None:
    model = _trained(WARM_UP - 1)
    assert not model.ready
    np.testing.assert_array_equal(model.predict(_programs(3, seed=2)), np.zeros(3))
    assert _trained(WARM_UP).ready


def test_no_programs_no_scores() -> None:
    assert _trained(WARM_UP).predict([]).shape == (0,)


def test_equal_seeds_give_equal_scores() -> None:
    unseen = _programs(20, seed=2)
    np.testing.assert_array_equal(_trained(40).predict(unseen), _trained(40).predict(unseen))


def test_a_score_does_not_depend_on_the_other_programs() -> None:
    model, unseen = _trained(40), _programs(20, seed=2)
    np.testing.assert_allclose([model.predict([f])[0] for f in unseen], model.predict(unseen), rtol=1e-6)


def test_failures_rank_last() -> None:
    """Programs with a high value of feature 20 fail; the others' latencies are as above."""
    model = CostModel(0)
    for features in _programs(80, seed=1):
        failed = features[:, 20].mean() > 0.5
        model.observe(Sample("g", features, None if failed else _latency(features)))
    model.fit()
    good = np.full((2, FEATURES), 0.5, dtype=np.float32)
    good[:, [3, 9, 20]] = 0.1
    slow, failing = good.copy(), good.copy()
    slow[:, [3, 9]] = 0.9
    failing[:, 20] = 0.9
    score_good, score_slow, score_failing = model.predict([good, slow, failing])
    assert score_good > score_slow > score_failing


def test_latencies_of_different_groups_are_not_compared() -> None:
    """A workload that is a thousand times slower as a whole teaches the same order."""
    model = CostModel(0)
    for i, features in enumerate(_programs(60, seed=1)):
        slow = i % 2 == 0
        model.observe(Sample("slow" if slow else "fast", features, _latency(features) * (1000 if slow else 1)))
    model.fit()
    assert _agreement(model) > 0.8


@pytest.mark.parametrize("groups", [1, WARM_UP])
def test_failures_alone_prefer_nothing(groups: int) -> None:
    model = CostModel(0)
    for i, features in enumerate(_programs(WARM_UP, seed=1)):
        model.observe(Sample(f"g{i % groups}", features, None))
    model.fit()
    assert np.ptp(model.predict(_programs(5, seed=2))) == pytest.approx(0.0, abs=1e-6)


def test_equal_latencies_prefer_nothing() -> None:
    model = CostModel(0)
    for features in _programs(WARM_UP, seed=1):
        model.observe(Sample("g", features, 1e-3))
    model.fit()
    assert np.ptp(model.predict(_programs(5, seed=2))) == pytest.approx(0.0, abs=1e-6)


def test_latencies_far_apart_are_learnt() -> None:
    model = CostModel(0)
    for features in _programs(60, seed=1):
        model.observe(Sample("g", features, _latency(features) ** 8))
    model.fit()
    assert np.isfinite(model.predict(_programs(20, seed=2))).all()
    assert _agreement(model) > 0.6


def test_features_that_are_not_numbers_do_not_break_it() -> None:
    model = CostModel(0)
    for features in _programs(WARM_UP, seed=1):
        features[0, 0] = np.nan
        model.observe(Sample("g", features, _latency(features)))
    model.fit()
    assert np.isfinite(model.predict(_programs(5, seed=2))).all()


def test_it_learns_on_from_new_samples_only() -> None:
    model = _trained(WARM_UP)
    unseen = _programs(20, seed=2)
    before = model.predict(unseen)
    model.fit()
    np.testing.assert_array_equal(model.predict(unseen), before)
    model.observe(Sample("g", unseen[0], 1e-9))
    model.fit()
    assert (model.predict(unseen) != before).any()


def _base(latency: Callable[[Features], float], groups: int = 4) -> bytes:
    samples = [
        Sample(f"other {group}", features, latency(features))
        for group in range(groups)
        for features in _programs(60, seed=10 + group)
    ]
    return train_base(samples, seed=0)


def test_a_base_ranks_from_the_first_trial() -> None:
    model = CostModel(0, _base(_latency))
    assert model.ready
    assert _agreement(model) > 0.85


def test_a_base_and_few_samples_are_better_than_either() -> None:
    """The workload at hand is a little different: the base is right about most, and its own samples about the rest."""

    def here(features: Features) -> float:
        return _latency(features) + 1e-3 * float(features[:, 20].sum())

    alone, helped = CostModel(0), CostModel(0, _base(_latency))
    for features in _programs(24, seed=1):
        for model in (alone, helped):
            model.observe(Sample("g", features, here(features)))
    unseen = _programs(200, seed=2)
    before = _order_agreement(helped.predict(unseen), [here(f) for f in unseen])
    for model in (alone, helped):
        model.fit()
    scores = [_order_agreement(model.predict(unseen), [here(f) for f in unseen]) for model in (alone, helped)]
    assert scores[1] > max(scores[0], before)


@pytest.mark.whole
def test_a_base_that_is_wrong_is_dropped() -> None:
    """Once there are trials to tell, the model is what it would be without a base."""
    misled, alone = CostModel(0, _base(lambda features: 1e-6 / _latency(features))), CostModel(0)
    for features in _programs(40, seed=1):
        for model in (misled, alone):
            model.observe(Sample("g", features, _latency(features)))
    for model in (misled, alone):
        model.fit()
    np.testing.assert_array_equal(misled.predict(_programs(9, seed=2)), alone.predict(_programs(9, seed=2)))


@pytest.mark.whole
def test_equal_samples_make_equal_bases() -> None:
    assert _base(_latency) == _base(_latency)


def test_features_survive_storing() -> None:
    for features in _programs(5, seed=3):
        np.testing.assert_allclose(from_bytes(to_bytes(features)), features, rtol=2**-11, atol=2**-14)
