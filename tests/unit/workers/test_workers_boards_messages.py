"""Messages of boards cross a process boundary as JSON and come back equal."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.codegen.arrays import numpy_dtype
from tuner.types import DeviceClass, TensorInfo
from workers.boards import messages
from workers.boards.messages import DescribedBoard, DetectedBoard, Link, ReferenceResults, Temperature
from workers.boards.reference_results import packed, unpacked
from workers.messages import DetectedDevice

texts = st.text(max_size=20)
numbers = st.floats(allow_nan=False)
MACHINE = DetectedDevice("loop", DeviceClass('{"kind": "llvm"}', "board", ("neon",), 4, 4, "tvm, over RPC"))
MESSAGES: dict[str, st.SearchStrategy[Any]] = {
    "Link": st.builds(Link, texts, st.integers(1, 65535), st.booleans(), texts, numbers),
    "DescribedBoard": st.builds(DescribedBoard, texts, texts, st.none() | texts, st.none() | texts),
    "DetectedBoard": st.builds(DetectedBoard, st.just(MACHINE), texts),
    "Temperature": st.builds(Temperature, st.none() | numbers),
    "ReferenceResults": st.builds(ReferenceResults, st.lists(st.none() | texts, max_size=3).map(tuple)),
}


@pytest.mark.parametrize("name", MESSAGES)
@settings(max_examples=30)  # of each class
@given(data=st.data())
def test_a_message_comes_back_equal_through_json(name: str, data: st.DataObject) -> None:
    message = data.draw(MESSAGES[name])
    assert type(message).from_json(json.loads(json.dumps(message.to_json()))) == message


def test_every_message_class_is_tested() -> None:
    classes = {name for name, value in vars(messages).items() if hasattr(value, "to_json")}
    assert classes - {"DetectedDevice"} == set(MESSAGES)


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
