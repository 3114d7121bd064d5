"""Who wins: never a wrong program, never a slower one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

import pytest

from loopwright.codegen.kinds import FailureKind, Origin, SandboxLevel, Stage, Values
from tests.support.tuner_programs import elementwise
from tuner.certify import Certification, certify_all, runner_up, winner
from tuner.closing import RacePlan
from tuner.errors import RaceFailed
from tuner.ports import Meanwhile, Raced, RaceRequest, RaceResult
from tuner.races.grade import graded
from tuner.testing.simulated_fleet import SimulatedFleet
from tuner.types import (
    BASELINE,
    Certificate,
    DeviceState,
    Failure,
    MeasureCandidate,
    Measured,
    Operation,
    Outcome,
    Trial,
    Workload,
    speedup,
)

CONTENDERS = 4
PLAN = RacePlan(CONTENDERS, 15.0, repeats=True)
OUTPUTS = (False, True)
BASELINE_SECS = (1.0, 1.2, 1.1)
WRONG = Failure(Stage.CERTIFY, FailureKind.WRONG_RESULT, "argument 1 differs")


def _entry(*run_secs: float) -> Raced:
    return Raced(run_secs, 1e-6, 1e-7)


STATE = DeviceState(sm_mhz=1980, throttled=())


class _ScriptedRaces(SimulatedFleet):
    """Races end as ``entries`` say, by trace."""

    def __init__(self, entries: dict[str, Raced | Failure]) -> None:
        super().__init__()
        self._entries = entries

    def race(self, request: RaceRequest, meanwhile: Meanwhile) -> RaceResult:
        self.races.append(request)
        entries = {key: self._entries[t] for key, t in request.contenders.items()}
        digests = {key: f"code of {key}" for key in (BASELINE.hash, *entries)}
        return RaceResult(
            _entry(*BASELINE_SECS),
            entries,
            sandbox=SandboxLevel.LANDLOCK,
            device_state=STATE,
            artifacts=digests,
            seed=7,
        )


def _trial(trace: str, latency: float | None) -> Trial:
    outcome: Outcome = (
        Failure(Stage.RUN, FailureKind.CRASH, "it crashed") if latency is None else Measured((latency,), "worker")
    )
    return Trial(trace, MeasureCandidate(trace, Origin.RANDOM), outcome)


BASELINE_TRIAL = Trial("baseline", BASELINE, Measured((1.0,), "worker"))


def _certify(fleet: SimulatedFleet, trials: Sequence[Trial], workload: Workload | None = None) -> Certificate:
    certification = Certification(workload or elementwise(), OUTPUTS, [BASELINE_TRIAL, *trials], plan=PLAN)
    [found] = certify_all(fleet, [certification])
    if isinstance(found, RaceFailed):
        raise found
    return found


def _hash(trace: str) -> str:
    return MeasureCandidate(trace, Origin.RANDOM).hash


@pytest.mark.parametrize(("latency", "winner"), [(0.5, "a"), (2.0, None)])
def test_a_certificate_names_the_code_that_won_and_the_seed_of_its_inputs(latency: float, winner: str | None) -> None:
    found = _certify(_ScriptedRaces({"a": _entry(latency, latency, latency)}), [_trial("a", 0.1)])
    expected = BASELINE.hash if winner is None else _hash(winner)
    assert (found.artifact_sha256, found.seed) == (f"code of {expected}", 7)


def test_the_fastest_of_the_race_wins_not_of_the_search() -> None:
    fleet = _ScriptedRaces({"a": _entry(0.5, 0.6, 0.55), "b": _entry(0.4, 0.5, 0.45)})
    found = _certify(fleet, [_trial("a", 0.1), _trial("b", 0.2)])
    assert found.candidate_hash == _hash("b")
    assert (found.best_run_secs, found.baseline_run_secs) == ((0.4, 0.5, 0.45), BASELINE_SECS)
    assert found.speedup == pytest.approx(1.1 / 0.45)
    assert (found.contenders, found.rejected) == (3, {})
    assert found.max_abs_error == 1e-6
    assert (found.sandbox, found.device_state) == (SandboxLevel.LANDLOCK, STATE)


def test_a_wrong_result_never_wins() -> None:
    fleet = _ScriptedRaces({"a": WRONG, "b": _entry(0.5, 0.5, 0.5)})
    found = _certify(fleet, [_trial("a", 0.1), _trial("b", 0.2)])
    assert found.candidate_hash == _hash("b")
    assert found.rejected == {_hash("a"): WRONG}


def test_the_baseline_wins_where_nothing_beats_it() -> None:
    fleet = _ScriptedRaces({"a": _entry(1.3, 1.5, 1.4)})
    found = _certify(fleet, [_trial("a", 0.1)])
    assert found.candidate_hash == BASELINE.hash
    assert found.best_run_secs == found.baseline_run_secs == BASELINE_SECS
    assert found.speedup == 1.0


def test_a_tie_is_the_baselines() -> None:
    assert _certify(_ScriptedRaces({"a": _entry(*BASELINE_SECS)}), [_trial("a", 0.1)]).candidate_hash == BASELINE.hash


def test_rounds_are_compared_in_pairs() -> None:
    """The machine slowed down: the contender's median is above the baseline's first sample, yet it won each round."""
    result = RaceResult(_entry(1.0, 2.0, 3.0), {"a": _entry(0.9, 1.9, 2.9)})
    assert winner(result) == "a"
    unlucky = RaceResult(_entry(1.0, 2.0, 3.0), {"a": _entry(1.1, 2.1, 0.1)})
    assert winner(unlucky) is None


def test_a_certificate_says_the_speedup_by_which_its_race_decided() -> None:
    """The machine slowed down after the rounds of a far slower baseline: the medians would say 0.5x."""
    baseline, best = (1.0, 1.1, 0.9), (0.5, 0.6, 0.5, *[2.0] * 7)
    assert statistics.median(baseline) / statistics.median(best) == 0.5
    assert winner(RaceResult(_entry(*baseline), {"a": _entry(*best)})) == "a"
    interval, _ = graded(baseline, best)
    assert interval.value == speedup(baseline, best) == pytest.approx(1.1 / 0.6)


@pytest.mark.parametrize("rounds", [4, 5])
def test_the_speedup_the_other_way_round_is_the_inverse(rounds: int) -> None:
    one, other = (1.0, 1.0, 1.0, 1.0, 1.0)[:rounds], (1.3, 0.8, 1.1, 0.7, 2.0)[:rounds]
    assert speedup(one, other) == pytest.approx(1 / speedup(other, one))


def test_one_that_was_dropped_does_not_win() -> None:
    contenders: dict[str, Raced | Failure] = {"lucky": _entry(0.1, 0.1), "steady": _entry(0.5, 0.5, 0.5)}
    assert winner(RaceResult(_entry(1.0, 1.0, 1.0), contenders)) == "steady"
    assert winner(RaceResult(_entry(1.0, 1.0, 1.0), {"lucky": _entry(0.1, 0.1)})) is None


def test_a_baseline_need_not_be_in_all_rounds() -> None:
    slow = _entry(5.0, 5.0, 5.0)
    contenders: dict[str, Raced | Failure] = {"dropped": _entry(0.1, 0.1, 0.1), "steady": _entry(0.5, 0.5, 0.5, 0.5)}
    assert winner(RaceResult(slow, contenders)) == "steady"
    assert winner(RaceResult(slow, {"worse": _entry(6.0, 6.0, 6.0, 0.1)})) is None


def test_the_best_few_are_raced_fastest_first() -> None:
    traces = [f"{number:02}" for number in range(2 * CONTENDERS)]
    fleet = _ScriptedRaces({trace: _entry(0.5, 0.5, 0.5) for trace in traces})
    _certify(fleet, [_trial(trace, (1 + int(trace)) / 100) for trace in reversed(traces)])
    (race,) = fleet.races
    assert list(race.contenders.values()) == traces[:CONTENDERS]
    assert race.outputs == OUTPUTS


def test_a_program_that_was_disturbed_contends_by_its_least_sample() -> None:
    steady = [_trial(f"steady{i}", 0.2) for i in range(CONTENDERS)]
    disturbed = MeasureCandidate("disturbed", Origin.RANDOM)
    fleet = _ScriptedRaces(dict.fromkeys([t.id for t in steady] + ["disturbed"], _entry(0.5, 0.5, 0.5)))
    _certify(fleet, [*steady, Trial("disturbed", disturbed, Measured((0.9, 0.1, 0.8), "worker"))])
    assert next(iter(fleet.races[0].contenders.values())) == "disturbed"


def test_where_all_are_rejected_the_next_are_raced() -> None:
    first = [f"first{i}" for i in range(CONTENDERS)]
    next_ones = ["e", "f", "g"]
    fleet = _ScriptedRaces(dict.fromkeys([*first, "e", "g"], WRONG) | {"f": _entry(0.9, 0.9, 0.9)})
    found = _certify(fleet, [_trial(trace, i / 100) for i, trace in enumerate([*first, *next_ones], start=1)])
    assert [list(race.contenders.values()) for race in fleet.races] == [first, next_ones]
    assert found.candidate_hash == _hash("f")
    assert found.rejected == dict.fromkeys(map(_hash, (*first, "e", "g")), WRONG)


def test_where_none_is_left_the_baseline_is_raced_alone_and_wins() -> None:
    wrong = [f"wrong{i}" for i in range(CONTENDERS + 1)]
    fleet = _ScriptedRaces(dict.fromkeys(wrong, WRONG))
    found = _certify(fleet, [_trial(trace, i / 100) for i, trace in enumerate(wrong, start=1)])
    assert [len(race.contenders) for race in fleet.races] == [CONTENDERS, 1, 0]
    assert found.candidate_hash == BASELINE.hash
    assert len(found.rejected) == len(wrong)


def test_failed_and_unfinished_trials_do_not_contend() -> None:
    fleet = _ScriptedRaces({"b": _entry(0.5, 0.5, 0.5)})
    unfinished = Trial("c", MeasureCandidate("c", Origin.RANDOM), None)
    assert _certify(fleet, [_trial("a", None), _trial("b", 0.2), unfinished]).candidate_hash == _hash("b")
    assert list(fleet.races[0].contenders.values()) == ["b"]


def test_without_candidates_the_baseline_is_certified() -> None:
    fleet = _ScriptedRaces({})
    assert _certify(fleet, []).candidate_hash == BASELINE.hash
    assert len(fleet.races) == 1


def test_the_tolerance_is_that_of_the_outputs() -> None:
    assert _certify(_ScriptedRaces({}), []).rtol == 1e-4


@pytest.mark.parametrize(("values", "says"), [(Values.NUMBER, True), (Values.ANY, False), (Values.INDEX, False)])
def test_a_certificate_says_if_no_input_was_nan(values: Values, says: bool) -> None:
    given = elementwise()
    workload = replace(given, args=tuple(replace(info, values=values) for info in given.args))
    found = _certify(_ScriptedRaces({}), [], workload)
    assert ("no NaN, of which" in found.inputs) is says


def test_a_workload_that_permits_tf32_is_raced_and_certified_with_its_tolerance() -> None:
    fleet = _ScriptedRaces({})
    workload = replace(elementwise(), operation=Operation("matmul", "tf32"))
    found = _certify(fleet, [], workload)
    assert [race.math for race in fleet.races] == ["tf32"]
    assert found.rtol == found.atol == 2.0**-10
    assert "may be rounded to TF32" in found.inputs
    assert "TF32" not in _certify(_ScriptedRaces({}), []).inputs


def test_a_baseline_that_cannot_be_raced_is_no_certificate() -> None:
    fleet = SimulatedFleet(fault=lambda _: Failure(Stage.RUN, FailureKind.CRASH, "it crashed"))
    with pytest.raises(RaceFailed, match="it crashed"):
        _certify(fleet, [])


def test_who_is_faster_than_the_machine_is_rejected() -> None:
    """By its claim, the elementwise function of 64 elements takes half a nanosecond."""
    fleet = _ScriptedRaces({"a": _entry(5e-10, 5e-10, 5e-10), "b": _entry(0.9, 0.9, 0.9)})
    found = _certify(fleet, [_trial("a", 5e-10), _trial("b", 0.9)])
    assert found.candidate_hash == _hash("b")
    assert found.rejected[_hash("a")].kind is FailureKind.WRONG_RESULT


def _race(baseline: Raced, **contenders: Raced) -> RaceResult:
    return RaceResult(baseline, dict(contenders))


ROUNDS = tuple(0.1 + 0.001 * (number % 5) for number in range(15))
"""In seconds; they differ by up to 4 %."""


def _times(factor: float, shift: int = 0) -> Raced:
    """A program that takes ``factor`` times as long, in rounds that were disturbed otherwise."""
    return _entry(*(factor * ROUNDS[(number + shift) % 15] for number in range(15)))


SLOW = _times(10.0)


def test_of_contenders_that_a_race_cannot_tell_apart_the_lowest_hash_wins_whichever_was_faster() -> None:
    for first, second in ((1.0, 1.001), (1.001, 1.0)):
        assert winner(_race(SLOW, a=_times(first), b=_times(second, 2), c=_times(1.0005, 3))) == "a"
        assert winner(_race(SLOW, c=_times(first), b=_times(second, 2))) == "b"


def test_a_tie_costs_no_more_than_a_hundredth() -> None:
    # Every round was slower by 0.5 %: no tie, however little that is.
    assert winner(_race(SLOW, a=_times(1.005), b=_times(1.0))) == "b"
    # Nobody knows whether it is slower, but its median is by 2 %.
    noisy = _entry(*(1.02 * each * (0.7 if number % 2 else 1.5) for number, each in enumerate(ROUNDS)))
    middle = statistics.median(noisy.run_secs)
    scaled = _entry(*(each * 1.02 * statistics.median(ROUNDS) / middle for each in noisy.run_secs))
    assert winner(_race(SLOW, a=scaled, b=_times(1.0))) == "b"


def test_who_ties_with_the_fastest_has_to_beat_the_baseline_too() -> None:
    baseline = _times(1.004)
    assert winner(_race(baseline, a=_times(1.004), b=_times(1.0))) == "b"


def test_a_certificate_says_by_how_much_the_second_best_lost() -> None:
    second = runner_up(_race(SLOW, a=_times(1.0), b=_times(1.5), c=_times(2.0)))
    assert second is not None
    assert second.candidate_hash == "b"
    assert second.slowdown == pytest.approx(1.5)
    assert second.low <= second.slowdown <= second.high
    # The baseline is one, too, and so is a contender that lost against it.
    assert runner_up(_race(SLOW, a=_times(1.0))).candidate_hash == BASELINE.hash
    lost = runner_up(_race(_times(1.0), a=_times(1.25), b=_times(2.0)))
    assert (lost.candidate_hash, lost.slowdown) == ("a", pytest.approx(1.25))
    # A tie may have had the lower median, and its interval contains 1.
    tied = runner_up(_race(SLOW, a=_times(1.001), b=_times(1.0, 2)))
    assert (tied.candidate_hash, tied.low < 1 < tied.high) == ("b", True)
    assert runner_up(_race(SLOW)) is None
    # What did not run in all rounds is no second best.
    assert runner_up(_race(_entry(1.0), a=_entry(0.5, 0.5), b=_entry(0.1))) is None
    found = _certify(
        _ScriptedRaces({"a": _entry(0.5, 0.6, 0.55), "b": _entry(1.0, 1.2, 1.1)}), [_trial("a", 0.1), _trial("b", 0.2)]
    )
    assert found.runner_up is not None
    assert found.runner_up.slowdown == pytest.approx(2.0)
