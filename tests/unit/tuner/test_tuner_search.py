"""Proposals: always new, always applicable, the same for the same seed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import tvm_ffi
from tvm.s_tir import Schedule

from loopwright.codegen.kinds import FailureKind, Origin, Stage
from loopwright.codegen.program.schedule import apply_trace_json
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, elementwise, matmul, split_outer, tile_both, traced
from tuner.cost_model.config import RankingConfig
from tuner.cost_model.features import FEATURES, from_bytes
from tuner.cost_model.model import CostModel, Sample, train_base
from tuner.search.config import SearchConfig
from tuner.search.evolutionary_search import EvolutionarySearch
from tuner.search.proposers.random import Random as RandomPrograms
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from tuner.space.user import user_space
from tuner.testing.simulated_fleet import SimulatedFleet
from tuner.types import LOSSES, Failure, MeasureCandidate, Measured, Outcome, Workload

FLEET = SimulatedFleet(LLVM)
CONFIG = SearchConfig()
GP_WARM_UP = CONFIG.gp_warm_up
RANKING_WARM_UP = RankingConfig().warm_up


def _builtin(workload: Workload, target: str = LLVM) -> DesignSpace:
    return builtin_space(module_from_json(workload.module_json), target_from(target), seed=1)


def _user(schedule: Callable[[Schedule], None]) -> DesignSpace:
    trace = traced(elementwise(), schedule)
    return user_space(module_from_json(elementwise().module_json), target_from(LLVM), [trace], seed=1)


def _tiny() -> DesignSpace:
    """Seven programs: the ways to write 64 as a product of two."""
    return _user(split_outer)


def _tiled() -> DesignSpace:
    return _user(tile_both)


def _space(workload: Workload) -> DesignSpace:
    """The built-in space of the product, a user's of the other."""
    return _builtin(workload) if workload is matmul() else _tiled()


def _search(space: DesignSpace, seed: int = 1) -> EvolutionarySearch:
    return EvolutionarySearch("workload", space, CostModel(seed), np.random.default_rng(seed))


def _measured(workload: Workload, candidate: MeasureCandidate) -> Outcome:
    return Measured((FLEET.latency(workload.module_json, candidate.trace_json),), "worker")


def _run(search: EvolutionarySearch, workload: Workload, batches: int, size: int = 8) -> list[MeasureCandidate]:
    """Propose and observe for some batches."""
    proposed: list[MeasureCandidate] = []
    for _ in range(batches):
        batch = search.propose(size)
        for candidate in batch:
            search.observe(candidate, _measured(workload, candidate))
        proposed += batch
    return proposed


def _programs(workload: Workload, candidates: list[MeasureCandidate]) -> list[int]:
    mod = module_from_json(workload.module_json)
    return [tvm_ffi.structural_hash(apply_trace_json(mod, c.trace_json or "").mod) for c in candidates]


@pytest.mark.parametrize("workload", [matmul(), elementwise()], ids=lambda workload: workload.name)
def test_no_program_is_proposed_twice(workload: Workload) -> None:
    candidates = _run(_search(_space(workload)), workload, batches=3)
    assert len(candidates) == 24
    assert len({candidate.hash for candidate in candidates}) == 24
    assert len(set(_programs(workload, candidates))) == 24


@pytest.mark.parametrize("workload", [matmul(), elementwise()], ids=lambda workload: workload.name)
def test_equal_seeds_propose_the_same(workload: Workload) -> None:
    one, other = (_run(_search(_space(workload)), workload, batches=3) for _ in range(2))
    assert one == other
    assert _search(_space(workload), seed=2).propose(8) != one[:8]


def test_a_single_first_candidate_is_the_best_guess_and_costs_no_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RandomPrograms, "_draw", lambda self: pytest.fail("drawn for nothing"))
    model = CostModel(1)
    for _ in range(40):  # enough for the model to rank
        model.observe(Sample("other", np.ones((2, FEATURES), np.float32), 1.0))
    space = _builtin(matmul())
    search = EvolutionarySearch("workload", space, model, np.random.default_rng(1))
    model.fit()
    assert model.ready
    assert [candidate.origin for candidate in search.propose(1)] == [Origin.SEED]
    [known] = _search(space, seed=3).propose(1)
    assert known.trace_json is not None
    search = EvolutionarySearch("workload", space, model, np.random.default_rng(1), known=[known.trace_json])
    assert [candidate.origin for candidate in search.propose(1)] == [Origin.TRANSFER]


def test_the_first_are_random_and_later_ones_are_ranked() -> None:
    candidates = _run(_search(_tiled()), elementwise(), batches=5)
    first, later = candidates[:GP_WARM_UP], candidates[GP_WARM_UP:]
    assert {(c.origin, c.predicted) for c in first} == {(Origin.RANDOM, None)}
    ranked = [c for c in later if c.predicted is not None]
    assert len(ranked) >= len(later) / 2
    assert Counter(c.origin for c in ranked)[Origin.MUTATION] > 0
    known = {c.hash for c in candidates}
    parents = {c.parent for c in ranked}
    assert parents - {None} <= known
    assert parents - {None}, "children of measured programs are among them"


def test_with_a_base_the_ranking_selects_until_enough_of_the_task_is_measured() -> None:
    taught = _run(_search(_tiled(), seed=2), elementwise(), batches=2)
    latencies = [min(_measured(elementwise(), candidate).run_secs) for candidate in taught]
    samples = [Sample("w", from_bytes(c.features or b""), lat) for c, lat in zip(taught, latencies, strict=True)]
    model = CostModel(1, train_base(samples, seed=0))
    search = EvolutionarySearch("workload", _tiled(), model, np.random.default_rng(1))
    candidates = _run(search, elementwise(), batches=4, size=4)
    assert all(c.predicted is not None for c in candidates)
    assert {c.origin for c in candidates[:8]} == {Origin.RANDOM}
    assert {c.origin for c in candidates[8:]} == {Origin.MUTATION}


def test_the_search_beats_random_sampling() -> None:
    candidates = _run(_search(_tiled()), elementwise(), batches=5)
    latencies = [FLEET.latency(elementwise().module_json, c.trace_json) for c in candidates]
    ranked = [s for s, c in zip(latencies, candidates, strict=True) if c.predicted is not None]
    assert np.median(ranked) < np.median(latencies[:GP_WARM_UP])


def test_a_tiny_space_is_exhausted_and_says_so() -> None:
    search = _search(_tiny())
    candidates = search.propose(4) + search.propose(8)
    assert len(set(_programs(elementwise(), candidates))) == len(candidates) == 7
    assert search.propose(8) == []


def test_a_small_space_is_searched_to_its_end() -> None:
    """What a ready model leaves is still to come: it does not make the space look exhausted."""
    model = CostModel(0)
    for number in range(RANKING_WARM_UP):
        model.observe(Sample("other", np.full((1, FEATURES), number, np.float32), 1e-3 * (number + 1)))
    search = EvolutionarySearch("elementwise", _tiny(), model, np.random.default_rng(0))
    first, rest = search.propose(4), search.propose(8)
    assert (len(first), len(rest)) == (4, 3)
    assert len(set(_programs(elementwise(), first + rest))) == 7


def test_a_space_of_fixed_schedules_is_exhausted_after_them() -> None:
    def parallel(sch: Schedule) -> None:
        sch.parallel(sch.get_loops(sch.get_sblock("B"))[0])

    search = _search(_user(parallel))
    (only,) = search.propose(8)
    search.observe(only, _measured(elementwise(), only))
    assert search.propose(8) == []


def test_what_failed_is_not_proposed_again_and_the_search_goes_on() -> None:
    search = _search(_tiled())
    seen: set[str] = set()
    for _ in range(4):
        for candidate in search.propose(8):
            assert candidate.hash not in seen
            seen.add(candidate.hash)
            search.observe(candidate, Failure(Stage.BUILD, FailureKind.COMPILE, "no"))
    assert len(seen) == 32


@pytest.mark.parametrize("kind", LOSSES)
def test_a_lost_process_teaches_nothing(kind: FailureKind) -> None:
    model = CostModel(1)
    search = EvolutionarySearch("w", _tiled(), model, np.random.default_rng(1))
    for candidate in search.propose(RANKING_WARM_UP):
        search.observe(candidate, Failure(Stage.RUN, kind, "gone"))
    model.fit()
    assert not model.ready


def test_what_is_barred_is_not_proposed_even_if_it_is_known() -> None:
    free = [candidate.trace_json for candidate in _search(_tiny()).propose(8)]
    barred = [trace for trace in free[:3] if trace is not None]
    search = EvolutionarySearch(
        "w", _tiny(), CostModel(1), np.random.default_rng(1), known=barred, barred=[*barred, "[]", "no trace"]
    )
    proposed = [candidate.trace_json for candidate in search.propose(8)]
    assert set(proposed) == set(free) - set(barred)


def test_a_resumed_search_does_not_repeat() -> None:
    """Not even with the seed of the first run, whose random draws come again."""
    before = _run(_search(_tiled()), elementwise(), batches=3)
    resumed = _search(_tiled())
    for candidate in before:
        resumed.resume(candidate)
        resumed.observe(candidate, _measured(elementwise(), candidate))
    after = _run(resumed, elementwise(), batches=2)
    assert len(after) == 16
    assert len(set(_programs(elementwise(), before + after))) == len(before) + 16
    assert any(c.parent in {b.hash for b in before} for c in after)


def test_a_search_that_resumes_unfinished_trials_can_observe_them() -> None:
    (candidate,) = _search(_tiled()).propose(1)
    resumed = _search(_tiled())
    resumed.resume(candidate)
    resumed.observe(candidate, _measured(elementwise(), candidate))
    assert candidate.hash not in {c.hash for c in resumed.propose(4)}


def test_a_resumed_tiny_space_stays_exhausted() -> None:
    candidates = _search(_tiny()).propose(8)
    resumed = _search(_tiny())
    for candidate in candidates:
        resumed.resume(candidate)
    assert resumed.propose(8) == []


def test_a_trace_that_does_not_apply_is_refused_not_raised() -> None:
    foreign = _builtin(matmul()).traces[0]
    assert _builtin(elementwise()).replay(foreign, 1) is None


@pytest.mark.whole  # loading the tensor intrinsics takes 7 s
def test_a_space_for_gpus_has_programs_too() -> None:
    candidates = _search(_builtin(matmul(), '{"kind": "cuda", "arch": "sm_80"}')).propose(4)
    assert len(candidates) == 4
    assert all("threadIdx.x" in (candidate.trace_json or "") for candidate in candidates)


def test_models_that_never_get_ready_leave_a_random_search() -> None:
    never = 10**9
    config = replace(CONFIG, gp_warm_up=never, ranking=replace(CONFIG.ranking, warm_up=never))
    model = CostModel(1, None, config.ranking)
    search = EvolutionarySearch("workload", _tiled(), model, np.random.default_rng(1), config=config)
    candidates = _run(search, elementwise(), batches=4)
    assert {(c.origin, c.predicted) for c in candidates} == {(Origin.RANDOM, None)}


@pytest.mark.parametrize("parents", [1, 24])
def test_the_config_says_how_many_programs_have_mutants(parents: int) -> None:
    config = replace(CONFIG, parents=parents)
    space = stock_space(module_from_json(matmul().module_json), target_from(LLVM), seed=1)
    search = EvolutionarySearch("workload", space, CostModel(1), np.random.default_rng(1), config=config)
    later = _run(search, matmul(), batches=4)[GP_WARM_UP:]
    assert {(c.origin, c.predicted is None) for c in later} == {(Origin.MUTATION, False)}
    assert (len({c.parent for c in later[-8:]}) == 1) == (parents == 1)
