"""What a hostile fork writes to its warm child, in place of the answer: it changes nobody's answer but its own."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Iterator

import pytest

from tests.security import attacks
from workers.child.warm_child import ChildCrashed, ChildError, ChildMalformed, WarmChild
from workers.walls.levels import Level, obstacles

ATTACKS = attacks.__name__
MIB = 2**20


@pytest.fixture(scope="module", params=[Level.NAMESPACES, Level.LANDLOCK])
def child(request: pytest.FixtureRequest) -> Iterator[WarmChild]:
    if (reason := obstacles()[request.param]) is not None:
        pytest.skip(f"{request.param}: {reason}")
    made = WarmChild([ATTACKS], level=request.param)
    yield made
    made.close()


def framed(text: bytes) -> str:
    return base64.b64encode(struct.pack("!I", len(text)) + text).decode()


def said(*values: object) -> list[str]:
    return [framed(json.dumps(value).encode()) for value in values]


def speak(child: WarmChild, frames: list[str]) -> object:
    return child.call(f"{ATTACKS}:speak", {"frames": frames}, 30)


def is_honest(child: WarmChild) -> bool:
    """Return whether the next requests have their own answers."""
    return all(child.call(f"{ATTACKS}:attack", ["thread", []], 30) == "done" for _ in range(2))


def test_who_ends_its_own_request_answers_no_other(child: WarmChild) -> None:
    forged = [{"value": "forged"}, {"end": "done", "stderr": ""}, {"done": True}] * 9
    assert speak(child, said(*forged)) == "forged"
    assert is_honest(child)
    assert speak(child, said({"value": 1, "number": 10**6, "end": "done"}, {"done": True})) == 1
    assert is_honest(child)


@pytest.mark.parametrize(
    "frame",
    [
        framed(b"no JSON"),
        framed(b"[1]"),
        framed(b"7"),
        framed(b'{"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        framed(b'{"value": [' + b"[]," * (8 * MIB // 3) + b"0]}"),
        framed(b'{"value": ["' + b'","' * (8 * MIB // 3) + b'"]}'),
        base64.b64encode(struct.pack("!I", 2**31)).decode(),
    ],
    ids=["no JSON", "a list", "a number", "deep", "many lists", "many texts", "too long"],
)
def test_what_is_no_answer_fails_its_request_alone(child: WarmChild, frame: str) -> None:
    with pytest.raises(ChildMalformed):
        speak(child, [frame])
    assert is_honest(child)


@pytest.mark.parametrize(
    "frame",
    [{}, {"end": "crash"}, {"ready": 1}, {"clock": 7}, {"raised": {"a": 1}, "message": []}, {"number": None}],
    ids=str,
)
def test_what_only_others_may_say_is_left_out(child: WarmChild, frame: dict[str, object]) -> None:
    with pytest.raises(ChildError):
        speak(child, said(frame))
    assert is_honest(child)


def test_a_session_has_one_answer_to_a_question(child: WarmChild) -> None:
    with child.session(f"{ATTACKS}:speak_in_session", {"frames": said({"value": 1}, {"value": 2})}) as session:
        assert session.ask("first", 30) == 1
        with pytest.raises((ChildMalformed, ChildCrashed)):
            session.ask("second", 30)
    assert is_honest(child)
