"""The closing race of a function that is not the same twice, of one with a library for GPUs, and without a library."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tvm

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind
from loopwright.codegen.math_mode import MathMode
from tests.support import workloads
from tests.support.waiting import wait_for
from tuner.ports import Raced
from tuner.races.grade import SITTING, graded
from tuner.types import Failure, LibraryTime, Waited, Workload
from workers.clock import Clock
from workers.device import build, gpu_library, other_load
from workers.device.race import MIN_ROUNDS, PAUSE_SECONDS, REPEATS, ROUNDS, interleaved, run_race
from workers.device.runner import Runner
from workers.device.yardstick import Yardstick
from workers.messages import Artifact, BuildRequest, BuiltRace, Device, RaceAnswer

HOST = Device("llvm", 0)
Returned = TypeVar("Returned")


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and locks of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)


def returned(running: Generator[Clock, None, Returned]) -> Returned:
    while True:
        try:
            next(running)
        except StopIteration as end:
            return end.value


def answer_of(race: BuiltRace, device: Device = HOST) -> RaceAnswer:
    return returned(run_race(device, race, lambda: None))


def built(workload: Workload) -> Artifact:
    return build.artifact_of(BuildRequest(workload.module_json, None, workloads.LLVM))


def test_a_function_that_is_not_the_same_twice_is_called_so() -> None:
    """As if it were: the second run is of a function that computes something else."""
    first = workloads.elementwise()
    other = built(workloads.elementwise("C[vi, vj] = A[vi, vj] - B[vi, vj]"))
    race = BuiltRace(first.args, (False, False, True), built(first), (other, built(first)), 3)
    for result in answer_of(race).contenders:
        assert isinstance(result, Failure)
        assert result.kind is FailureKind.WRONG_RESULT
        assert result.message.startswith("two runs of the function gave different results")


@pytest.mark.parametrize(("math", "accepted"), [("fp32", False), ("tf32", True)])
def test_results_may_differ_by_as_much_as_the_math_mode_permits(math: MathMode, accepted: bool) -> None:
    """As if it rounded: the contender's results are too large by 4e-4 of themselves."""
    right = workloads.elementwise()
    rounding = built(workloads.elementwise("C[vi, vj] = (A[vi, vj] + B[vi, vj]) * T.float32(1.0004)"))
    race = BuiltRace(right.args, (False, False, True), built(right), (built(right), rounding), 3, math=math)
    assert isinstance(answer_of(race).contenders[1], Raced) == accepted


def test_races_of_several_functions_share_their_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments and programs of one are not taken for another's, although they have positions in one process."""
    started: list[Runner] = []

    def start(*arguments: Any) -> Runner:
        started.append(Runner(*arguments))
        return started[-1]

    monkeypatch.setattr("workers.device.race.Runner", start)
    add, product = workloads.elementwise(), workloads.product()
    wrong = built(workloads.elementwise("C[vi, vj] = A[vi, vj] - B[vi, vj]"))
    short = functools.partial(BuiltRace, outputs=(False, False, True), library=False, repeats=False, seconds=0.1)
    races = [
        short(add.args, reference=built(add), contenders=(built(add), wrong, built(add)), seed=3),
        short(product.args, reference=built(product), contenders=(built(product),), seed=4),
        short(add.args, reference=built(add), contenders=(built(add), built(add), wrong), seed=5),
    ]
    answer = answer_of(dataclasses.replace(races[0], following=tuple(races[1:])))
    assert answer.answers(dataclasses.replace(races[0], following=tuple(races[1:])))
    found = [[isinstance(each, Raced) for each in one.contenders] for one in (answer, *answer.following)]
    assert found == [[True, False, True], [True], [True, True, False]]
    assert len(started) == 3


def product_race(**options: Any) -> BuiltRace:
    product = workloads.product()
    artifact = built(product)
    return BuiltRace(product.args, (False, False, True), artifact, (artifact, artifact), 3, **options)


def test_a_library_for_gpus_is_timed_in_all_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU, with a library whose calls tell how many there were."""

    def yardstick(inputs: Any, outputs: Any, expected: Any, device: tvm.runtime.Device, *, math: str) -> Yardstick:
        assert (device, math) == (tvm.cpu(0), "tf32")
        assert [list(outputs), len(inputs), len(expected)] == [[False, False, True], 3, 3]
        return Yardstick("cuBLAS", lambda number: 0.001 + number * 1e-9)

    monkeypatch.setattr("workers.device.race.tvm_device", lambda device: tvm.cpu(0))
    monkeypatch.setattr(gpu_library, "yardstick", yardstick)
    answer = answer_of(product_race(math="tf32", repeats=False), Device("cuda", 0))
    baseline = answer.contenders[0]
    assert isinstance(baseline, Raced)
    assert answer.library == LibraryTime("cuBLAS", (0.001 + 10 * 1e-9,) * len(baseline.run_secs))


@pytest.mark.parametrize("options", [{"library": False}, {"yardsticks": False}], ids=str)
def test_a_race_that_wants_no_library_asks_for_none(monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]) -> None:
    monkeypatch.setattr("workers.device.race.library.yardstick", lambda *arguments: pytest.fail("nobody wants it"))
    answer = answer_of(product_race(repeats=False, **options))
    assert answer.library is None
    assert all(isinstance(result, Raced) for result in answer.contenders)


def test_a_slow_library_goes_on_after_the_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.device.race.FINALISTS", 1)
    seconds = {0: 0.002, 1: 0.001, 2: 0.003, 3: 0.1}
    runs = {position: _always(each) for position, each in seconds.items()}
    samples = returned(interleaved(runs, 3, library=3))
    assert {position: len(each) for position, each in samples.items()} == {0: ROUNDS, 1: ROUNDS, 2: 3, 3: ROUNDS}


def test_a_noisy_race_is_taken_again_after_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise of the first rounds: as from another process that ends."""
    pauses: list[float] = []
    monkeypatch.setattr("workers.device.race.time.sleep", pauses.append)
    noisy = itertools.chain((0.002 * factor for factor in [1.0, 2.5] * ROUNDS), itertools.repeat(0.002))
    rests: list[int] = []
    runs = {0: lambda _: next(noisy), 1: _always(0.001)}
    samples = returned(interleaved(runs, 3, rest=lambda: rests.append(1)))
    assert [len(each) for each in samples.values()] == [3 * ROUNDS] * 2
    assert len(rests) == REPEATS
    assert pauses == [PAUSE_SECONDS] * (REPEATS * ROUNDS // SITTING)
    (before, _), (after, _) = (graded(samples[0][:count], samples[1][:count]) for count in (ROUNDS, 3 * ROUNDS))
    assert after.high - after.low < before.high - before.low


def test_a_noisy_race_of_a_small_task_is_not_taken_again() -> None:
    noisy = itertools.cycle([0.002, 0.005])
    runs = {0: lambda _: next(noisy), 1: _always(0.001)}
    samples = returned(interleaved(runs, 3, repeats=False, rest=lambda: pytest.fail("it does not wait")))
    assert [len(each) for each in samples.values()] == [ROUNDS] * 2


@pytest.mark.parametrize(
    ("seconds", "programs", "calls"), [(15.0, 4, 100), (0.1, 4, 50), (0.1, 9, 40), (0.001, 2, 40)], ids=str
)
def test_a_short_race_has_as_many_rounds_of_shorter_samples(seconds: float, programs: int, calls: int) -> None:
    numbers: list[int] = []

    def run(number: int) -> float:
        numbers.append(number)
        return 1e-4

    samples = returned(interleaved(dict.fromkeys(range(programs), run), 3, seconds=seconds, repeats=False))
    assert set(numbers) == {0, 1, calls}
    assert max(map(len, samples.values())) == (ROUNDS if seconds > 1 else MIN_ROUNDS)


@pytest.mark.parametrize("contender", [0.001, 0.0021], ids=["clean", "slower than the baseline"])
def test_a_clear_race_is_not_taken_again(contender: float) -> None:
    def rest() -> None:
        raise AssertionError("there is nothing to wait for")

    jitter = itertools.cycle([0.99, 1.0, 1.01])
    samples = returned(interleaved({0: lambda _: 0.002 * next(jitter), 1: _always(contender)}, 3, rest=rest))
    assert [len(each) for each in samples.values()] == [ROUNDS] * 2


def test_a_race_without_a_baseline_is_not_taken_again() -> None:
    noisy = itertools.cycle([0.001, 0.003])
    samples = returned(interleaved({1: lambda _: next(noisy), 2: _always(0.002)}, 3))
    assert [len(each) for each in samples.values()] == [ROUNDS] * 2


def test_a_race_waits_as_long_as_others_work_and_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = iter([2.0, 1.5, 0.1])
    monkeypatch.setattr(other_load, "busy_cores", lambda seconds: next(busy))
    load = other_load.OtherLoad()
    load.wait()
    assert load.waited == Waited(0.5, 1.5)
    assert list(busy) == []
    monkeypatch.setattr(other_load, "busy_cores", lambda seconds: 1.0)
    load.wait()
    load.wait()
    assert load.waited == Waited(other_load.MOST_SECONDS, 1.0)
    monkeypatch.setattr(other_load, "busy_cores", lambda seconds: 0.0)
    idle = other_load.OtherLoad()
    idle.wait()
    assert idle.waited is None


def test_a_busy_core_is_seen() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        try:
            assert wait_for("a busy core", lambda: other_load.busy_cores(0.2) > other_load.QUIET_CORES)
        finally:
            spinning.kill()


def _always(seconds: float) -> Callable[[int], float]:
    return lambda number: seconds
