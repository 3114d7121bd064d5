"""Timings and the closing race, run here in this process on artifacts that were really built."""

from __future__ import annotations

import base64
import functools
import itertools
import statistics
from collections.abc import Callable
from pathlib import Path

import pytest

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind, Stage
from tests.support import workloads as programs
from tuner.ports import Raced
from tuner.types import DeviceState, Failure, Workload
from workers.clock import Clock
from workers.device import build, measure
from workers.device.library import library_name
from workers.device.programs import Calls
from workers.device.race import HEATS, MIN_ROUNDS, ROUNDS, race
from workers.messages import (
    Artifact,
    ArtifactFormat,
    BuildRequest,
    BuiltRace,
    Candidate,
    Device,
    MeasureBatch,
    RaceAnswer,
    Samples,
)

ARGS = programs.elementwise().args
HOST = Device("llvm", 0)
RAISES = programs.elementwise('assert vi < 0, "never"\n        C[vi, vj] = A[vi, vj] + B[vi, vj]')
"""A program's own assertions are kept."""
SLOW = programs.elementwise(
    "C[vi, vj] = T.Select(T.sin(A[vi, vj]) > T.float32(2), T.float32(0), A[vi, vj] + B[vi, vj])"
)
"""A sine an element, for nothing that a compiler could know: dozens of times as slow as the addition."""
OUTPUTS = (False, False, True)


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)
    monkeypatch.setattr("workers.device.race.REPEATS", 0)  # other tests load the machine: no race would be clean


@functools.cache
def artifact(workload: Workload) -> Artifact:
    return build.artifact_of(BuildRequest(workload.module_json, None, programs.LLVM))


def measured(*candidates: tuple[Artifact, float | None]) -> list[Samples | Failure]:
    batch = MeasureBatch(ARGS, tuple(Candidate("key", built, cutoff) for built, cutoff in candidates))
    progress = [step for step in measure.measure(HOST, batch, lambda: None) if not isinstance(step, Clock)]
    results = {step.position: step.result for step in progress if step.result is not None}
    return [results[position] for position in range(len(candidates))]


def run_secs(result: Samples | Raced | Failure) -> tuple[float, ...]:
    assert not isinstance(result, Failure), result
    return result.run_secs


def failure(result: Samples | Raced | Failure) -> Failure:
    assert isinstance(result, Failure), result
    return result


def answer(
    baseline: Workload, contenders: tuple[Workload, ...], outputs: tuple[bool, ...] = OUTPUTS, seconds: float = 15.0
) -> RaceAnswer:
    reference = artifact(baseline)
    programs = (reference, *map(artifact, contenders))
    built = BuiltRace(baseline.args, outputs, reference, programs, seed=7, seconds=seconds)
    [found] = [value for value in race(HOST, built, lambda: None) if not isinstance(value, Clock)]
    return found


def raced(
    *contenders: Workload, baseline: Workload | None = None, seconds: float = 15.0
) -> tuple[Raced | Failure, ...]:
    return answer(baseline or programs.elementwise(), contenders, seconds=seconds).contenders


def test_samples_are_seconds_and_a_larger_program_takes_longer() -> None:
    little, much = artifact(programs.elementwise()), artifact(programs.product())
    results = measured((little, None), (much, None))
    assert [len(run_secs(result)) for result in results] == [measure.SAMPLES] * 2
    fast, slow = (statistics.median(run_secs(result)) for result in results)
    assert 0 < fast < slow < 1  # 1,024 additions against 32,768 multiplications and more


def test_the_state_of_the_device_is_read_after_each_candidate_and_after_the_race(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    celsius = itertools.count(61)
    devices = []

    def played(device: Device) -> Callable[[], DeviceState]:
        devices.append(device)
        return lambda: DeviceState(celsius=next(celsius))

    monkeypatch.setattr("workers.device.measure.state_reader", played)
    monkeypatch.setattr("workers.device.race.state_reader", played)
    program = artifact(programs.elementwise())
    results = measured((program, None), (artifact(RAISES), None), (program, None))
    states = [result.device_state for result in results if isinstance(result, Samples)]
    assert states == [DeviceState(celsius=61), DeviceState(celsius=62)]
    assert answer(programs.elementwise(), ()).device_state == DeviceState(celsius=63)
    assert devices == [HOST, HOST]


def test_beyond_the_cutoff_fewer_samples_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_AGREE", 1e9)
    (result,) = measured((artifact(programs.product()), 1e-9))
    assert len(run_secs(result)) == 2


@pytest.mark.parametrize(
    ("seconds", "cutoff", "calls", "samples"),
    [
        # 0 is a cold call, the others are means of so many calls; the last few are the samples.
        ([3e-3, 5e-4], None, [0, 1, 4, 4, 4, 4], 5),
        ([3e-3, 5e-4], 1e-2, [0, 1, 4, 4, 4, 4], 5),
        ([3e-3, 5e-4], 4e-4, [0, 1, 4], 2),  # too slow, and not by chance
        ([3e-3, 9e-4, 5e-4], 4e-4, [0, 1, 2, 4], 3),  # who knows, as long as they differ
        ([3e-3, 8e-3, 3e-3, 4e-4, 2e-3, 5e-4, 9e-4], 1e-4, [0, 1, 1, 1, 5, 5], 5),
        ([3e-3, 8e-3, 3e-3, 4e-4], 1e-4, [0, 1, 1, 1, 5], 4),  # what disturbed it went by
        ([3e-3, 3e-4, 5e-4], 4e-4, [0, 1, 7, 7, 7, 7], 5),  # once below the cutoff
        ([1e-2, 1e-6], 1e-6, [0, 1] + [2000] * 4, 5),  # what is cold may be slow for another reason
        ([0.03], 9e-3, [0, 0], 2),  # but not where it is slow
        ([0.03], 0.04, [0, 0, 0], 3),  # slow calls need fewer samples
        ([0.03, 0.06, 0.05], 1e-3, [0, 0, 0], 3),
        ([0.03, 2e-4], 1e-4, [0, 0, 10], 3),  # it was the machine that was slow
        ([3e-3], 2e-3, [0, 1, 1], 2),  # a call that is as long as a sample is one
        ([2.0], None, [0], 1),  # long ones are their own
        ([0.03, 0.02], 0.0, [0], 1),  # slow ones, too, if nothing depends on them
        ([3e-3, 5e-4], 0.0, [0, 1, 4], 2),
        ([3e-3, 2.0, 5e-4], 1e-4, [0, 1, 0, 4], 3),  # but not what was quick before
        ([3e-3, 0.0, 1e-6], None, [0, 1, 1000, 2000, 2000, 2000, 2000], 5),  # below the clock's resolution
    ],
)
def test_how_often_a_program_is_called(
    seconds: list[float], cutoff: float | None, calls: list[int], samples: int
) -> None:
    made: list[int] = []
    taken: list[float] = []

    def mean(number: int) -> float:
        made.append(number)
        taken.append(seconds[min(len(made), len(seconds)) - 1])
        return taken[-1]

    assert measure.sample(mean, cutoff) == taken[-samples:]
    assert made == calls


def test_a_candidate_that_fails_does_not_spoil_the_next() -> None:
    good = artifact(programs.elementwise())
    raising = artifact(RAISES)
    no_library = Artifact(ArtifactFormat.SHARED_LIBRARY, base64.b64encode(b"this is no library").decode())
    no_code = Artifact(ArtifactFormat.LLVM_IR, "this is no IR")
    first, *failed, last = measured((good, None), (raising, None), (no_library, None), (no_code, None), (good, None))
    assert run_secs(first)
    assert run_secs(last)
    assert {(failure(each).stage, failure(each).kind) for each in failed} == {(Stage.RUN, FailureKind.CRASH)}
    assert "never" in failure(failed[0]).message
    assert all(failure(each).message for each in failed)


def test_the_race_takes_the_same_rounds_of_all() -> None:
    baseline, same = raced(programs.elementwise("C[vi, vj] = B[vi, vj] + A[vi, vj]"))
    assert len(run_secs(baseline)) == len(run_secs(same))
    assert MIN_ROUNDS <= len(run_secs(same)) <= ROUNDS
    assert isinstance(same, Raced)
    assert (same.max_abs_error, same.max_rel_error) == (0.0, 0.0)


def test_the_slower_ones_drop_out_after_the_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.device.race.FINALISTS", 1)
    baseline, dropped, fast = raced(SLOW, programs.elementwise("C[vi, vj] = B[vi, vj] + A[vi, vj]"))
    assert len(run_secs(dropped)) == HEATS
    assert len(run_secs(baseline)) == len(run_secs(fast)) >= MIN_ROUNDS
    assert isinstance(dropped, Raced)
    assert dropped.max_abs_error == 0.0


def test_a_slow_baseline_does_not_hold_up_a_short_race() -> None:
    baseline, fast = raced(programs.elementwise(), baseline=SLOW, seconds=0.0)
    assert len(run_secs(baseline)) == HEATS
    assert len(run_secs(fast)) == MIN_ROUNDS
    baseline, slow = raced(SLOW, seconds=0.0)
    assert len(run_secs(baseline)) == len(run_secs(slow)) == MIN_ROUNDS


def test_a_call_that_takes_long_is_a_sample_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LONG_SECONDS", "SLOW_SECONDS"):
        monkeypatch.setattr(f"workers.device.race.{name}", 0.0)
    monkeypatch.setattr(Calls, "mean", lambda calls, number: pytest.fail("called more often than it need be"))
    baseline, same = raced(programs.elementwise("C[vi, vj] = B[vi, vj] + A[vi, vj]"))
    assert all(seconds > 0 for entry in (baseline, same) for seconds in run_secs(entry))


def test_the_library_runs_in_some_of_the_rounds_where_it_computes_the_same() -> None:
    found = answer(programs.product(), ())
    assert found.library is not None
    assert found.library.name == library_name()
    assert MIN_ROUNDS <= len(found.library.run_secs) <= len(run_secs(found.contenders[0]))
    assert all(0 < seconds < 1 for seconds in found.library.run_secs)
    assert answer(programs.elementwise(), ()).library is None


@pytest.mark.parametrize(
    ("wrong", "position"),
    [
        (programs.product(), 2),
        (programs.elementwise("C[vi, vj] = A[vi, vj] + B[vi, vj] * T.float32(1.01)"), 2),
        (programs.elementwise(rows=programs.SIZE - 1), 2),  # leaves the last row as it was
        (programs.elementwise("C[vi, vj] = A[vi, vj] + B[vi, vj]\n        A[vi, vj] = T.float32(0)"), 0),
    ],
    ids=["another computation", "slightly off", "unwritten", "spoils its input"],
)
def test_the_race_rejects_what_computes_something_else(wrong: Workload, position: int) -> None:
    baseline, rejected, fine = raced(wrong, programs.elementwise())
    assert (failure(rejected).stage, failure(rejected).kind) == (Stage.CERTIFY, FailureKind.WRONG_RESULT)
    assert failure(rejected).message.startswith(f"argument {position} differs")
    assert run_secs(baseline)
    assert run_secs(fine)


def test_an_unwritten_element_is_infinitely_wrong() -> None:
    _, rejected = raced(programs.elementwise(rows=programs.SIZE - 1))
    assert "by up to inf" in failure(rejected).message


def test_a_contender_that_raises_is_rejected_as_a_crash_and_the_others_race() -> None:
    _, failed, fine = raced(RAISES, programs.elementwise())
    assert (failure(failed).stage, failure(failed).kind) == (Stage.CERTIFY, FailureKind.CRASH)
    assert "never" in failure(failed).message
    assert run_secs(fine)
