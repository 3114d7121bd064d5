"""Which node drives a board."""

from __future__ import annotations

from typing import Any

from workers.boards.config import Board
from workers.ray.boards import Boards


class Actor:
    """Never answers what it is asked."""

    def __init__(self) -> None:
        self.describe = self

    def remote(self) -> object:
        return object()


def board(**fields: Any) -> Board:
    return Board("loop", ("192.0.2.7", 9090), False, "", '{"kind": "llvm"}', **fields)


def started(board: Board, *fleets: dict[str, str]) -> list[str]:
    """Return the nodes on which the board's actor was started, while the fleet is one after the other."""
    nodes: list[str] = []

    def start(node_id: str, name: str, _: Board) -> Actor:
        assert name.startswith(f"measurer-{node_id}-loop-")
        nodes.append(node_id)
        return Actor()

    boards = Boards([board], start)
    for fleet in fleets:
        assert boards.joined(fleet) == []
    return nodes


def test_any_node_drives_a_board_until_it_leaves() -> None:
    assert started(board(), {}, {"a": "one", "b": "two"}, {"b": "two"}) == ["a", "b"]


def test_a_board_of_a_host_is_driven_by_that_host_alone() -> None:
    assert started(board(host="two"), {"a": "one", "b": "two"}) == ["b"]
    assert started(board(host="three"), {"a": "one", "b": "two"}) == []
