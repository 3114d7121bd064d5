"""Length-prefixed JSON over pipes, between a parent, its warm child and the child's forks."""

from __future__ import annotations

import json
import math
import os
import select
import struct
from collections.abc import Sequence
from typing import Any

_HEADER = struct.Struct("!I")
MAX_FRAME = 256 * 2**20
"""Bytes. A longer frame means that the peer does not speak this protocol."""


MAX_VALUES = 500_000
"""In a frame of a fork: small ones take 30 times the memory of their text."""


class Closed(Exception):
    """The peer has exited."""


class Garbled(Closed):
    """The peer does not speak this protocol."""


def write_frame(fd: int, value: dict[str, Any]) -> None:
    """Blocks until the peer has room for it. Raises BrokenPipeError, and ValueError for a value that is too long."""
    data = json.dumps(value).encode()
    if len(data) > MAX_FRAME:
        raise ValueError(f"a value of {len(data)} bytes does not fit a frame of {MAX_FRAME}")
    view = memoryview(_HEADER.pack(len(data)) + data)
    while view:
        view = view[os.write(fd, view) :]


def readable(fds: Sequence[int], seconds: float) -> list[int]:
    """Return which of the descriptors have bytes to read, or have been closed by the peer, after ``seconds`` at most.

    Descriptors may have any number: `select.select` takes none from 1,024 on, which a server with many connections has.
    """
    poller = select.poll()
    for fd in fds:
        poller.register(fd, select.POLLIN)
    return [fd for fd, _ in poller.poll(math.ceil(seconds * 1000))]


class FrameReader:
    """Collects bytes from a file descriptor and hands out whole frames; never blocks for the rest of one.

    ``most_values``: in a frame of a peer that is not trusted, see `MAX_VALUES`.
    """

    def __init__(self, fd: int, most_values: int | None = None) -> None:
        self._fd = fd
        self._most_values = most_values
        self._buffer = bytearray()

    def feed(self) -> None:
        """Read available bytes (call when the descriptor is readable). Raises Closed at the end of the stream."""
        data = os.read(self._fd, 1 << 20)
        if not data:
            raise Closed
        self._buffer += data

    def pop(self) -> dict[str, Any] | None:
        """Return the next whole frame, or None. Raises Garbled for bytes that are no frame."""
        if len(self._buffer) < _HEADER.size:
            return None
        (length,) = _HEADER.unpack_from(self._buffer)
        if length > MAX_FRAME:
            raise Garbled
        end = _HEADER.size + length
        if len(self._buffer) < end:
            return None
        text = bytes(self._buffer[_HEADER.size : end])
        if self._most_values is not None and _values(text, self._most_values) > self._most_values:
            raise Garbled
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Garbled from error
        if not isinstance(value, dict):
            raise Garbled
        del self._buffer[:end]
        return value


def _values(text: bytes, most: int) -> int:
    """Return how many values JSON has, at least; or any number above ``most`` if it has more texts than that."""
    bare = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    quotes = bare.count(b'"')
    if quotes > 2 * most:
        return quotes
    outside = bare.split(b'"')[::2]
    return sum(part.count(b",") + part.count(b"[") + part.count(b"{") for part in outside)
