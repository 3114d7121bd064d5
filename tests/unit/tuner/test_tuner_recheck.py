"""Whether a certified best still holds: what is raced, and what is decided."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from loopwright.codegen.kinds import FailureKind, RecheckVerdict, Stage
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult, nothing_meanwhile
from tuner.races.recheck import Certified, RecheckResult, recheck
from tuner.races.sequential import DEFAULT
from tuner.types import Failure, Operation, Workload

CERTIFIED = Certified(Workload("w", "family", "f", "module", "", ()), (False, True), "[]", best=1e-4, baseline=1e-3)


class Fleet:
    """Races at the given times, in seconds, with noise, on a machine whose speed differs from round to round."""

    def __init__(
        self, best: float, baseline: float = 1e-3, noise: float = 0.02, failure: Failure | None = None
    ) -> None:
        self.races: list[RaceRequest] = []
        self._best, self._baseline, self._noise, self._failure = best, baseline, noise, failure
        self._rng = np.random.default_rng(0)

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self.races.append(request)
        [key] = request.contenders
        return RaceResult(
            self._raced(self._baseline), {key: self._failure or self._raced(self._best)}, system="Linux 6"
        )

    def _raced(self, seconds: float) -> Raced:
        return Raced(tuple(seconds * float(np.exp(self._rng.normal(0, self._noise))) for _ in range(5)), 0.0, 0.0)


def checked(fleet: Fleet) -> RecheckResult:
    return recheck(CERTIFIED, fleet, meanwhile=nothing_meanwhile)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("best", "baseline", "verdict"),
    [
        (1e-4, 1e-3, RecheckVerdict.HOLDS),
        (0.8e-4, 1e-3, RecheckVerdict.HOLDS),
        (1.5e-4, 1e-3, RecheckVerdict.REGRESSION),
        # The whole machine has become slower, or only all else faster.
        (3e-4, 3e-3, RecheckVerdict.HOLDS),
        (1e-4, 0.5e-3, RecheckVerdict.HOLDS),
        (3e-4, 2e-3, RecheckVerdict.REGRESSION),
    ],
)
def test_a_slowdown_counts_as_far_as_the_machine_does_not_explain_it(
    best: float, baseline: float, verdict: RecheckVerdict
) -> None:
    found = checked(Fleet(best, baseline))
    assert found.verdict is verdict
    assert found.best == pytest.approx(best, rel=0.1)
    assert found.baseline == pytest.approx(baseline, rel=0.1)
    assert found.slowdown is not None
    assert (found.slowdown.low > 1.1) is (verdict is RecheckVerdict.REGRESSION)
    assert found.system == "Linux 6"


def test_rounds_end_where_it_is_clear() -> None:
    fleet = Fleet(1e-4)
    found = checked(fleet)
    assert len(fleet.races) == found.rounds == DEFAULT.looks[0]
    noisy = Fleet(1.1e-4, noise=0.8)
    assert checked(noisy).verdict is RecheckVerdict.UNCLEAR
    assert len(noisy.races) == DEFAULT.looks[-1]


def test_a_wrong_result_ends_the_race() -> None:
    fleet = Fleet(1e-4, failure=Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 2 differs"))
    found = checked(fleet)
    assert (found.verdict, found.message, len(fleet.races)) == (RecheckVerdict.FAILED, "argument 2 differs", 1)
    assert (found.verdict.holds, found.best) == (False, None)


def test_without_a_program_to_compare_with_nothing_is_said_of_the_best() -> None:
    class Broken(Fleet):
        def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
            raise RaceFailed("the unscheduled program crashed")

    found = checked(Broken(1e-4))
    assert found.verdict is RecheckVerdict.UNCLEAR
    assert found.verdict.holds is None
    assert found.message.endswith("the unscheduled program crashed")


def test_a_best_that_is_faster_than_the_machine_does_not_hold() -> None:
    fleet = Fleet(1e-10)
    found = checked(fleet)
    assert (found.verdict, found.verdict.holds, len(fleet.races)) == (RecheckVerdict.FAILED, False, 1)
    assert found.message is not None
    assert "no program of this function takes less" in found.message


def test_a_faster_machine_allows_less_time() -> None:
    product = replace(
        CERTIFIED, outputs=(), workload=replace(CERTIFIED.workload, operation=Operation("x", "float32", 2e9))
    )
    for peak, verdict in ((1e12, RecheckVerdict.FAILED), (1e13, RecheckVerdict.HOLDS)):
        found = recheck(product, Fleet(1e-4), meanwhile=nothing_meanwhile, peak_flops=peak)  # type: ignore[arg-type]
        assert found.verdict is verdict


def test_an_unscheduled_program_that_is_faster_than_the_machine_is_nothing_to_compare_with() -> None:
    found = checked(Fleet(1e-4, baseline=1e-10))
    assert (found.verdict, found.verdict.holds) == (RecheckVerdict.UNCLEAR, None)


def test_equal_programs_are_hardly_ever_found_slower() -> None:
    verdicts = [checked(Fleet(1e-4, noise=noise)).verdict for noise in (0.01, 0.1, 0.3, 0.5)]
    assert RecheckVerdict.REGRESSION not in verdicts
