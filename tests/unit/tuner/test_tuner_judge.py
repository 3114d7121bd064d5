"""What a search thinks of programs: their coordinates, and the two models that judge them."""

from __future__ import annotations

from functools import cache, partial

import numpy as np
import pytest
from tvm.s_tir import Schedule

from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.unit.tuner.programs import LLVM, matmul
from tuner.cost_model.features import extract
from tuner.cost_model.model import CostModel
from tuner.search.coordinates import Coordinates, Places
from tuner.search.individual import Individual
from tuner.search.judge import WARM_UP, Described, Judge
from tuner.space.builtin import builtin_space
from tuner.space.design_space import DesignSpace
from tuner.testing.simulated_fleet import SimulatedFleet
from tuner.types import Origin

FLEET = SimulatedFleet(LLVM)


@cache
def space() -> DesignSpace:
    return builtin_space(module_from_json(matmul().module_json), target_from(LLVM), 1)


@cache
def programs() -> list[Schedule]:
    drawn = (space().replay(trace, seed) for seed in range(1, 41) for trace in space().traces)
    return [schedule for schedule in drawn if schedule is not None]


def located(schedule: Schedule) -> Coordinates:
    return Individual.of(schedule, Origin.RANDOM).draft.coordinates()


@cache
def described() -> list[Described]:
    features = extract(space().context, programs())
    return [Described(located(one), partial(np.copy, rows)) for rows, one in zip(features, programs(), strict=True)]


@cache
def latencies() -> list[float]:
    return [FLEET.latency(matmul().module_json, trace_to_json(one.trace)) for one in programs()]


def taught(seen: int) -> Judge:
    judge = Judge("workload", CostModel(0))
    for program, latency in zip(described()[:seen], latencies()[:seen], strict=True):
        judge.observe(program, latency)
    judge.fit()
    return judge


def agreement(scores: np.ndarray, speeds: np.ndarray) -> float:
    faster = speeds[:, None] > speeds[None, :]
    return float((scores[:, None] > scores[None, :])[faster].mean())


def test_coordinates_are_the_decisions() -> None:
    for schedule in programs():
        found = located(schedule)
        tiles = [value for (kind, *_), value in found.items() if kind == "SamplePerfectTile"]
        decided = [
            [int(factor) for factor in decision]
            for inst, decision in dict(schedule.trace.decisions).items()
            if inst.kind.name == "SamplePerfectTile"
        ]
        assert sorted(2 ** (2 * value) for value in tiles) == pytest.approx(sorted(f for d in decided for f in d))


def test_coordinates_tell_sketches_apart_that_fuse_at_different_loops() -> None:
    """Multi-level tiling offers its cached output to two loops: the same instructions, given another loop."""
    kinds = {tuple(inst.kind.name for inst in trace.insts) for trace in space().traces}
    sketches = {place for schedule in programs() for place in located(schedule) if place[0] == "sketch"}
    assert len(kinds) < len(space().traces)
    assert len(sketches) == len(space().traces)


def test_coordinates_do_not_tell_how_a_program_came_about() -> None:
    """A program that was drawn and the same, made of its decisions, as mutation makes its children."""
    for drawn in programs()[:10]:
        made = space().replay(Individual.of(drawn, Origin.RANDOM).draft.trace, 1)
        assert made is not None
        assert located(made) == located(drawn)


def test_distances_count_places_that_only_one_has() -> None:
    coordinates = [located(schedule) for schedule in programs()[:15]]
    some, others = coordinates[:4], coordinates[4:]
    apart = Places(some)
    together = Places(coordinates)
    for one in some:
        for other in others:
            narrow = np.linalg.norm(apart.rows([one])[0] - apart.rows([other])[0])
            assert narrow == pytest.approx(np.linalg.norm(together.rows([one])[0] - together.rows([other])[0]))


def test_few_measurements_are_enough_for_an_order() -> None:
    judge, unseen = taught(32), described()[32:]
    assert judge.ready
    assert agreement(judge.scores(unseen), -np.array(latencies()[32:])) > 0.65


def test_too_few_measurements_say_nothing() -> None:
    assert not taught(WARM_UP - 1).ready
    assert taught(WARM_UP).ready


def test_scores_do_not_depend_on_what_is_asked_together() -> None:
    judge, unseen = taught(32), described()[32:48]
    together = judge.scores(unseen)
    alone = [float(judge.scores([one])[0]) for one in unseen]
    assert together == pytest.approx(alone)
    assert len(judge.scores([])) == 0


def test_optimism_is_for_what_lies_far_from_all_that_was_measured() -> None:
    judge, known = taught(32), described()[:32]
    strange = [Described({place: value + 50 for place, value in one.coordinates.items()}, one.extract) for one in known]
    gains = [judge.scores(programs, 1.0) - judge.scores(programs) for programs in (known, strange)]
    assert gains[0].max() < gains[1].min()
    assert (gains[0] >= 0).all()


def test_failures_rank_below_what_ran() -> None:
    """The programs like those that failed are thought to be worse than the programs like those that ran."""
    judge = Judge("workload", CostModel(0))
    halves = [located(one)[("SampleCategorical", 0)] >= 2 for one in programs()]
    for program, bad in list(zip(described(), halves, strict=True))[:60]:
        judge.observe(program, None if bad else 1e-3)
    judge.fit()
    scores = judge.scores(described()[60:])
    bad = np.array(halves[60:])
    assert scores[~bad].mean() > scores[bad].mean() + 0.5


def test_nothing_but_failures_does_no_harm() -> None:
    judge = Judge("workload", CostModel(0))
    for program in described()[:WARM_UP]:
        judge.observe(program, None)
    judge.fit()
    assert np.isfinite(judge.scores(described()[WARM_UP:])).all()


def test_programs_chosen_together_are_not_twins() -> None:
    """Of a program, one that hardly differs and one far off, optimism wants the first and the last."""
    judge = taught(WARM_UP)
    scores = judge.scores(described(), optimism=50.0)
    first = int(np.argmax(scores))
    assert judge.choose(described(), 1, 50.0, []) == [(first, pytest.approx(scores[first]))]
    twins = [described()[first]] * 2 + described()
    chosen = [number for number, _ in judge.choose(twins, 4, 50.0, [])]
    assert len(set(chosen)) == 4
    assert len({0, 1, first + 2} & set(chosen)) == 1


def test_what_is_awaited_is_not_wondered_about() -> None:
    judge = taught(WARM_UP)
    [(favourite, _)] = judge.choose(described(), 1, 50.0, [])
    [(other, _)] = judge.choose(described(), 1, 50.0, [described()[favourite]])
    assert other != favourite


def test_without_optimism_the_best_liked_are_chosen() -> None:
    judge = taught(WARM_UP)
    scores = judge.scores(described())
    chosen = judge.choose(described(), 5, 0.0, described()[20:25])
    assert [score for _, score in chosen] == pytest.approx(sorted(scores, reverse=True)[:5])
    assert judge.choose([], 5, 0.0, []) == []
