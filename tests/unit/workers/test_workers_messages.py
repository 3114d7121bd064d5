"""What crosses processes comes back equal from JSON, and other JSON is refused by one kind of error."""

from __future__ import annotations

import copy
import importlib
import inspect
import json
import math
import re
from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, get_args, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.codegen.arrays import numpy_dtype
from loopwright.codegen.kinds import FailureKind, Origin, SandboxLevel, Stage, ThrottleReason
from service.api import sandbox
from tuner.codec import Malformed, decode, encode
from tuner.ports import Raced
from tuner.search.request import TuneRequest
from tuner.types import Certificate, DeviceState, Failure, MeasureCandidate, TensorInfo, Trial
from workers import board_messages, messages
from workers.boards.config import Board
from workers.boards.reference_results import packed, unpacked
from workers.child import child_calls, search_messages
from workers.clock import Clock
from workers.messages import (
    Artifact,
    ArtifactFormat,
    BuiltRace,
    Device,
    MeasurerStatus,
    RaceAnswer,
    Samples,
)
from workers.ray import actor_calls
from workers.walls.enclosure import Enclosure

st.register_type_strategy(str, st.text(max_size=8))
st.register_type_strategy(float, st.floats(allow_nan=False, allow_infinity=False))
st.register_type_strategy(TuneRequest, st.builds(TuneRequest, tasks=st.just([]), space=st.none()))


def _register_short(kind: type[BuiltRace] | type[RaceAnswer]) -> None:
    """Have a value followed by one other at most: longer ones take a second each to draw."""
    inferred: dict[str, Any] = {each.name: ... for each in fields(kind)}
    one = st.builds(kind, **inferred | {"following": st.just(())})
    st.register_type_strategy(kind, st.builds(kind, **inferred | {"following": st.just(()) | st.tuples(one)}))


_register_short(BuiltRace)
_register_short(RaceAnswer)


def _of(module: Any) -> Iterator[type]:
    return (each for _, each in inspect.getmembers(module, inspect.isclass) if each.__module__ == module.__name__)


CALLS = [
    each for module in (child_calls, sandbox) for each in vars(module).values() if isinstance(each, child_calls.Call)
]
ANSWERS = {str(each.answer): each.answer for each in CALLS} | {
    str(each.answer): each.answer for each in vars(actor_calls).values() if isinstance(each, actor_calls.Method)
}
TYPES = [
    *(each for module in (messages, board_messages, search_messages) for each in _of(module)),
    *(Board, Certificate, Enclosure, Trial, TuneRequest),
    search_messages.Question,
    list[search_messages.StoredSample],
    list[MeasureCandidate],
    *ANSWERS.values(),
]


def named(kind: Any) -> str:
    """Return a name of a type that is the same in every process: without the address of a function."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(kind))


def wire(value: object) -> Any:
    """Return what the other process gets."""
    return json.loads(json.dumps(encode(value), allow_nan=False))


@pytest.mark.parametrize("kind", dict.fromkeys(TYPES), ids=named)
@settings(max_examples=6)
@given(data=st.data())
def test_a_value_comes_back_equal(kind: Any, data: st.DataObject) -> None:
    value = data.draw(st.from_type(kind))
    assert decode(kind, wire(value)) == value


ODD: list[Any] = [
    None,
    True,
    -1,
    0,
    1.5,
    10**400,
    "",
    "x",
    "\ud800",
    [],
    [[]],
    {},
    {"stage": "run"},
    math.nan,
    math.inf,
]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield path
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        yield from places(part, (*path, key))


@pytest.mark.parametrize("kind", ANSWERS.values(), ids=named)
@settings(max_examples=15)
@given(data=st.data())
def test_a_hostile_answer_is_a_value_of_its_type_or_malformed(kind: Any, data: st.DataObject) -> None:
    answer = [wire(data.draw(st.from_type(kind)))]
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from([each for each in places(answer) if each]))
        parent = answer
        for key in path:
            parent = parent[key]
        if data.draw(st.booleans()) and isinstance(parent, dict):
            del parent[last]
        else:
            parent[last] = copy.deepcopy(data.draw(st.sampled_from(ODD)))
    try:
        value = decode(kind, answer[0])
    except Malformed:
        return
    assert decode(kind, encode(value)) == value


@pytest.mark.parametrize(
    ("kind", "answer"),
    [
        (Samples, {"run_secs": []}),
        (Samples, {"run_secs": [math.nan]}),
        (Samples, {"run_secs": [-1.0]}),
        (Samples, {"run_secs": [0.0]}),
        (Samples | Failure, {"run_secs": [math.inf]}),
        (Samples | Failure, {"stage": "run", "kind": "WELL", "message": ""}),
        (Raced | Failure, {"run_secs": [1.0], "max_abs_error": math.nan, "max_rel_error": 0.0}),
        (messages.MeasureProgress, {"position": -1}),
        (tuple[bool, ...], ["neither"]),
        (bool, {}),
        (MeasureCandidate, {"trace_json": "x" * (16 * 2**20 + 1), "origin": "random"}),
        (MeasureCandidate, {"trace_json": "x", "origin": "random", "parent": "x" * 33}),
        (MeasureCandidate, {"trace_json": "x", "origin": "random", "predicted": math.nan}),
        (MeasureCandidate, {"trace_json": "x", "origin": "random", "features": "not base64"}),
        (MeasureCandidate, {"trace_json": "x", "origin": "random", "features": "A" * (2 * 2**20)}),
        (MeasureCandidate, {"trace_json": "x", "origin": "nowhere"}),
    ],
    ids=lambda value: str(value)[:60],
)
def test_an_impossible_answer_is_malformed(kind: Any, answer: Any) -> None:
    with pytest.raises(Malformed):
        decode(kind, answer)


def test_a_message_of_another_version_is_read() -> None:
    """One of a later version has fields and reasons that are not known here; one of an earlier version lacks some."""
    artifact = Artifact(ArtifactFormat.SHARED_LIBRARY, "code")
    for value, lacks in [
        (MeasurerStatus(1, SandboxLevel.NONE, "Linux", None, None, 0.5), "leaving"),
        (Samples((0.5,)), "device_state"),
        (BuiltRace((), (), artifact, (artifact,), 1), "math"),
        (BuiltRace((), (), artifact, (artifact,), 1), "following"),
    ]:
        assert decode(type(value), {k: v for k, v in wire(value).items() if k != lacks} | {"added": 1}) == value
    later = {"celsius": 61, "throttled": ["power_cap", "a later reason"], "fan_percent": 30}
    assert decode(DeviceState, later) == DeviceState(
        celsius=61, throttled=(ThrottleReason.POWER_CAP, ThrottleReason.OTHER)
    )


@pytest.mark.parametrize("position", range(3))
@pytest.mark.parametrize("timed", [True, False])
def test_a_race_is_answered_by_a_result_for_each_contender(position: int, timed: bool) -> None:
    artifact = Artifact(ArtifactFormat.SHARED_LIBRARY, "code")
    race = BuiltRace((), (), artifact, (artifact,) * 3, 1, yardsticks=timed)
    results: list[Raced | Failure] = [Raced((0.5,), 0.0, 0.0)] * 3
    assert RaceAnswer(tuple(results)).answers(race)
    assert not RaceAnswer(tuple(results[1:])).answers(race)
    results[position] = Failure(Stage.CERTIFY, FailureKind.CRASH, "")
    assert RaceAnswer(tuple(results)).answers(race)
    results[position] = Raced((), 0.0, 0.0)
    assert RaceAnswer(tuple(results)).answers(race) == (position == 0 and not timed)


def test_races_that_follow_are_all_answered_or_none() -> None:
    artifact = Artifact(ArtifactFormat.SHARED_LIBRARY, "code")
    small, large = (BuiltRace((), (), artifact, (artifact,) * count, 1) for count in (1, 2))
    race = replace(small, following=(large, small))
    assert decode(BuiltRace, wire(race)) == race
    one, two = (RaceAnswer((Raced((0.5,), 0.0, 0.0),) * count) for count in (1, 2))
    for following, fits in [
        ((), True),
        ((two, one), True),
        ((one, one), False),
        ((two,), False),
        ((two, one, one), False),
    ]:
        assert replace(one, following=following).answers(race) == fits


def test_bytes_are_not_compared_but_kept() -> None:
    candidate = MeasureCandidate("[]", Origin.RANDOM, features=bytes(range(256)))
    assert decode(MeasureCandidate, wire(candidate)).features == candidate.features


@pytest.mark.parametrize(("name", "device"), [("cpu", Device("llvm", 0)), ("cuda:3", Device("cuda", 3))])
def test_a_device_is_found_by_its_name(name: str, device: Device) -> None:
    assert Device.named(name) == device


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "int8", "int64", "bool"])
def test_results_of_the_reference_come_back_as_they_were(dtype: str) -> None:
    infos = [TensorInfo((2, 3), dtype), TensorInfo((4,), dtype)]
    inputs = [np.zeros(info.shape, numpy_dtype(dtype)) for info in infos]
    results = [inputs[0], np.ones((4,), numpy_dtype(dtype))]
    sent = packed(inputs, results)
    assert sent.values[0] is None
    for before, after in zip(results, unpacked(sent, inputs, infos), strict=True):
        assert after.dtype == before.dtype
        assert np.array_equal(after, before)


@pytest.mark.parametrize("call", CALLS, ids=lambda call: f"{call.module}:{call.function}")
def test_a_call_names_a_function_that_yields_what_is_read(call: child_calls.Call[Any]) -> None:
    function = getattr(importlib.import_module(call.module), call.function)
    yielded = get_args(get_type_hints(function)["return"])[0]
    members = set(get_args(yielded)) - {Clock} if Clock in get_args(yielded) else {yielded}
    wanted = {call.answer} if len(members) == 1 else set(get_args(call.answer))
    assert members == wanted
