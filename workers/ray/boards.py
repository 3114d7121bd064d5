"""The boards that can be used now. Each has an actor on a worker host, which reports the board's properties."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.exceptions import RayError

from tuner.codec import encode
from tuner.types import Failure
from workers.board_messages import DetectedBoard
from workers.boards.config import Board
from workers.ray import actor_calls
from workers.ray.actor_calls import Pending

AWAY_SECONDS = 10.0
"""Between two questions to a board that cannot be used."""
LOOK_SECONDS = 30.0
"""Between two questions to a board that can."""

log = logging.getLogger("loopwright.rpc_devices")

Start = Callable[[str, str, Board], Any]
"""Starts the actor of a board on a node, or finds it: of the node's id, the actor's name and the board."""


@dataclass(frozen=True, slots=True)
class JoinedBoard:
    """A board that answers: the node that drives it, and the name of its actor there."""

    node_id: str
    found: DetectedBoard
    measurer: str


class Boards:
    """The boards of a cluster. Nothing here waits for a board."""

    def __init__(self, boards: Iterable[Board], start: Start) -> None:
        self._boards = [_Driven(board, start) for board in boards]

    def joined(self, nodes: Mapping[str, str]) -> list[JoinedBoard]:
        """Return the boards that answered when they were last asked; ``nodes`` are host names by node id."""
        return [found for board in self._boards if (found := board.look(nodes)) is not None]


class _Driven:
    """A board and the node that drives it, the first of those that may."""

    def __init__(self, board: Board, start: Start) -> None:
        self._board = board
        self._start = start
        self._node_id: str | None = None
        self._actor: Any = None
        self._asked: Pending[DetectedBoard | Failure] | None = None
        self._next_look = 0.0
        self._complaint: str | None = None
        self._joined: JoinedBoard | None = None
        digest = hashlib.sha256(json.dumps(encode(board), sort_keys=True).encode()).hexdigest()[:8]
        # Actors outlive controllers: one of an earlier version of the file is another actor.
        self._suffix = f"{board.name}-{digest}"

    def look(self, nodes: Mapping[str, str]) -> JoinedBoard | None:
        """Return the board if it can be used; take in its answer, and ask it again if it is time."""
        if self._node_id not in nodes:
            self._move(nodes)
        if self._node_id is None:
            return None
        if self._asked is not None and ray.wait([self._asked.reference], timeout=0)[0]:
            self._take_in(self._asked)
        if self._asked is None and time.monotonic() >= self._next_look:
            self._asked = actor_calls.DESCRIBE_BOARD(self._actor)
        return self._joined

    def _move(self, nodes: Mapping[str, str]) -> None:
        allowed = [node_id for node_id, host in nodes.items() if self._board.host in (None, host)]
        self._node_id = min(allowed, default=None)
        self._asked = self._joined = None
        self._next_look = 0.0
        if self._node_id is not None:
            self._actor = self._start(self._node_id, self._name(self._node_id), self._board)

    def _name(self, node_id: str) -> str:
        return f"measurer-{node_id[:12]}-{self._suffix}"

    def _take_in(self, call: Pending[DetectedBoard | Failure]) -> None:
        self._asked = None
        assert self._node_id is not None
        try:
            found = call.result()
            if not isinstance(found, Failure):
                self._joined = JoinedBoard(self._node_id, found, self._name(self._node_id))
                self._complain(None)
                self._next_look = time.monotonic() + LOOK_SECONDS
                return
            self._complain(found.message)
        except RayError as error:
            self._complain(str(error))
        self._joined = None
        self._next_look = time.monotonic() + AWAY_SECONDS

    def _complain(self, complaint: str | None) -> None:
        if complaint != self._complaint and complaint is not None:
            log.warning("RPC device %s cannot be used: %s", self._board.name, complaint)
        elif complaint != self._complaint:
            log.warning("RPC device %s is back", self._board.name)
        self._complaint = complaint
