"""The fleet with a board on loopback: it keeps the contract of the port, and the board comes and goes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.boards import ServedBoard
from tests.support.waiting import wait_for
from tuner.ports import Fleet
from tuner.testing.fleet_contract import FleetContract
from workers.boards.config import Board
from workers.ray import boards as joining
from workers.ray.cluster import Cluster, Offer
from workers.ray.fleet import RayFleet
from workers.walls.levels import Policy

TARGET = '{"kind": "llvm"}'


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBoard]:
    with ServedBoard(tmp_path_factory.mktemp("board")) as board:
        yield board


def boards_of(served: ServedBoard, name: str) -> Cluster:
    """Return a controller's view of the cluster, with a board."""
    return Cluster(Policy.PREFER, [Board(name, ("127.0.0.1", served.port), False, "", TARGET)])


def board_offer(cluster: Cluster) -> Offer | None:
    return next((offer for offer in cluster.reconcile() if offer.device_class.is_board), None)


@pytest.fixture(scope="module")
def on_board(cluster: Cluster, served: ServedBoard) -> Offer:
    controller = boards_of(served, "loop")
    return wait_for("the board's offer", lambda: board_offer(controller))


@pytest.mark.whole
class TestBoardFleet(FleetContract):
    @pytest.fixture
    def fleet(self, on_board: Offer) -> Fleet:
        return RayFleet(on_board.device_class.target_json, on_board.builders, {on_board.measurer: on_board.id})


def test_a_board_is_offered_beside_its_host_and_says_what_it_does(on_board: Offer, offer: Offer) -> None:
    assert (on_board.device, on_board.id) == ("loop", f"{offer.host}/loop")
    assert on_board.builders == offer.builders
    assert on_board.device_class.id != offer.device_class.id
    assert on_board.system.startswith("Linux ")


@pytest.mark.whole
def test_a_board_that_is_away_at_the_start_is_offered_once_it_is_there(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joining, "AWAY_SECONDS", 0.0)
    monkeypatch.setattr(joining, "LOOK_SECONDS", 0.0)
    served = ServedBoard(tmp_path)
    controller = boards_of(served, "late")
    assert board_offer(controller) is None
    served.start()
    try:
        wait_for("the board's offer", lambda: board_offer(controller))
    finally:
        served.stop()
    wait_for("the end of the offer", lambda: board_offer(controller) is None)
