"""How long the API waits for the other end of a connection."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RequestPatience:
    """Seconds, unless a field says otherwise. Not tuned."""

    head: float = 10.0
    """From the connection, or from an answer, to the end of the next request's headers. Browsers connect in advance."""
    rest: float = 30.0
    """For a body that nobody reads, after the answer that refused it; and for the end of a connection."""
    reader: float = 60.0
    """For a caller that takes nothing of an answer, where the connection is full."""
    stall: float = 30.0
    """Between two pieces of a body."""
    body: float = 60.0
    """For a body as a whole, besides what its bytes earn it."""
    body_rate: float = 16 * 1024
    """Bytes of a body that earn it another second."""


DEFAULT = RequestPatience()
