"""The closing race of a function whose unscheduled program does not agree with its own reference."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright.codegen import host_lock
from tests.support import workloads
from tuner.types import Failure, FailureKind, Workload
from workers import build
from workers.clock import Clock
from workers.messages import Artifact, BuildRequest, BuiltRace, Device, RaceAnswer
from workers.race import run_race


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files and locks of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host_lock, "directory", lambda: tmp_path)


def built(workload: Workload) -> Artifact:
    return build.artifact_of(BuildRequest(workload.module_json, None, workloads.LLVM))


def test_a_function_that_is_not_the_same_twice_is_called_so() -> None:
    """As if it were: the second run is of a function that computes something else."""
    first = workloads.elementwise()
    other = built(workloads.elementwise("C[vi, vj] = A[vi, vj] - B[vi, vj]"))
    race = BuiltRace(first.args, (False, False, True), built(first), (other, built(first)), 3)
    steps = list(_steps(race))
    assert isinstance(steps[-1], RaceAnswer)
    for result in steps[-1].contenders:
        assert isinstance(result, Failure)
        assert result.kind is FailureKind.WRONG_RESULT
        assert result.message.startswith("the function does not compute the same twice")


def _steps(race: BuiltRace) -> list[Clock | RaceAnswer]:
    steps: list[Clock | RaceAnswer] = []
    running = run_race(Device("llvm", 0), race)
    while True:
        try:
            steps.append(next(running))
        except StopIteration as end:
            return [*steps, end.value]
