"""How many values JSON has and how deep they are nested, counted while its bytes arrive, before anything is parsed."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

from service.problems import ProblemError


@dataclass(frozen=True, slots=True)
class JsonLimits:
    """A parser needs memory and time for each value of a body, however short the body is. Not tuned."""

    values: int = 200_000
    """A lookup of 10,000 functions has 30,000, each trace of a space some hundreds."""
    names: int = 25_000
    """Names in objects, each of which may be one too many. A lookup of 10,000 functions has 20,000."""
    depth: int = 64
    """A trace with nested attributes has about 10."""


_MARKS = b"[]{},:"
_OTHERS = bytes(set(range(256)) - set(_MARKS))
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1, ord(","): 0, ord(":"): 0}


class JsonShape:
    """Counts the values of UTF-8 text that arrives in pieces. Invalid JSON is left to the parser, which refuses it."""

    def __init__(self, limits: JsonLimits) -> None:
        self._limits = limits
        self._values = 1
        self._names = 0
        self._depth = 0
        self._inside = 0
        """1 within a string, else 0."""
        self._rest = b""
        """The first half of an escape."""

    def feed(self, piece: bytes) -> None:
        """Count the next bytes. Raises ProblemError (422) as soon as there are too many values or they are too deep."""
        piece = self._rest + piece
        escapes = len(piece) - len(piece.rstrip(b"\\"))
        whole = len(piece) - escapes % 2
        self._rest, piece = piece[whole:], piece[:whole]
        # Strings have no quotes but escaped ones, so that every second part between quotes is a string.
        parts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        marks = b"".join(parts[self._inside :: 2]).translate(None, _OTHERS)
        self._inside = (self._inside + len(parts) - 1) % 2
        self._values += marks.count(b",") + marks.count(b"[") + marks.count(b"{")
        self._names += marks.count(b":")
        limits = self._limits
        if self._values > limits.values or self._names > limits.names:
            raise _too_complex(
                f"has more than {limits.values} values or {limits.names} names in objects. Send less in one request, "
                "such as fewer traces in the space"
            )
        depths = list(accumulate((_STEPS[mark] for mark in marks), initial=self._depth))
        self._depth = depths[-1]
        if max(depths) > limits.depth:
            raise _too_complex(f"is nested more than {limits.depth} levels deep. Send JSON with fewer levels")


def _too_complex(what: str) -> ProblemError:
    return ProblemError(422, "too-complex", f"The body {what}.")
