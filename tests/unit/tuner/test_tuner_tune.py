"""The loop of a job, from tasks to certificates, on a simulated fleet."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from loopwright.codegen.kinds import FailureKind, Lane, Stage
from tests.support.tuner_programs import LLVM, elementwise, matmul, split_outer, task, tile_both, traced
from tuner.budget import Budget
from tuner.certify import TIE
from tuner.errors import LeaseLost, RaceFailed, SearchFailed
from tuner.ports import Meanwhile, MeasureRequest, RaceRequest, RaceResult
from tuner.search.config import SearchConfig
from tuner.search.request import TuneRequest
from tuner.search.searcher import Searcher
from tuner.testing.memory_ledger import MemoryLedger
from tuner.testing.simulated_fleet import SimulatedFleet
from tuner.tune import tune
from tuner.types import BASELINE, Failure, MeasureCandidate, Measured, Outcome, Span, TaskSpec, Trial, Workload

CONFIG = SearchConfig()
BATCH = CONFIG.batch
REQUEST = TuneRequest(
    tasks=[task(elementwise())],
    target_json=LLVM,
    space=[traced(elementwise(), tile_both)],
    budget=Budget(20),
    seed=1,
)
BUILT_IN = replace(REQUEST, tasks=[task(matmul())], space=None)
TINY: list[object] = [traced(elementwise(), split_outer)]
"""A space of seven programs that fits `elementwise` only."""
CRASH = Failure(Stage.RUN, FailureKind.CRASH, "it crashed", "simulated")


def _within(request: TuneRequest, **limits: Any) -> TuneRequest:
    return replace(request, budget=replace(request.budget, **limits))


class Interrupted(Exception):
    """The process was killed."""


class _Clock:
    """Seconds that pass when a fleet is waited for, and only then."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class _SlowFleet(SimulatedFleet):
    def __init__(self, clock: _Clock, seconds: float) -> None:
        super().__init__(LLVM)
        self._clock = clock
        self._seconds = seconds

    def collect(self, timeout: float) -> list[tuple[str, Outcome]]:
        self._clock.now += self._seconds
        return super().collect(timeout)


class _Timed(SimulatedFleet):
    """Takes some seconds in the measuring slot for each program, and says so."""

    def __init__(self, seconds: float, **options: Any) -> None:
        super().__init__(LLVM, **options)
        self._seconds = seconds
        self._now = 1000.0

    def _outcome(self, request: MeasureRequest) -> Outcome:
        started, self._now = self._now, self._now + self._seconds
        spans = (Span(Lane.BUILD, "builder", 0.0, started), Span(Lane.MEASURE, "simulated", started, self._now))
        return replace(super()._outcome(request), spans=spans)


class _Level(_Timed):
    """All candidates are equally fast: no trial that ends after the search has stopped is better."""

    def _outcome(self, request: MeasureRequest) -> Outcome:
        outcome = super()._outcome(request)
        assert isinstance(outcome, Measured)
        return outcome if request.trace_json is None else replace(outcome, run_secs=(1e-3,))


class _Ledger(MemoryLedger):
    """Calls ``after`` with the number of finished trials, once each is written."""

    def __init__(self, tasks: int, after: Callable[[_Ledger, int], None]) -> None:
        super().__init__(tasks)
        self._after = after
        self._finished = 0

    def finish(self, *finished: tuple[Trial, Outcome]) -> None:
        for each in finished:
            super().finish(each)
            self._finished += 1
            self._after(self, self._finished)


def _tune(request: TuneRequest = REQUEST, fleet: SimulatedFleet | None = None) -> tuple[MemoryLedger, SimulatedFleet]:
    ledger, fleet = MemoryLedger(len(request.tasks)), fleet or SimulatedFleet(LLVM)
    tune(request, Searcher(request), fleet, ledger)
    return ledger, fleet


def _named(workload: Workload, name: str) -> Workload:
    return replace(workload, name=name, hash=name)


def _lines(ledger: MemoryLedger, number: int = 0) -> list[Trial]:
    return list(ledger.history(number))


def _candidates(ledger: MemoryLedger, number: int = 0) -> list[MeasureCandidate]:
    """What the search proposed: the baseline left out."""
    return [trial.candidate for trial in _lines(ledger, number) if trial.candidate.trace_json is not None]


@pytest.mark.parametrize("request_", [REQUEST, BUILT_IN], ids=["user's space", "built-in space"])
def test_a_job_ends_with_a_certificate_of_its_best(request_: TuneRequest) -> None:
    ledger, fleet = _tune(request_)
    certificate = ledger.certificates[0]
    medians = {
        trial.candidate.hash: trial.outcome.median for trial in _lines(ledger) if isinstance(trial.outcome, Measured)
    }
    # Of those that the race cannot tell from the fastest, the one with the lowest hash.
    assert medians[certificate.candidate_hash] <= (1 + TIE) * min(medians.values())
    assert certificate.speedup > 2
    assert ledger.stopped == {0: "budget"}
    assert ledger.failures == {}
    assert len(fleet.races) == 1


@pytest.mark.parametrize("max_trials", [1, BATCH, BATCH + 1, 20])
def test_the_budget_is_exact_and_the_baseline_is_not_of_it(max_trials: int) -> None:
    ledger, fleet = _tune(_within(REQUEST, max_trials=max_trials))
    assert len(_candidates(ledger)) == max_trials
    assert len(_lines(ledger)) == len(fleet.submitted) == max_trials + 1
    assert all(trial.outcome is not None for trial in _lines(ledger))
    assert [trial.candidate for trial in _lines(ledger)].count(BASELINE) == 1


def test_the_budget_is_shared_by_the_tasks() -> None:
    tasks = [task(elementwise()), task(_named(elementwise(), "again"), weight=3)]
    request = replace(_within(REQUEST, max_trials=30), tasks=tasks)
    ledger, _ = _tune(request)
    shares = [len(_candidates(ledger, number)) for number in (0, 1)]
    assert sum(shares) == 30
    assert min(shares) >= BATCH / 2
    assert shares[1] > shares[0]
    assert set(ledger.certificates) == {0, 1}


def test_only_races_of_tasks_that_matter_are_repeated() -> None:
    tasks = [task(elementwise()), task(_named(elementwise(), "again"), weight=50)]
    _, fleet = _tune(replace(REQUEST, tasks=tasks))
    assert sorted(race.repeats for race in fleet.races) == [False, True]
    _, alone = _tune()
    assert [race.repeats for race in alone.races] == [True]


def test_a_short_budget_goes_to_the_task_that_matters() -> None:
    tasks = [task(elementwise()), task(_named(elementwise(), "again"), weight=50)]
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=BATCH), tasks=tasks))
    assert [len(_candidates(ledger, number)) for number in (0, 1)] == [1, BATCH - 1]
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=1), tasks=tasks))
    assert [len(_candidates(ledger, number)) for number in (0, 1)] == [0, 1]


@pytest.mark.parametrize(("baseline", "wins"), [(1e-2, False), (1e-6, True)])
def test_the_baseline_of_a_small_task_has_a_trial_if_it_wins(baseline: float, wins: bool) -> None:
    """Its race measures it in any case."""
    tasks = [task(elementwise()), task(_named(elementwise(), "again"), weight=500)]
    ledger = MemoryLedger(2)
    request = replace(_within(REQUEST, max_trials=BATCH), tasks=tasks)
    tune(request, Searcher(request), SimulatedFleet(LLVM, baseline=baseline), ledger)
    assert [ledger.certificates[number].candidate_hash == BASELINE.hash for number in (0, 1)] == [wins, wins]
    assert ledger.certificates[0].baseline_run_secs
    measured = [trial.outcome is not None for trial in _lines(ledger, 0) if trial.candidate == BASELINE]
    assert measured == ([True] if wins else [])


def test_equal_seeds_make_equal_jobs() -> None:
    one, other = _tune()[0], _tune()[0]
    assert one.trials == other.trials
    assert one.certificates == other.certificates
    assert _candidates(_tune(replace(REQUEST, seed=2))[0]) != _candidates(one)


def test_an_exhausted_space_ends_the_search() -> None:
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=50), tasks=[task(elementwise())], space=TINY))
    assert len(_candidates(ledger)) == 7
    assert ledger.stopped == {0: "exhausted"}


def test_a_users_space_that_does_not_fit_leaves_the_baseline() -> None:
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=50), tasks=[task(matmul()), task(elementwise())], space=TINY))
    assert [len(_candidates(ledger, number)) for number in (0, 1)] == [0, 7]
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert ledger.stopped == {0: "exhausted", 1: "exhausted"}


def test_time_ends_the_search_and_drops_what_is_in_flight() -> None:
    clock = _Clock()
    ledger, fleet = MemoryLedger(1), _SlowFleet(clock, seconds=5.0)
    request = _within(REQUEST, max_trials=1000, max_seconds=25.0)
    tune(request, Searcher(request), fleet, ledger, clock)
    assert ledger.stopped == {0: "time"}
    lines = _lines(ledger)
    assert 5 <= sum(trial.outcome is not None for trial in lines) < len(lines) <= 25
    assert [trial.outcome is not None for trial in lines if trial.candidate == BASELINE] == [True]
    assert ledger.certificates[0].speedup > 1
    assert clock.now <= 135


class _Racing(_SlowFleet):
    """Builds and races take time by the clock: a race as long as it may, and three builds on two cores."""

    def _outcome(self, request: MeasureRequest) -> Outcome:
        return replace(super()._outcome(request), spans=(Span(Lane.BUILD, "builder", 0.0, 0.4),))

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self._pass(1.5 * 0.4 + request.seconds * (3 if request.repeats else 1), meanwhile)
        return super().race(request, meanwhile)

    def _pass(self, seconds: float, meanwhile: Meanwhile) -> None:
        until = self._clock.now + seconds
        while self._clock.now < until:
            self._clock.now = min(until, self._clock.now + 0.1)
            meanwhile()


@pytest.mark.parametrize(("functions", "seconds"), [(1, 20.0), (9, 40.0), (50, 80.0)])
def test_closing_races_are_within_the_time_of_the_job(functions: int, seconds: float) -> None:
    clock, ledger = _Clock(), MemoryLedger(functions)
    tasks = [task(_named(elementwise(), f"m{i}"), weight=1 + i**2) for i in range(functions)]
    request = replace(_within(REQUEST, max_trials=10_000, max_seconds=seconds), tasks=tasks)
    fleet = _Racing(clock, seconds=1.0)
    spent = tune(request, Searcher(request), fleet, ledger, clock)
    assert ledger.ended == "time"
    assert set(ledger.certificates) == set(range(functions))
    assert all(_candidates(ledger, number) for number in range(functions))
    assert 0.75 * seconds <= clock.now - 100.0 <= 1.1 * seconds
    assert spent.search + spent.races == pytest.approx(clock.now - 100.0)
    assert min(spent.search, spent.races) > 0
    lengths = [race.seconds * (3 if race.repeats else 1) for race in fleet.races]
    assert (lengths[0], lengths[-1]) == (max(lengths), min(lengths))


class _Grouped(_Racing):
    """Notes which races were run together. All of them take ``slow`` seconds longer than they should."""

    def __init__(self, clock: _Clock, slow: float = 0.0) -> None:
        super().__init__(clock, seconds=0.5)
        self.groups: list[int] = []
        self._slow = slow

    def race_all(self, requests: Sequence[RaceRequest], meanwhile: Meanwhile) -> list[RaceResult | RaceFailed]:
        self.groups.append(len(requests))
        self._pass(self._slow, meanwhile)
        return super().race_all(requests, meanwhile)


def test_small_functions_are_raced_together_and_large_ones_alone() -> None:
    clock, ledger = _Clock(), MemoryLedger(20)
    tasks = [task(_named(elementwise(), f"m{i}"), weight=300 if i == 7 else 1) for i in range(20)]
    fleet = _Grouped(clock)
    request = replace(_within(REQUEST, max_trials=30), tasks=tasks)
    tune(request, Searcher(request), fleet, ledger, clock)
    assert set(ledger.certificates) == set(range(20))
    assert fleet.groups[0] == 1
    assert sum(fleet.groups) == 20
    assert len(fleet.groups) == 1 + math.ceil(19 / max(fleet.groups))
    assert fleet.races[0].repeats
    assert not any(race.repeats for race in fleet.races[1:])


@pytest.mark.parametrize(("functions", "slow"), [(20, 25.0), (50, 8.0)])
def test_tasks_without_time_for_their_races_are_postponed_but_not_the_weightiest(functions: int, slow: float) -> None:
    clock, ledger = _Clock(), MemoryLedger(functions)
    tasks = [task(_named(elementwise(), f"m{i}"), weight=1 + i) for i in range(functions)]
    request = replace(_within(REQUEST, max_trials=10_000, max_seconds=60.0), tasks=tasks)
    tune(request, Searcher(request), _Grouped(clock, slow=slow), ledger, clock)
    assert set(ledger.certificates) | set(ledger.postponed) == set(range(functions))
    assert len(ledger.certificates) + len(ledger.postponed) == functions
    assert functions - 1 in ledger.certificates
    assert ledger.postponed
    assert clock.now - 100.0 <= 1.1 * 60.0


def test_only_the_first_race_of_a_job_outlasts_its_time() -> None:
    """A job with one function has no other: it is certified however long that takes."""
    for functions, slow in ((1, 90.0), (2, 90.0)):
        clock, ledger = _Clock(), MemoryLedger(functions)
        tasks = [task(_named(elementwise(), f"m{i}"), weight=1 + i) for i in range(functions)]
        request = replace(_within(REQUEST, max_trials=10_000, max_seconds=30.0), tasks=tasks)
        tune(request, Searcher(request), _Grouped(clock, slow=slow), ledger, clock)
        assert set(ledger.certificates) == {functions - 1}
        assert ledger.postponed == list(range(functions - 1))


def test_no_time_left_still_measures_and_certifies_the_baseline() -> None:
    ledger = MemoryLedger(1)
    request = _within(REQUEST, max_seconds=0.0)
    tune(request, Searcher(request), SimulatedFleet(LLVM), ledger, _Clock())
    assert [trial.candidate for trial in _lines(ledger)] == [BASELINE]
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert ledger.stopped == {0: "time"}


def test_functions_that_the_time_does_not_reach_are_raced_with_their_first_choice() -> None:
    tasks = [task(matmul(), weight=30), task(elementwise()), task(elementwise(24))]
    request = replace(_within(REQUEST, max_seconds=20.0), tasks=tasks, space=None)
    clock, ledger, fleet = _Clock(), MemoryLedger(3), SimulatedFleet(LLVM)
    tune(request, _Slow(request, clock), fleet, ledger, clock)
    assert ledger.ended == "time"
    assert fleet.submitted == []
    assert [len(race.contenders) for race in fleet.races] == [1, 1, 1]
    for number in range(3):
        [trial] = _lines(ledger, number)
        assert trial.candidate.origin == "seed"
        assert isinstance(trial.outcome, Measured)
        assert trial.outcome.worker == "simulated"
        assert ledger.certificates[number].best_run_secs == trial.outcome.run_secs


def test_functions_that_hardly_matter_have_no_trials_but_their_first_choice_in_the_race() -> None:
    tasks = [task(elementwise()), task(matmul(), weight=500), task(elementwise(24))]
    request = replace(_within(REQUEST, max_trials=2 * BATCH), tasks=tasks, space=None)
    ledger, fleet = _tune(request)
    assert {each.module_json for each in fleet.submitted} == {matmul().module_json}
    assert len(_candidates(ledger, 1)) == 2 * BATCH
    assert [[each.origin for each in _candidates(ledger, number)] for number in (0, 2)] == [["seed"]] * 2
    assert ledger.stopped == dict.fromkeys(range(3), "budget")
    # Their time counts by its estimate, so that a goal for the whole model can be reached.
    ledger, _ = _tune(_within(request, max_trials=1000, target_latency_us=1e7))
    assert ledger.ended == "target"


def test_a_first_choice_that_fails_in_the_race_leaves_the_baseline() -> None:
    fleet = SimulatedFleet(LLVM, fault=lambda request: CRASH if request.trace_json else None)
    ledger, _ = _tune(replace(_within(REQUEST, max_seconds=0.0), tasks=[task(matmul())], space=None), fleet)
    assert [trial.outcome == CRASH for trial in _lines(ledger) if trial.candidate != BASELINE] == [True]
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert all(trial.outcome is not None for trial in _lines(ledger))


def test_device_time_ends_the_search() -> None:
    request = _within(REQUEST, max_trials=1000, max_device_seconds=30.0)
    ledger, fleet = _tune(request, _Timed(2.0))
    assert (ledger.stopped, ledger.ended) == ({0: "device_time"}, "device_time")
    assert 15 <= len(fleet.submitted) <= 15 + BATCH + fleet.slots
    assert ledger.certificates[0].speedup > 1


def test_a_job_that_used_its_device_time_before_it_was_interrupted_only_certifies() -> None:
    request = _within(REQUEST, max_trials=1000, max_device_seconds=30.0)
    ledger, _ = _tune(request, _Timed(2.0))
    fleet = _Timed(2.0)
    tune(request, Searcher(request), fleet, ledger)
    assert fleet.submitted == []
    assert ledger.ended == "device_time"


MODEL = replace(
    REQUEST,
    tasks=[task(elementwise()), task(_named(elementwise(), "again"), weight=3)],
    budget=Budget(400, target_latency_us=1e4),
)
"""Two functions that run 4 times in all; untuned, each takes 10 ms."""


def _model_latency(ledger: MemoryLedger, request: TuneRequest) -> float:
    medians = [
        [trial.outcome.median for trial in _lines(ledger, number) if isinstance(trial.outcome, Measured)]
        for number in range(len(request.tasks))
    ]
    return sum(each.weight * min(latencies) for each, latencies in zip(request.tasks, medians, strict=True))


def test_a_search_stops_when_the_whole_model_is_as_fast_as_asked_for() -> None:
    ledger, _ = _tune(MODEL)
    assert (ledger.stopped, ledger.ended) == ({0: "target", 1: "target"}, "target")
    assert _model_latency(ledger, MODEL) <= 1e-2
    assert sum(len(_candidates(ledger, number)) for number in (0, 1)) < MODEL.budget.max_trials


def test_a_model_that_is_fast_enough_at_first_is_searched_no_more() -> None:
    ledger, _ = _tune(_within(MODEL, target_latency_us=50000))
    assert ledger.ended == "target"
    assert [len(_candidates(ledger, number)) for number in (0, 1)] == [1, 1]


def test_functions_that_others_tune_count_to_the_target() -> None:
    for others in (None, 1e-2):
        ledger = MemoryLedger(2)
        ledger.others = others
        request = _within(MODEL, max_trials=4 * BATCH)
        tune(request, Searcher(request), SimulatedFleet(LLVM), ledger)
        assert ledger.ended == "budget"


def test_a_search_stops_at_its_plateau() -> None:
    config = replace(CONFIG, plateau_window=16)
    request = replace(_within(BUILT_IN, max_trials=1000, until="plateau"), config=config)
    ledger, _ = _tune(request, _Timed(1.0))
    assert (ledger.stopped, ledger.ended) == ({0: "plateau"}, "plateau")
    assert 16 <= len(_candidates(ledger)) < 200
    assert ledger.certificates[0].speedup > 1


def test_a_job_that_is_resumed_at_its_plateau_searches_no_more() -> None:
    request = replace(_within(BUILT_IN, max_trials=1000, until="plateau"), config=replace(CONFIG, plateau_window=16))
    ledger, _ = _tune(request, _Level(1.0))
    assert ledger.ended == "plateau"
    fleet = _Level(1.0)
    tune(request, Searcher(request), fleet, ledger)
    assert fleet.submitted == []


def test_no_task_of_a_search_at_its_plateau_is_without_its_first_batch() -> None:
    config = replace(CONFIG, plateau_window=1, plateau_window_per_task=1)
    request = replace(_within(MODEL, target_latency_us=None, until="plateau"), config=config)
    ledger, _ = _tune(request, _Timed(1.0, baseline=1e-8))
    assert ledger.ended == "plateau"
    assert min(len(_candidates(ledger, number)) for number in (0, 1)) >= BATCH


def test_a_task_without_a_baseline_keeps_no_other_from_its_plateau() -> None:
    def fault(request: MeasureRequest) -> Failure | None:
        return CRASH if request.module_json == elementwise().module_json else None

    config = replace(CONFIG, plateau_window=16, plateau_window_per_task=1)
    tasks = [task(elementwise()), task(matmul())]
    request = replace(_within(REQUEST, max_trials=1000, until="plateau"), tasks=tasks, space=None, config=config)
    ledger, _ = _tune(request, _Timed(1.0, fault=fault))
    assert ledger.ended == "plateau"
    assert set(ledger.certificates) == {1}


class _Slow(Searcher):
    """Works on every proposal, or every opening, until what it calls meanwhile ends that."""

    def __init__(self, request: TuneRequest, clock: _Clock | None = None, *, opening: bool = False) -> None:
        super().__init__(request)
        self._clock = clock
        self._opening = opening

    def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
        if self._opening:
            self._work(meanwhile)
        return super().open(task, history, meanwhile)

    def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
        self._work(meanwhile)
        return super().propose(task, count, meanwhile)

    def _work(self, meanwhile: Meanwhile) -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            meanwhile()
            time.sleep(0.01)
            if self._clock is not None:
                self._clock.now += 1.0
        pytest.fail("the search was waited for")


class _Abandoned(SimulatedFleet):
    abandoned = False

    def abandon(self) -> None:
        super().abandon()
        self.abandoned = True


def test_cancelling_ends_the_job_at_once_and_keeps_what_was_measured() -> None:
    def cancel(ledger: _Ledger, finished: int) -> None:
        ledger.stop = finished >= 6

    ledger, fleet = _Ledger(1, cancel), _Abandoned(LLVM)
    request = _within(REQUEST, max_trials=10_000)
    tune(request, Searcher(request), fleet, ledger)
    assert fleet.abandoned
    assert 6 <= sum(trial.outcome is not None for trial in _lines(ledger)) < 10_000
    assert fleet.races == []
    assert (ledger.certificates, ledger.failures) == ({}, {})


@pytest.mark.parametrize("opening", [False, True])
def test_cancelling_does_not_wait_for_the_search(opening: bool) -> None:
    ledger, fleet = MemoryLedger(1), _Abandoned(LLVM)
    ledger.stop = True
    tune(REQUEST, _Slow(REQUEST, opening=opening), fleet, ledger)
    assert fleet.abandoned
    assert (ledger.certificates, ledger.failures) == ({}, {})


@pytest.mark.parametrize("opening", [False, True])
def test_time_does_not_wait_for_the_search(opening: bool) -> None:
    ledger, clock = MemoryLedger(1), _Clock()
    request = _within(REQUEST, max_seconds=10.0)
    tune(request, _Slow(request, clock, opening=opening), SimulatedFleet(LLVM), ledger, clock)
    assert ledger.stopped == {0: "time"}
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert clock.now <= 115


def test_cancelling_ends_a_closing_race() -> None:
    ledger = MemoryLedger(1)

    class Racing(_Abandoned):
        def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
            ledger.stop = True
            until = time.monotonic() + 20
            while time.monotonic() < until:
                meanwhile()
            return super().race(request, meanwhile)

    fleet = Racing(LLVM)
    tune(REQUEST, Searcher(REQUEST), fleet, ledger)
    assert fleet.abandoned
    assert (ledger.certificates, ledger.failures) == ({}, {})


@pytest.mark.parametrize("method", ["read", "open", "propose"])
def test_a_task_whose_search_fails_from_the_start_fails_alone(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = getattr(Searcher, method)

    def fail(self: Searcher, task: int, *arguments: object) -> object:
        if task == 1:
            raise SearchFailed("too much")
        return original(self, task, *arguments)

    monkeypatch.setattr(Searcher, method, fail)
    ledger, _ = _tune(replace(_within(BUILT_IN, max_trials=24), tasks=[task(matmul()), task(elementwise())]))
    assert ledger.failures == {1: "too much"}
    assert set(ledger.certificates) == {0}
    assert len(_candidates(ledger, 0)) == 24


def test_a_search_that_fails_later_keeps_the_best_of_what_was_measured() -> None:
    class Failing(Searcher):
        def propose(self, task: int, count: int, meanwhile: Meanwhile) -> list[MeasureCandidate]:
            if proposed:
                raise SearchFailed("too much")
            proposed.append(task)
            return super().propose(task, count, meanwhile)

    proposed: list[int] = []
    ledger = MemoryLedger(1)
    tune(REQUEST, Failing(REQUEST), SimulatedFleet(LLVM), ledger)
    assert len(_candidates(ledger)) == BATCH
    assert ledger.stopped == {0: "failed"}
    assert ledger.certificates[0].speedup > 1


@pytest.mark.parametrize("after", [1, 4, 12, 18, 21])
def test_an_interrupted_job_goes_on(after: int) -> None:
    """Killed after some trials: each is in the ledger once, and none is measured again that had ended."""

    def kill(_: _Ledger, finished: int) -> None:
        if finished == after:
            raise Interrupted

    ledger = _Ledger(1, kill)
    with pytest.raises(Interrupted):
        tune(REQUEST, Searcher(REQUEST), SimulatedFleet(LLVM), ledger)
    before = _lines(ledger)
    unfinished = [trial.id for trial in before if trial.outcome is None]

    fleet = SimulatedFleet(LLVM)
    tune(REQUEST, Searcher(REQUEST), fleet, ledger)
    now = _lines(ledger)
    assert [trial.id for trial in now][: len(before)] == [trial.id for trial in before]
    assert [(t.id, t.outcome) for t in before if t.outcome] == [
        (t.id, t.outcome) for t in now[: len(before)] if t.id not in unfinished
    ]
    keys = [request.key for request in fleet.submitted]
    assert keys[: len(unfinished)] == unfinished
    assert sorted(keys[len(unfinished) :]) == sorted(t.id for t in now[len(before) :])
    assert len(_candidates(ledger)) == REQUEST.budget.max_trials
    assert len({trial.candidate.hash for trial in now}) == len(now)
    assert all(trial.outcome is not None for trial in now)
    assert ledger.certificates[0].speedup > 2


def test_a_job_that_was_interrupted_before_its_certificates_only_certifies() -> None:
    ledger, _ = _tune()
    fleet = SimulatedFleet(LLVM)
    tune(REQUEST, Searcher(REQUEST), fleet, ledger)
    assert fleet.submitted == []
    assert len(fleet.races) == 1


def _order(fleet: SimulatedFleet) -> list[tuple[str, bool]]:
    """Whose programs were submitted, and which of them were unscheduled."""
    return [(request.module_json, request.trace_json is None) for request in fleet.submitted]


def test_each_function_has_its_first_candidate_before_any_has_a_batch_or_its_baseline() -> None:
    _, lone = _tune()
    assert [is_baseline for _, is_baseline in _order(lone)].index(True) == BATCH
    tasks = [task(elementwise()), task(matmul()), task(elementwise(24), weight=30)]
    _, several = _tune(replace(_within(REQUEST, max_trials=40), tasks=tasks, space=None))
    modules = [each.workload.module_json for each in tasks]
    first = [(modules[number], False) for number in (2, 1, 0)]
    assert sorted(_order(several)[:3]) == sorted(first)
    assert sum(is_baseline for _, is_baseline in _order(several)) == 3


def test_a_first_candidate_is_the_best_guess_of_the_rules() -> None:
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=2), tasks=[task(matmul()), task(elementwise())], space=None))
    assert [[each.origin for each in _candidates(ledger, number)] for number in (0, 1)] == [["seed"], ["seed"]]


def test_functions_that_the_budget_does_not_reach_get_their_first_choice() -> None:
    tasks = [task(elementwise()), task(matmul(), weight=30), task(elementwise(24))]
    request = replace(_within(REQUEST, max_trials=1), tasks=tasks, space=None)
    ledger, fleet = _tune(request)
    assert [[each.origin for each in _candidates(ledger, number)] for number in range(3)] == [["seed"]] * 3
    assert sorted(len(race.contenders) for race in fleet.races) == [1, 1, 1]
    assert ledger.ended == "budget"
    ledger, _ = _tune(replace(request, space=TINY))
    assert sum(len(_candidates(ledger, number)) for number in range(3)) == 1


def test_spaces_that_the_budget_does_not_reach_are_not_opened() -> None:
    class Counted(Searcher):
        def open(self, task: int, history: Sequence[Trial], meanwhile: Meanwhile) -> bool:
            opened.append(task)
            return super().open(task, history, meanwhile)

    opened: list[int] = []
    tasks = [task(_named(elementwise(), f"m{i}"), weight=i + 1) for i in range(6)]
    request = replace(_within(REQUEST, max_trials=2), tasks=tasks)
    ledger = MemoryLedger(6)
    tune(request, Counted(request), SimulatedFleet(LLVM), ledger)
    assert opened == [5, 4]
    assert set(ledger.certificates) == set(range(6))


def test_a_failing_baseline_fails_the_task_and_costs_no_more_trials() -> None:
    def fault(request: MeasureRequest) -> Failure | None:
        return CRASH if request.module_json == matmul().module_json else None

    request = replace(_within(REQUEST, max_trials=40), tasks=[task(matmul()), task(elementwise())], space=None)
    ledger, _ = _tune(request, SimulatedFleet(LLVM, fault=fault))
    assert set(ledger.failures) == {0}
    assert "the unscheduled function failed (CRASH): it crashed" in ledger.failures[0]
    assert set(ledger.certificates) == {1}
    assert len(_candidates(ledger, 0)) <= 1 + BATCH


def test_a_baseline_that_fails_in_the_race_fails_the_task() -> None:
    ledger = MemoryLedger(1)
    fleet = SimulatedFleet(LLVM, fault=lambda request: CRASH if request.key == "baseline" else None)
    tune(REQUEST, Searcher(REQUEST), fleet, ledger)
    assert ledger.failures == {0: "nothing could be proven: it crashed"}
    assert ledger.certificates == {}


def _failing(kind: FailureKind, share: int) -> Callable[[MeasureRequest], Failure | None]:
    """Every ``share``-th candidate fails, by its trace."""

    def fault(request: MeasureRequest) -> Failure | None:
        unlucky = request.trace_json is not None and sum(request.trace_json.encode()) % share == 0
        attempt = Span(Lane.BUILD, "builder", 1.0, 2.0)
        return Failure(Stage.BUILD, kind, "no luck", spans=(attempt,)) if unlucky else None

    return fault


@pytest.mark.parametrize("kind", list(FailureKind))
def test_failing_candidates_count_and_the_job_goes_on(kind: FailureKind) -> None:
    ledger, _ = _tune(fleet=SimulatedFleet(LLVM, fault=_failing(kind, 3)))
    failures = [trial.outcome for trial in _lines(ledger) if isinstance(trial.outcome, Failure)]
    assert {failure.kind for failure in failures} == {kind}
    assert len(_candidates(ledger)) == REQUEST.budget.max_trials
    assert ledger.certificates[0].speedup > 1


def test_a_candidate_whose_process_is_killed_is_tried_once_more_alone() -> None:
    ledger, fleet = _tune(fleet=SimulatedFleet(LLVM, fault=_failing(FailureKind.KILLED, 3)))
    killed = [trial.id for trial in _lines(ledger) if isinstance(trial.outcome, Failure)]
    attempts = [(request.key, request.alone) for request in fleet.submitted]
    assert killed
    assert sorted(attempt for attempt in attempts if attempt[0] in killed) == sorted(
        (key, alone) for key in killed for alone in (False, True)
    )
    assert len(attempts) == REQUEST.budget.max_trials + 1 + len(killed)


def test_a_candidate_whose_process_is_killed_once_is_measured() -> None:
    once = _failing(FailureKind.KILLED, 3)
    ledger, _ = _tune(fleet=SimulatedFleet(LLVM, fault=lambda request: None if request.alone else once(request)))
    assert all(isinstance(trial.outcome, Measured) for trial in _lines(ledger))


def test_a_kill_counts_in_the_run_that_takes_the_job_over() -> None:
    """The first run dies after it noted the first kill: the next run tries once more, not twice."""

    class Ledger(MemoryLedger):
        def note_kill(self, trial: Trial, attempt: Span) -> Trial:
            super().note_kill(trial, attempt)
            raise Interrupted

    ledger = Ledger(1)
    with pytest.raises(Interrupted):
        tune(REQUEST, Searcher(REQUEST), SimulatedFleet(LLVM, fault=_failing(FailureKind.KILLED, 1)), ledger)
    [(noted, trial)] = [(n, trial) for n, trial in enumerate(_lines(ledger)) if trial.killed]
    fleet = SimulatedFleet(
        LLVM, fault=lambda request: _failing(FailureKind.KILLED, 1)(request) if request.alone else None
    )
    tune(REQUEST, Searcher(REQUEST), fleet, ledger)
    assert [request.alone for request in fleet.submitted if request.key == trial.id] == [True]
    outcome = _lines(ledger)[noted].outcome
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.KILLED


def test_attempts_that_were_killed_count_to_the_time_on_devices() -> None:
    def fault(request: MeasureRequest) -> Failure | None:
        attempt = Span(Lane.MEASURE, "simulated", 0.0, 60.0)
        return None if request.trace_json is None else Failure(Stage.RUN, FailureKind.KILLED, "", spans=(attempt,))

    request = _within(REQUEST, max_device_seconds=200.0)
    ledger, fleet = _tune(request, SimulatedFleet(LLVM, fault=fault, slots=1, per_collect=1))
    assert len(_candidates(ledger)) < REQUEST.budget.max_trials
    assert sum(each.trace_json is not None for each in fleet.submitted) >= 4


def test_where_every_candidate_fails_the_baseline_is_certified() -> None:
    ledger, _ = _tune(fleet=SimulatedFleet(LLVM, fault=_failing(FailureKind.COMPILE, 1)))
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert len(_candidates(ledger)) == REQUEST.budget.max_trials


def test_a_baseline_that_nothing_beats_is_the_best() -> None:
    ledger, _ = _tune(fleet=SimulatedFleet(LLVM, baseline=1e-8))
    assert ledger.certificates[0].candidate_hash == BASELINE.hash
    assert ledger.certificates[0].speedup == 1.0


def test_a_lost_lease_ends_the_run_at_once_and_nothing_more_is_written() -> None:
    def take_over(_: _Ledger, finished: int) -> None:
        if finished == 5:
            raise LeaseLost("another controller owns the job")

    ledger = _Ledger(1, take_over)
    with pytest.raises(LeaseLost, match="another controller"):
        tune(REQUEST, Searcher(REQUEST), SimulatedFleet(LLVM), ledger)
    assert sum(trial.outcome is not None for trial in _lines(ledger)) == 5
    assert ledger.certificates == {}
    assert ledger.failures == {}


def test_a_candidate_is_dropped_when_it_is_much_slower_than_the_best_so_far() -> None:
    _, fleet = _tune()
    cutoffs = [request.cutoff for request in fleet.submitted]
    assert cutoffs[0] is None
    known = [cutoff for cutoff in cutoffs if cutoff is not None]
    assert len(known) >= 5
    assert known == sorted(known, reverse=True)
    best = min(fleet.latency(r.module_json, r.trace_json) for r in fleet.submitted)
    assert known[-1] >= (CONFIG.cutoff or 0.0) * best * 0.98


def test_the_fleet_is_kept_busy_but_not_flooded() -> None:
    class Watched(SimulatedFleet):
        most = 0

        def submit(self, request: MeasureRequest) -> None:
            super().submit(request)
            self.most = max(self.most, len(self._waiting))

    fleet = Watched(LLVM, slots=4)
    _tune(fleet=fleet)
    assert fleet.slots <= fleet.most <= fleet.slots + BATCH


def test_a_job_of_many_tasks_tries_each() -> None:
    tasks: Sequence[TaskSpec] = [task(_named(elementwise(), f"m{i}")) for i in range(4)]
    ledger, _ = _tune(replace(_within(REQUEST, max_trials=4 * BATCH), tasks=tasks))
    assert all(len(_candidates(ledger, number)) >= 1 for number in range(4))
    assert set(ledger.certificates) == {0, 1, 2, 3}


def test_a_slow_baseline_of_a_model_is_called_once() -> None:
    _, several = _tune(replace(REQUEST, tasks=[task(elementwise()), task(_named(elementwise(), "again"))]))
    assert {request.cutoff for request in several.submitted if request.trace_json is None} == {0.0}
    _, lone = _tune()
    assert {request.cutoff for request in lone.submitted if request.trace_json is None} == {None}


def test_without_a_cutoff_every_candidate_is_sampled_in_full() -> None:
    _, fleet = _tune(replace(REQUEST, config=replace(CONFIG, cutoff=None)))
    assert {request.cutoff for request in fleet.submitted} == {None}


def test_the_config_sets_the_size_of_batches_and_of_the_closing_race() -> None:
    ledger, fleet = _tune(replace(_within(REQUEST, max_trials=10), config=replace(CONFIG, batch=5, contenders=3)))
    assert len(_candidates(ledger)) == 10
    [race] = fleet.races
    assert len(race.contenders) == 3
