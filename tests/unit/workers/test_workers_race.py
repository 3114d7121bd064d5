"""The closing race of a function that is not the same twice, of one with a library for GPUs, and without a library."""

from __future__ import annotations

from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, TypeVar

import pytest
import tvm

from loopwright.codegen.host import lock as host_lock
from loopwright.codegen.kinds import FailureKind
from loopwright.codegen.math_mode import MathMode
from tests.support import workloads
from tuner.ports import Raced
from tuner.types import Failure, LibraryTime, Workload
from workers.clock import Clock
from workers.device import build, gpu_library
from workers.device.race import ROUNDS, interleaved, run_race
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
    answer = answer_of(product_race(math="tf32"), Device("cuda", 0))
    baseline = answer.contenders[0]
    assert isinstance(baseline, Raced)
    assert answer.library == LibraryTime("cuBLAS", (0.001 + 10 * 1e-9,) * len(baseline.run_secs))


@pytest.mark.parametrize("options", [{"library": False}, {"yardsticks": False}], ids=str)
def test_a_race_that_wants_no_library_asks_for_none(monkeypatch: pytest.MonkeyPatch, options: dict[str, bool]) -> None:
    monkeypatch.setattr("workers.device.race.library.yardstick", lambda *arguments: pytest.fail("nobody wants it"))
    answer = answer_of(product_race(**options))
    assert answer.library is None
    assert all(isinstance(result, Raced) for result in answer.contenders)


def test_a_slow_library_goes_on_after_the_heats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workers.device.race.FINALISTS", 1)
    seconds = {0: 0.002, 1: 0.001, 2: 0.003, 3: 0.1}
    runs = {position: _always(each) for position, each in seconds.items()}
    samples = returned(interleaved(runs, 3, library=3))
    assert {position: len(each) for position, each in samples.items()} == {0: ROUNDS, 1: ROUNDS, 2: 3, 3: ROUNDS}


def _always(seconds: float) -> Callable[[int], float]:
    return lambda number: seconds
