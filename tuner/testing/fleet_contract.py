"""The contract of `tuner.ports.Fleet`. Subclass it in a test file and give the fixture `fleet`."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Sequence

import pytest
from tvm import te

from loopwright.codegen.kinds import FailureKind, Origin, Stage
from loopwright.codegen.program.schedule import new_schedule
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tuner.certify import Certification, certify_all
from tuner.closing import RacePlan
from tuner.errors import RaceFailed
from tuner.ports import Fleet, MeasureRequest, Raced, RaceRequest, RaceResult, nothing_meanwhile
from tuner.space.builtin import builtin_space
from tuner.types import BASELINE, Failure, MeasureCandidate, Measured, Outcome, Trial, Workload
from tuner.workload import make_workload

_PATIENCE = 120.0
"""Seconds after which a fleet is taken to have lost a request."""
_TARGET = '{"kind": "llvm", "num-cores": 2}'
_UNKNOWN_BLOCK = '[[["GetSBlock",[],["no such block","main"],["b0"]]],[]]'


@functools.cache
def workload() -> Workload:
    """C = (A + 1) * 2 in two blocks, float32 [64, 64]."""
    a = te.placeholder((64, 64), name="A")
    b = te.compute(a.shape, lambda i, j: a[i, j] + 1.0, name="B")
    return make_workload(te.create_prim_func([a, te.compute(a.shape, lambda i, j: b[i, j] * 2.0, name="C")]), "affine")


@functools.cache
def traces(count: int) -> list[str]:
    """Points of the built-in space for llvm; equal ones may be among them."""
    mod = module_from_json(workload().module_json)
    space = builtin_space(mod, target_from(_TARGET), seed=1)
    schedules = [space.replay(space.traces[0], seed) for seed in range(1, count + 1)]
    return [trace_to_json(schedule.trace) for schedule in schedules if schedule is not None]


@functools.cache
def wrong_trace() -> str:
    """It keeps the intermediate result in int8, so that what is computed from it is wrong."""
    schedule = new_schedule(module_from_json(workload().module_json))
    schedule.unsafe_set_dtype(schedule.get_sblock("B"), 0, "int8")
    return trace_to_json(schedule.trace)


def measure_request(key: str, trace_json: str | None, cutoff: float | None = None) -> MeasureRequest:
    return MeasureRequest(key, workload().module_json, workload().args, trace_json, cutoff)


def race_request(contenders: dict[str, str], module_json: str | None = None) -> RaceRequest:
    """Return a race that is not repeated if its result is not clear."""
    return RaceRequest(module_json or workload().module_json, workload().args, (False, True), contenders, repeats=False)


def raced(entry: Raced | Failure) -> Raced:
    """Return the timings of a contender; fails if it was rejected."""
    assert isinstance(entry, Raced), entry
    return entry


def measured_trial(trace_json: str, seconds: float) -> Trial:
    """Return a trial as the ledger keeps it after a measurement of ``seconds`` per call."""
    return Trial(trace_json, MeasureCandidate(trace_json, Origin.RANDOM), Measured((seconds,), "worker"))


def run_all(fleet: Fleet, requests: Sequence[MeasureRequest]) -> dict[str, Outcome]:
    """Submit all and collect their outcomes."""
    for request in requests:
        fleet.submit(request)
    return collect_all(fleet, {request.key for request in requests})


def collect_all(fleet: Fleet, keys: set[str]) -> dict[str, Outcome]:
    """Outcomes by key, once each of ``keys`` came back; fails where one comes twice, or not in time."""
    outcomes: dict[str, Outcome] = {}
    until = time.monotonic() + _PATIENCE
    while len(outcomes) < len(keys) and time.monotonic() < until:
        for key, outcome in fleet.collect(1.0):
            assert key not in outcomes, f"{key} came back twice"
            outcomes[key] = outcome
    assert set(outcomes) == keys
    return outcomes


class Stopped(Exception):
    """Raised by what is called meanwhile."""


class FleetContract:
    """The fleet of the fixture builds for llvm on a machine of this host's kind."""

    def test_it_has_slots(self, fleet: Fleet) -> None:
        assert fleet.slots >= 1

    def test_nothing_submitted_nothing_comes_and_it_does_not_wait(self, fleet: Fleet) -> None:
        started = time.monotonic()
        assert fleet.collect(30.0) == []
        assert time.monotonic() - started < 15.0

    def test_every_request_comes_back_exactly_once(self, fleet: Fleet) -> None:
        requests = [measure_request(f"t{i}", trace) for i, trace in enumerate(traces(3 * fleet.slots))]
        outcomes = run_all(fleet, requests)
        assert all(isinstance(outcome, Measured) for outcome in outcomes.values()), outcomes
        assert fleet.collect(0.1) == []

    def test_a_measurement_has_samples_and_a_worker(self, fleet: Fleet) -> None:
        outcomes = run_all(fleet, [measure_request("baseline", None), measure_request("best", traces(1)[0])])
        for outcome in outcomes.values():
            assert isinstance(outcome, Measured)
            assert outcome.run_secs
            assert all(0 < seconds < 1 for seconds in outcome.run_secs)
            assert outcome.worker

    def test_a_cutoff_is_no_failure(self, fleet: Fleet) -> None:
        (outcome,) = run_all(fleet, [measure_request("slow", traces(1)[0], cutoff=1e-12)]).values()
        assert isinstance(outcome, Measured)

    @pytest.mark.parametrize("trace", [_UNKNOWN_BLOCK, "[]", "nonsense"])
    def test_a_trace_that_does_not_apply_is_an_outcome(self, fleet: Fleet, trace: str) -> None:
        outcomes = run_all(fleet, [measure_request("bad", trace), measure_request("good", None)])
        failure = outcomes["bad"]
        assert isinstance(failure, Failure)
        assert (failure.stage, failure.kind) == (Stage.BUILD, FailureKind.COMPILE)
        assert failure.message
        assert isinstance(outcomes["good"], Measured)

    def test_what_is_forwarded_comes_back(self, fleet: Fleet) -> None:
        fleet.submit(measure_request("a", None))
        for _ in range(100):
            fleet.forward()
        assert isinstance(collect_all(fleet, {"a"})["a"], Measured)

    def test_what_was_abandoned_does_not_come_back(self, fleet: Fleet) -> None:
        fleet.submit(measure_request("a", None))
        fleet.abandon()
        assert fleet.collect(1.0) == []

    def test_what_is_called_during_a_race_can_end_it(self, fleet: Fleet) -> None:
        def stop() -> None:
            raise Stopped

        with contextlib.suppress(Stopped):
            fleet.race(race_request({}), stop)
        fleet.abandon()
        assert fleet.race(race_request({}), nothing_meanwhile).baseline.run_secs

    def test_a_race_has_a_sample_a_round_of_every_contender(self, fleet: Fleet) -> None:
        contenders = {f"c{i}": trace for i, trace in enumerate(traces(3))}
        result = fleet.race(race_request(contenders), nothing_meanwhile)
        assert set(result.contenders) == set(contenders)
        entries = [result.baseline, *(raced(entry) for entry in result.contenders.values())]
        assert len({len(entry.run_secs) for entry in entries}) == 1
        assert all(seconds > 0 for entry in entries for seconds in entry.run_secs)
        assert all(entry.max_abs_error < 1e-3 for entry in entries)

    def test_a_baseline_races_alone(self, fleet: Fleet) -> None:
        result = fleet.race(race_request({}), nothing_meanwhile)
        assert result.contenders == {}
        assert result.baseline.run_secs

    def test_a_race_that_was_prepared_is_run_like_another(self, fleet: Fleet) -> None:
        request = race_request({"right": traces(1)[0]})
        fleet.prepare(request.module_json)
        fleet.prepare(request.module_json)
        for _ in range(2):
            assert raced(fleet.race(request, nothing_meanwhile).contenders["right"]).run_secs

    def test_after_it_was_abandoned_a_fleet_measures_and_races_again(self, fleet: Fleet) -> None:
        fleet.submit(measure_request("dropped", traces(1)[0]))
        fleet.prepare(race_request({}).module_json)
        fleet.abandon()
        assert set(run_all(fleet, [measure_request("kept", None)])) == {"kept"}
        assert fleet.race(race_request({}), nothing_meanwhile).baseline.run_secs

    def test_a_wrong_result_is_rejected_and_the_others_race_on(self, fleet: Fleet) -> None:
        result = fleet.race(race_request({"wrong": wrong_trace(), "right": traces(1)[0]}), nothing_meanwhile)
        wrong = result.contenders["wrong"]
        assert isinstance(wrong, Failure)
        assert (wrong.stage, wrong.kind) == (Stage.CERTIFY, FailureKind.WRONG_RESULT)
        assert "differs" in wrong.message
        assert len(raced(result.contenders["right"]).run_secs) == len(result.baseline.run_secs)

    def test_the_certificate_names_the_contender_with_a_wrong_result(self, fleet: Fleet) -> None:
        trials = [measured_trial(wrong_trace(), 1e-6), measured_trial(traces(1)[0], 1e-5)]
        plan = RacePlan(8, 1.0, repeats=False)
        [certificate] = certify_all(fleet, [Certification(workload(), (False, True), trials, plan=plan)])
        assert not isinstance(certificate, RaceFailed)
        [(rejected, failure)] = certificate.rejected.items()
        assert rejected == trials[0].candidate.hash != certificate.candidate_hash
        assert (failure.stage, failure.kind) == (Stage.CERTIFY, FailureKind.WRONG_RESULT)

    def test_a_contender_that_does_not_build_is_rejected(self, fleet: Fleet) -> None:
        result = fleet.race(race_request({"broken": _UNKNOWN_BLOCK}), nothing_meanwhile)
        broken = result.contenders["broken"]
        assert isinstance(broken, Failure)
        assert (broken.stage, broken.kind) == (Stage.BUILD, FailureKind.COMPILE)
        assert result.baseline.run_secs

    def test_a_baseline_that_does_not_build_cannot_be_raced(self, fleet: Fleet) -> None:
        with pytest.raises(RaceFailed):
            fleet.race(race_request({BASELINE.hash: traces(1)[0]}, module_json="{}"), nothing_meanwhile)

    def test_races_of_several_functions_are_each_answered(self, fleet: Fleet) -> None:
        right = {"right": traces(1)[0]}
        requests = [
            race_request(right),
            race_request({"wrong": wrong_trace(), **right}),
            race_request(right, module_json="{}"),
            race_request({}),
        ]
        first, second, third, fourth = fleet.race_all(requests, nothing_meanwhile)
        assert isinstance(third, RaceFailed)
        for result in (first, second, fourth):
            assert isinstance(result, RaceResult)
            assert result.baseline.run_secs
            assert [key for key, entry in result.contenders.items() if isinstance(entry, Failure)] == [
                key for key in result.contenders if key == "wrong"
            ]

    def test_a_race_leaves_the_fleet_as_it_was(self, fleet: Fleet) -> None:
        fleet.race(race_request({"right": traces(1)[0]}), nothing_meanwhile)
        assert isinstance(run_all(fleet, [measure_request("after", None)])["after"], Measured)
