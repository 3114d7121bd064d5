"""Frames as a hostile fork may write them: each ends or answers its own request, and nothing else comes of it."""

from __future__ import annotations

import base64
import contextlib
import json
import random
import struct
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from tests.security import attacks
from tests.security.fuzz.values import altered_list, value
from tests.security.test_security_frames import is_honest
from tuner.codec import encode
from tuner.ports import Raced
from workers.child import child_calls
from workers.child.warm_child import ChildError, ChildMalformed, WarmChild
from workers.messages import Artifact, ArtifactFormat, DeviceSpeed, MeasureProgress, ModelTimes, RaceAnswer, Samples
from workers.walls.levels import Policy, choose

ATTACKS = attacks.__name__
FRAMES = 100
"""That a fork writes: the first that is no frame, or the end of the fork, ends the request."""
ANSWERS: Mapping[Any, Any] = {
    child_calls.MEASURE: MeasureProgress(0, Samples((1e-3, 2e-3))),
    child_calls.RACE: RaceAnswer((Raced((1.0,), 0.0, 0.0),)),
    child_calls.CHECK: DeviceSpeed(1e-3, "float32", 1e11, None),
    child_calls.TIME_MODEL: ModelTimes((1e-3,), None),
    child_calls.BUILD: Artifact(ArtifactFormat.LLVM_IR, "code"),
}
"""What the functions answer that run what users sent."""


@pytest.fixture(scope="module")
def child() -> Iterator[WarmChild]:
    made = WarmChild([ATTACKS], level=choose(Policy.PREFER))
    yield made
    made.close()


def changed(tree: Any, draw: random.Random) -> Any:
    """Return JSON with one value in it replaced, removed or added."""
    if isinstance(tree, dict) and tree and draw.random() < 0.8:
        key = draw.choice(list(tree))
        rest = {name: part for name, part in tree.items() if name != key}
        return rest if draw.random() < 0.1 else rest | {key: changed(tree[key], draw)}
    if isinstance(tree, list) and tree and draw.random() < 0.8:
        copy = list(tree)
        altered_list(copy, draw)
        return copy
    return value(draw)


def frame(draw: random.Random) -> bytes:
    answer = encode(draw.choice(list(ANSWERS.values())))
    said = draw.choice(
        [
            {"value": answer},
            {"value": changed(answer, draw)},
            {"value": changed(changed(answer, draw), draw)},
            {"raised": value(draw), "message": value(draw)},
            {"clock": draw.choice(["stop", "start", value(draw)])},
            {draw.choice(["end", "ready", "number", "question", "stop", "function", ""]): value(draw)},
        ]
    )
    if draw.random() < 0.01:
        said |= {draw.choice(["done", "number", "end", "clock", "value"]): value(draw)}
    text = bytearray(json.dumps(said).encode())
    length = len(text)
    if draw.random() < 0.002:
        text[draw.randrange(len(text))] = draw.randrange(256)
    if draw.random() < 0.001:
        length = draw.choice([0, 1, length - 1, length + 1, 2**31, 2**32 - 1])
    return struct.pack("!I", length) + bytes(text)


@pytest.mark.parametrize("forks", [100, pytest.param(1000, marks=pytest.mark.whole)])
def test_what_a_fork_writes_is_its_own_answer_or_none(child: WarmChild, forks: int) -> None:
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    read = refused = 0
    for number in range(forks):
        frames = [base64.b64encode(frame(draw)).decode() for _ in range(FRAMES)]
        call = draw.choice(list(ANSWERS))
        with contextlib.suppress(ChildError):
            for answer in child.stream(f"{ATTACKS}:speak", {"frames": frames}, 20):
                try:
                    call.read(answer)
                    read += 1
                except ChildMalformed:
                    refused += 1
        if number % 10 == 9:
            assert is_honest(child), f"seed {seed}, fork {number}"
    assert read + refused > forks * FRAMES / 5, f"seed {seed}: the frames are hardly read"
