"""Whether a model became slower: the test, and what is raced for it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from loopwright.codegen.kinds import Change, FailureKind, GateVerdict, Stage
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult, nothing_meanwhile
from tuner.races.gate import GateProgram, GateResult, compare
from tuner.races.sequential import SequentialConfig, Verdict, decide, estimate
from tuner.types import Failure, Workload

CONFIG = SequentialConfig()


def rounds_until_decided(draw: Callable[[int], float], bound: float = 1.03) -> tuple[Verdict, int]:
    ratios: list[float] = []
    for number in range(CONFIG.looks[-1]):
        ratios.append(draw(number))
        if len(ratios) in CONFIG.looks and (verdict := decide(ratios, bound, CONFIG)) is not Verdict.UNCLEAR:
            return verdict, len(ratios)
    return Verdict.UNCLEAR, len(ratios)


@pytest.mark.parametrize("spread", [0.003, 0.02, 0.1])
@pytest.mark.parametrize("outliers", [0.0, 0.05])
def test_equal_programs_are_hardly_ever_found_slower(spread: float, outliers: float) -> None:
    """Also where one round in twenty is disturbed by up to a factor of five, in either program."""
    rng = np.random.default_rng(0)

    def draw(_: int) -> float:
        disturbed = rng.random() < outliers
        return float(np.exp(rng.normal(0, spread) + (rng.uniform(-1.6, 1.6) if disturbed else 0)))

    verdicts = [rounds_until_decided(draw)[0] for _ in range(2000)]
    assert verdicts.count(Verdict.ABOVE) <= 10


def test_disturbed_rounds_leave_few_answers_unclear() -> None:
    rng = np.random.default_rng(4)

    def draw(_: int) -> float:
        return float(np.exp(rng.normal(0, 0.015) + (rng.normal(0, 0.2) if rng.random() < 0.2 else 0)))

    verdicts = [rounds_until_decided(draw)[0] for _ in range(500)]
    assert verdicts.count(Verdict.BELOW) >= 475


def test_at_the_bound_itself_false_alarms_stay_below_their_share() -> None:
    rng = np.random.default_rng(1)
    verdicts = [rounds_until_decided(lambda _: 1.03 * float(np.exp(rng.normal(0, 0.02))))[0] for _ in range(4000)]
    assert verdicts.count(Verdict.ABOVE) / 4000 <= CONFIG.above_error


def test_a_slowdown_is_found_and_more_rounds_are_taken_only_where_it_is_unclear() -> None:
    rng = np.random.default_rng(2)
    large = [rounds_until_decided(lambda _: 1.3 * float(np.exp(rng.normal(0, 0.01)))) for _ in range(200)]
    small = [rounds_until_decided(lambda _: 1.05 * float(np.exp(rng.normal(0, 0.01)))) for _ in range(200)]
    none = [rounds_until_decided(lambda _: float(np.exp(rng.normal(0, 0.01)))) for _ in range(200)]
    assert all(verdict is Verdict.ABOVE for verdict, _ in large)
    assert sum(verdict is Verdict.ABOVE for verdict, _ in small) >= 190
    assert sum(verdict is Verdict.BELOW for verdict, _ in none) >= 190
    assert np.mean([rounds for _, rounds in large]) < np.mean([rounds for _, rounds in small])


def test_an_estimate_has_an_interval() -> None:
    found = estimate([1.1, 1.2, 1.15])
    assert found.low < found.value < found.high
    assert found.value == pytest.approx((1.1 * 1.2 * 1.15) ** (1 / 3))
    assert estimate([1.1]).low == 0
    with pytest.raises(ValueError, match="no ratio"):
        estimate([])


SECONDS = {None: 1e-3, "fast": 1e-4, "slow": 2e-4, "same": 1e-4, "impossible": 1e-10}


class Fleet:
    """Races programs whose times are `SECONDS`, with noise; traces "wrong" and "broken" fail."""

    def __init__(self, noise: float = 0.01) -> None:
        self.races: list[RaceRequest] = []
        self._rng, self._noise = np.random.default_rng(3), noise

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self.races.append(request)
        if request.module_json == "broken":
            raise RaceFailed("the unscheduled program crashed")
        baseline = self._raced(None)
        return RaceResult(
            baseline if request.yardsticks else replace(baseline, run_secs=()),
            {key: self._entry(json.loads(trace)) for key, trace in request.contenders.items()},
        )

    def _entry(self, trace: str) -> Raced | Failure:
        if trace == "wrong":
            return Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs")
        return self._raced(trace)

    def _raced(self, trace: str | None) -> Raced:
        moment = float(np.exp(self._rng.normal(0, self._noise)))
        return Raced(tuple(SECONDS[trace] * moment for _ in range(5)), 0.0, 0.0)


def program(
    name: str, trace: str | None, workload: str | None = None, weight: int = 1, secs: float = 1e-4
) -> GateProgram:
    of = Workload(workload or name, "family", name, workload or name, "", ())
    return GateProgram(name, weight, of, (False, True), None if trace is None else json.dumps(trace), secs)


def judged(reference: list[GateProgram], candidate: list[GateProgram], fleet: Fleet | None = None) -> GateResult:
    return compare(reference, candidate, 1.03, fleet or Fleet(), meanwhile=nothing_meanwhile)  # type: ignore[arg-type]


def test_the_same_programs_are_not_measured() -> None:
    fleet = Fleet()
    found = judged([program("f", "fast", secs=1e-4)], [program("f", "fast", secs=9e-4)], fleet)
    assert (found.verdict, found.rounds, fleet.races) == (GateVerdict.PASSED, 0, [])
    assert found.slowdown.value == 1
    assert [each.change for each in found.functions] == [Change.SAME]


def test_a_slower_schedule_of_one_function_is_weighed_by_its_calls() -> None:
    reference = [program("f", "fast", weight=1), program("g", "fast", weight=9)]
    candidate = [program("f", "slow", weight=1), program("g", "fast", weight=9)]
    fleet = Fleet()
    found = judged(reference, candidate, fleet)
    assert found.verdict is GateVerdict.REGRESSION
    assert found.slowdown.value == pytest.approx(1.1, abs=0.02)
    assert {request.module_json for request in fleet.races} == {"f"}
    f, g = found.functions
    assert (f.change, g.change) == (Change.CHANGED, Change.SAME)
    assert f.ratio is not None
    assert f.ratio.value == pytest.approx(2, rel=0.05)


def test_faster_and_equally_fast_schedules_pass() -> None:
    assert judged([program("f", "slow")], [program("f", "fast")]).verdict is GateVerdict.PASSED
    assert judged([program("f", "fast")], [program("f", "same")]).verdict is GateVerdict.PASSED
    noisy = judged([program("f", "fast")], [program("f", "same")], Fleet(noise=0.5))
    assert (noisy.verdict, noisy.rounds) == (GateVerdict.UNCLEAR, CONFIG.looks[-1])


def test_a_function_that_was_written_anew_is_compared_by_its_name() -> None:
    found = judged([program("f", "fast", "w-1")], [program("f", None, "w-2")])
    assert found.verdict is GateVerdict.REGRESSION
    assert [(each.name, each.change) for each in found.functions] == [("f", Change.CHANGED)]


def test_added_and_removed_functions_count_in_the_sum() -> None:
    found = judged([program("f", "fast"), program("old", "slow")], [program("f", "fast"), program("new", None)])
    assert found.verdict is GateVerdict.REGRESSION
    assert {each.name: each.change for each in found.functions} == {
        "f": Change.SAME,
        "new": Change.ADDED,
        "old": Change.REMOVED,
    }
    assert "schedule" in (found.functions[1].message or "")


@pytest.mark.parametrize("bad", [program("f", "wrong"), program("g", "fast", "broken"), program("f", "impossible")])
def test_a_candidate_that_fails_is_a_regression(bad: GateProgram) -> None:
    found = judged([program("f", "fast")], [bad])
    assert found.verdict is GateVerdict.REGRESSION
    [failed] = [each for each in found.functions if each.change is Change.FAILED]
    assert failed.message is not None
    assert failed.message.startswith(("argument 2 differs", "the unscheduled program crashed", "its measurement says"))


def test_a_reference_that_fails_counts_as_it_was_certified() -> None:
    found = judged([program("f", "wrong", secs=1e-4)], [program("f", "fast")])
    assert found.verdict is GateVerdict.PASSED
    assert "argument 2 differs" in (found.functions[0].message or "")
