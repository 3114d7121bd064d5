"""Frames over real pipes: whole, in pieces, too long, and from a peer that has gone."""

from __future__ import annotations

import os
import struct
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from workers.child import frames
from workers.child.frames import Closed, FrameReader, Garbled, write_frame

PARTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)
FRAMES = st.dictionaries(st.text(), PARTS)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    out, into = os.pipe()
    yield out, into
    for fd in (out, into):
        try:
            os.close(fd)
        except OSError:
            continue


def read(reader: FrameReader) -> Any:
    while (frame := reader.pop()) is None:
        reader.feed()
    return frame


@settings(max_examples=25)
@given(values=st.lists(FRAMES, min_size=1, max_size=5))
def test_values_come_back_as_they_went(values: list[Any]) -> None:
    out, into = os.pipe()
    try:
        for value in values:
            write_frame(into, value)
        reader = FrameReader(out)
        assert [read(reader) for _ in values] == values
    finally:
        os.close(out)
        os.close(into)


@given(data=st.data())
def test_a_frame_may_come_in_any_pieces(data: st.DataObject) -> None:
    out, into = os.pipe()
    try:
        write_frame(into, {"text": "grüße", "list": list(range(30))})
        whole = os.read(out, 1 << 16)
        cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
        reader = FrameReader(out)
        for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
            assert reader.pop() is None
            os.write(into, whole[begin:end])
            reader.feed()
        assert reader.pop() == {"text": "grüße", "list": list(range(30))}
        assert reader.pop() is None
    finally:
        os.close(out)
        os.close(into)


def test_a_frame_longer_than_the_pipe_passes(pipe: tuple[int, int]) -> None:
    out, into = pipe
    writer = threading.Thread(target=write_frame, args=(into, {"text": "x" * 3_000_000}))
    writer.start()
    assert read(FrameReader(out)) == {"text": "x" * 3_000_000}
    writer.join()


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("!I", frames.MAX_FRAME + 1) + b"rest",
        *(struct.pack("!I", len(data)) + data for data in (b"{", b"\xff", b"[]", b"1", b"[" * 60_000)),
    ],
    ids=["too long", "cut off", "no text", "a list", "a number", "too deep"],
)
def test_what_is_no_frame_is_garbled(pipe: tuple[int, int], garbage: bytes) -> None:
    out, into = pipe
    os.write(into, garbage)
    reader = FrameReader(out)
    reader.feed()
    with pytest.raises(Garbled):
        reader.pop()


def test_a_value_too_long_for_a_frame_is_refused(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "MAX_FRAME", 100)
    with pytest.raises(ValueError, match="does not fit"):
        write_frame(pipe[1], {"text": "x" * 101})


def test_a_peer_that_has_gone(pipe: tuple[int, int]) -> None:
    out, into = pipe
    os.write(into, struct.pack("!I", 100) + b"half")
    os.close(into)
    reader = FrameReader(out)
    reader.feed()
    assert reader.pop() is None
    with pytest.raises(Closed):
        reader.feed()
    os.close(out)


def test_writing_to_a_peer_that_has_gone(pipe: tuple[int, int]) -> None:
    out, into = pipe
    os.close(out)
    with pytest.raises(BrokenPipeError):
        write_frame(into, {"anyone": 1})
