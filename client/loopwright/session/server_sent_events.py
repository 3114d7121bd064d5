"""The event-stream format (HTML Living Standard, section 9.2): bytes to events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One dispatched event; ``id`` is None where the stream gave none."""

    id: str | None
    type: str
    data: str


def read_events(chunks: Iterable[bytes]) -> Iterator[ServerSentEvent]:
    """Events with data, in order. An event cut off by the end of the stream is dropped, as the standard asks."""
    identifier: str | None = None
    kind = ""
    data: list[str] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield ServerSentEvent(identifier, kind or "message", "\n".join(data))
            kind, data = "", []
            continue
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            data.append(value)
        elif field == "event":
            kind = value
        elif field == "id":
            identifier = value


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines ended by LF or CR LF. Split as bytes: str.splitlines would also break at characters inside of JSON."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.removesuffix(b"\r").decode("utf-8", errors="replace")
