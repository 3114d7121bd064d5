"""What a search is told of tasks and trials comes back equal from JSON."""

from __future__ import annotations

import json

import pytest

from tuner.types import (
    DeviceState,
    Failure,
    FailureKind,
    MeasureCandidate,
    Measured,
    Origin,
    Outcome,
    SandboxLevel,
    Stage,
    TaskSpec,
    TensorInfo,
    ThrottleReason,
    Trial,
    Workload,
)
from workers.search_messages import spec_from_json, spec_to_json, trial_from_json, trial_to_json


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        Measured((0.5, 0.25), "worker"),
        *(Measured((0.5,), "worker", sandbox=level) for level in SandboxLevel),
        Measured((0.5,), "worker", device_state=DeviceState(1980, 2619, 61, 412, tuple(ThrottleReason))),
        Failure(Stage.RUN, FailureKind.CRASH, "it crashed", "worker"),
    ],
)
def test_a_trial_comes_back_equal_through_json(outcome: Outcome | None) -> None:
    trial = Trial("id", MeasureCandidate("[[],[]]", Origin.MUTATION, 0.5, "parent"), outcome)
    assert trial_from_json(json.loads(json.dumps(trial_to_json(trial)))) == trial


def test_a_task_comes_back_equal_through_json() -> None:
    workload = Workload("hash", "family", "name", "{}", "# script", (TensorInfo((2, 3), "float32"),))
    spec = TaskSpec(workload, 3, ("[1]",), ("[2]", "[3]"), ("[4]",))
    assert spec_from_json(json.loads(json.dumps(spec_to_json(spec)))) == spec
