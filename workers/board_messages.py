"""Requests to the children that drive boards, and their answers (see `workers.messages`)."""

from __future__ import annotations

from dataclasses import dataclass

from workers.messages import DetectedDevice


@dataclass(frozen=True, slots=True)
class Link:
    """How a child reaches a board: an address without a name to look up, and what `workers.boards.config.Board` has.

    ``session_seconds``: after so long the server ends the session, whatever runs in it.
    """

    host: str
    port: int
    is_tracker: bool
    key: str
    session_seconds: float


@dataclass(frozen=True, slots=True)
class DescribedBoard:
    """An operator's description of a board, for `workers.boards.describe`."""

    name: str
    target_json: str
    model: str | None
    tvm: str | None


@dataclass(frozen=True, slots=True)
class DetectedBoard:
    """A board that can be used; ``system`` is its kernel's name and release as far as it says."""

    device: DetectedDevice
    system: str


@dataclass(frozen=True, slots=True)
class Temperature:
    """In degrees Celsius; None: the board has not said."""

    celsius: float | None


@dataclass(frozen=True, slots=True)
class ReferenceResults:
    """The values of all arguments after a call of the unscheduled program, on one kind of inputs.

    ``values`` are the bytes of arrays in base64, None for an argument that the call has left as it was.
    """

    values: tuple[str | None, ...]
