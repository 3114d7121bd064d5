"""Every message crosses a process boundary as JSON and comes back equal."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from loopwright.codegen.math_mode import FP32, TF32
from tuner.ports import Raced
from tuner.types import (
    DeviceClass,
    DeviceState,
    Failure,
    FailureKind,
    LibraryTime,
    SandboxLevel,
    Stage,
    TensorInfo,
    ThrottleReason,
)
from workers import messages
from workers.messages import (
    Artifact,
    ArtifactFormat,
    BuildAnswer,
    BuilderStatus,
    BuildRequest,
    BuiltCandidate,
    BuiltRace,
    DetectedDevice,
    Device,
    DeviceSpeed,
    MeasureAnswer,
    MeasureBatch,
    MeasureFinished,
    MeasurerStatus,
    MeasureStarted,
    ModelProgram,
    ModelTimes,
    RaceAnswer,
    ReferenceKernels,
    ReferenceRequest,
    Samples,
    SandboxedRace,
)

texts = st.text(max_size=20)
numbers = st.floats(allow_nan=False)
counts = st.integers(0, 2**40)


def tuples(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, max_size=3).map(tuple)


failures = st.builds(Failure, st.sampled_from(Stage), st.sampled_from(FailureKind), texts, st.none() | texts)
artifacts = st.builds(Artifact, st.sampled_from(ArtifactFormat), texts)
infos = st.builds(TensorInfo, tuples(counts), texts)
states = st.builds(
    DeviceState, *[st.none() | counts] * 4, throttled=st.none() | tuples(st.sampled_from(ThrottleReason))
)
samples = st.builds(Samples, tuples(numbers), st.none() | states)
levels = st.sampled_from(SandboxLevel)
raced = st.builds(Raced, tuples(numbers), numbers, numbers)
libraries = st.builds(LibraryTime, texts, tuples(numbers))
races = st.builds(RaceAnswer, tuples(raced | failures), st.none() | libraries, st.none() | states)
candidates = st.builds(BuiltCandidate, texts, artifacts, st.none() | numbers)
device_classes = st.builds(DeviceClass, texts, texts, tuples(texts), counts, counts, texts)


def is_json(value: Any) -> bool:
    """Whether a value has JSON's own types only, and not, say, an enum or a tuple."""
    if type(value) is dict:
        return all(type(key) is str and is_json(item) for key, item in value.items())
    if type(value) is list:
        return all(map(is_json, value))
    return value is None or type(value) in (str, int, float, bool)


MESSAGES: dict[str, tuple[st.SearchStrategy[Any], Callable[[Any], Any]]] = {
    "TensorInfo": (infos, TensorInfo.from_json),
    "Failure": (failures, Failure.from_json),
    "DeviceState": (states, DeviceState.from_json),
    "Raced": (raced, Raced.from_json),
    "LibraryTime": (libraries, LibraryTime.from_json),
    "Artifact": (artifacts, Artifact.from_json),
    "BuildRequest": (st.builds(BuildRequest, texts, st.none() | texts, texts), BuildRequest.from_json),
    "BuildAnswer": (
        st.builds(BuildAnswer, artifacts | failures, texts, numbers, numbers),
        BuildAnswer.from_json,
    ),
    "Device": (st.builds(Device, st.sampled_from(["llvm", "cuda"]), counts), Device.from_json),
    "BuiltCandidate": (candidates, BuiltCandidate.from_json),
    "MeasureBatch": (st.builds(MeasureBatch, tuples(infos), tuples(candidates)), MeasureBatch.from_json),
    "Samples": (samples, Samples.from_json),
    "MeasureStarted": (st.builds(MeasureStarted, counts), messages.measure_progress_from_json),
    "MeasureFinished": (
        st.builds(MeasureFinished, counts, samples | failures),
        messages.measure_progress_from_json,
    ),
    "MeasureAnswer": (st.builds(MeasureAnswer, samples | failures, levels, numbers, numbers), MeasureAnswer.from_json),
    "BuiltRace": (
        st.builds(
            BuiltRace,
            *(tuples(infos), tuples(st.booleans()), artifacts, tuples(artifacts), counts),
            yardsticks=st.booleans(),
            library=st.booleans(),
            math=st.sampled_from((FP32, TF32)),
        ),
        BuiltRace.from_json,
    ),
    "RaceAnswer": (races, RaceAnswer.from_json),
    "SandboxedRace": (st.builds(SandboxedRace, races, levels, texts), SandboxedRace.from_json),
    "ModelProgram": (
        st.builds(ModelProgram, texts, texts, st.dictionaries(texts, st.none() | texts)),
        ModelProgram.from_json,
    ),
    "ModelTimes": (st.builds(ModelTimes, tuples(numbers), st.none() | texts), ModelTimes.from_json),
    "ReferenceRequest": (st.builds(ReferenceRequest, texts, counts), ReferenceRequest.from_json),
    "ReferenceKernels": (
        st.builds(ReferenceKernels, artifacts, artifacts, tuples(counts), numbers),
        ReferenceKernels.from_json,
    ),
    "DeviceSpeed": (st.builds(DeviceSpeed, numbers, texts, numbers, st.none() | numbers), DeviceSpeed.from_json),
    "BuilderStatus": (st.builds(BuilderStatus, counts, st.booleans()), BuilderStatus.from_json),
    "MeasurerStatus": (
        st.builds(MeasurerStatus, counts, levels, texts, st.none() | numbers, st.none() | texts, numbers),
        MeasurerStatus.from_json,
    ),
    "DetectedDevice": (st.builds(DetectedDevice, texts, device_classes), DetectedDevice.from_json),
}


@pytest.mark.parametrize("name", MESSAGES)
@given(data=st.data())
def test_a_message_comes_back_equal_through_json(name: str, data: st.DataObject) -> None:
    values, from_json = MESSAGES[name]
    message = data.draw(values)
    wire = message.to_json()
    assert is_json(wire)
    assert from_json(json.loads(json.dumps(wire))) == message


def test_every_message_class_is_tested() -> None:
    classes = {name for name, value in vars(messages).items() if hasattr(value, "to_json")}
    assert classes - {"Message", "_Flat", "_FlatAnswer", "DeviceClass"} == set(MESSAGES)


@pytest.mark.parametrize(
    "status",
    [
        BuilderStatus(1, True),
        MeasurerStatus(1, SandboxLevel.NONE, "Linux", None, None, 0.5),
        DeviceSpeed(1e-3, "float32", 1e9, None),
    ],
)
def test_a_status_of_a_later_version_is_read(status: BuilderStatus | MeasurerStatus | DeviceSpeed) -> None:
    assert type(status).from_json(status.to_json() | {"added": 1}) == status


@pytest.mark.parametrize("answer", [Samples((0.5,)), RaceAnswer((), None)])
def test_the_device_state_of_a_later_version_is_read(answer: Samples | RaceAnswer) -> None:
    wire = answer.to_json()
    later = {"celsius": 61, "throttled": ["power_cap", "a later reason"], "fan_percent": 30}
    state = DeviceState(celsius=61, throttled=(ThrottleReason.POWER_CAP, ThrottleReason.OTHER))
    assert type(answer).from_json(wire | {"device_state": later}) == replace(answer, device_state=state)


def test_a_request_that_is_not_understood_is_refused() -> None:
    with pytest.raises(TypeError, match="added"):
        BuildRequest.from_json(BuildRequest("{}", None, "{}").to_json() | {"added": 1})


@given(result=artifacts | failures)
def test_a_value_or_a_failure_comes_back_as_it_was(result: Artifact | Failure) -> None:
    fields = json.loads(json.dumps(messages.result_to_json(result)))
    assert messages.result_from_json(fields, Artifact.from_json) == result


@pytest.mark.parametrize(("name", "device"), [("cpu", Device("llvm", 0)), ("cuda:3", Device("cuda", 3))])
def test_a_device_is_found_by_its_name(name: str, device: Device) -> None:
    assert Device.named(name) == device
