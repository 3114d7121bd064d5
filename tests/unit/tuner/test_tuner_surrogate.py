"""The surrogate: encodings of programs, the two models that predict them, and the selection of batches."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from tvm.s_tir import Schedule

from loopwright.codegen.kinds import Origin
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, matmul
from tuner.cost_model.model import CostModel
from tuner.search.config import SearchConfig
from tuner.search.encoding import Encoding, Vectorizer
from tuner.search.individual import Individual
from tuner.search.surrogate import Surrogate
from tuner.space.builtin import stock_space
from tuner.space.design_space import DesignSpace
from tuner.testing.simulated_fleet import SimulatedFleet

FLEET = SimulatedFleet(LLVM)
CONFIG = SearchConfig()
WARM_UP = CONFIG.gp_warm_up


@cache
def space() -> DesignSpace:
    return stock_space(module_from_json(matmul().module_json), target_from(LLVM), 1)


@cache
def programs() -> list[Schedule]:
    drawn = (space().replay(trace, seed) for seed in range(1, 41) for trace in space().traces)
    return [schedule for schedule in drawn if schedule is not None]


def encode(schedule: Schedule) -> Encoding:
    return Individual.of(space(), schedule, Origin.RANDOM).encoding


@cache
def individuals() -> list[Individual]:
    return [Individual.of(space(), schedule, Origin.RANDOM) for schedule in programs()]


def encodings() -> list[Encoding]:
    return [individual.encoding for individual in individuals()]


@cache
def latencies() -> list[float]:
    return [FLEET.latency(matmul().module_json, trace_to_json(one.trace)) for one in programs()]


def fitted(count: int, config: SearchConfig = CONFIG) -> Surrogate:
    surrogate = Surrogate("workload", CostModel(0), config)
    for individual, latency in zip(individuals()[:count], latencies()[:count], strict=True):
        surrogate.observe(individual, latency)
    surrogate.fit()
    return surrogate


def agreement(scores: np.ndarray, speeds: np.ndarray) -> float:
    faster = speeds[:, None] > speeds[None, :]
    return float((scores[:, None] > scores[None, :])[faster].mean())


def test_an_encoding_contains_the_logarithms_of_the_tiles() -> None:
    for schedule in programs():
        tiles = [value for (kind, *_), value in encode(schedule).items() if kind == "SamplePerfectTile"]
        decided = [
            [int(factor) for factor in decision]
            for inst, decision in dict(schedule.trace.decisions).items()
            if inst.kind.name == "SamplePerfectTile"
        ]
        assert sorted(2 ** (2 * value) for value in tiles) == pytest.approx(sorted(f for d in decided for f in d))


def test_sketches_that_fuse_at_different_loops_have_different_encodings() -> None:
    """Multi-level tiling offers its cached output to two loops: the same instructions with another loop as input."""
    kinds = {tuple(inst.kind.name for inst in trace.insts) for trace in space().traces}
    sketches = {key for schedule in programs() for key in encode(schedule) if key[0] == "sketch"}
    assert len(kinds) < len(space().traces)
    assert len(sketches) == len(space().traces)


def test_an_encoding_does_not_depend_on_how_the_program_was_made() -> None:
    """A program drawn at random, and the same one replayed from its decisions as mutation does."""
    for drawn in programs()[:10]:
        replayed = space().replay(Individual.of(space(), drawn, Origin.RANDOM).vector.trace, 1)
        assert replayed is not None
        assert encode(replayed) == encode(drawn)


def test_distances_include_unknown_features() -> None:
    encodings = [encode(schedule) for schedule in programs()[:15]]
    known, others = encodings[:4], encodings[4:]
    partial, whole = Vectorizer(known), Vectorizer(encodings)
    for one in known:
        for other in others:
            distance = np.linalg.norm(partial.transform([one])[0] - partial.transform([other])[0])
            assert distance == pytest.approx(np.linalg.norm(whole.transform([one])[0] - whole.transform([other])[0]))


def test_few_measurements_are_enough_for_an_order() -> None:
    surrogate, unseen = fitted(32), encodings()[32:]
    assert surrogate.experienced
    assert agreement(surrogate.predict(unseen), -np.array(latencies()[32:])) > 0.65


def test_too_few_measurements_predict_nothing() -> None:
    assert not fitted(WARM_UP - 1).experienced
    assert set(fitted(WARM_UP - 1).predict(encodings())) == {0.0}
    assert fitted(WARM_UP).experienced


def test_until_the_process_is_ready_the_ranking_selects() -> None:
    config = replace(CONFIG, gp_warm_up=10**9)
    assert not fitted(config.ranking.warm_up - 1, config).ready
    surrogate, unseen = fitted(32, config), individuals()[32:]
    assert surrogate.ready
    assert not surrogate.experienced
    ranked = surrogate.select_batch(unseen, len(unseen))
    scores = [one.predicted or 0.0 for one in ranked]
    assert scores == sorted(scores, reverse=True)
    order = {id(one): place for place, one in enumerate(ranked)}
    assert agreement(np.array([-order[id(one)] for one in unseen]), -np.array(latencies()[32:])) > 0.6
    assert surrogate.select_batch(unseen, 3) == ranked[:3]
    assert surrogate.select_batch(unseen[:3], 5) == sorted(unseen[:3], key=lambda one: order[id(one)])
    assert surrogate.select_batch([], 5) == []


def test_a_prediction_does_not_depend_on_the_other_programs() -> None:
    surrogate, unseen = fitted(32), encodings()[32:48]
    together = surrogate.predict(unseen)
    alone = [float(surrogate.predict([one])[0]) for one in unseen]
    assert together == pytest.approx(alone)
    assert len(surrogate.predict([])) == 0


def _observed_with_failures() -> tuple[Surrogate, np.ndarray]:
    """Return a surrogate for which half of 60 programs failed, by one decision, and which of the others are alike."""
    surrogate = Surrogate("workload", CostModel(0), CONFIG)
    failing = np.array([one.encoding[("SampleCategorical", 0)] >= 2 for one in individuals()])
    for individual, failed in list(zip(individuals(), failing, strict=True))[:60]:
        surrogate.observe(individual, None if failed else 1e-3)
    surrogate.fit()
    return surrogate, failing[60:]


def test_programs_like_those_that_failed_rank_below_those_like_the_measured() -> None:
    surrogate, failing = _observed_with_failures()
    values = surrogate.predict(encodings()[60:])
    assert values[~failing].mean() > values[failing].mean() + 0.3


def test_failures_alone_do_no_harm() -> None:
    surrogate = Surrogate("workload", CostModel(0), CONFIG)
    for individual in individuals()[:WARM_UP]:
        surrogate.observe(individual, None)
    surrogate.fit()
    assert np.isfinite(surrogate.predict(encodings()[WARM_UP:])).all()
