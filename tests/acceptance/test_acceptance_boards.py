"""A board on loopback, through the whole service: searched, measured and raced over RPC, certified."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.boards import ServedBoard, write_boards
from tests.support.programs import product_relu
from tests.support.service import Service
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A service of its own, with the worker ``loop`` beside this machine's."""
    folder = tmp_path_factory.mktemp("boards")
    with ServedBoard(folder) as board:
        service = Service(folder / "service")
        service.environment["LOOPWRIGHT_RPC_DEVICES"] = str(write_boards(folder, board.row("loop", model="Loopback")))
        with service:
            yield service


@pytest.fixture(scope="module")
def worker(service: Service) -> dict[str, Any]:
    """The board's worker, once it has joined."""
    found = wait_for("the board", lambda: [each for each in service.items("/workers") if each["device"] == "loop"])
    return dict(found[0])


def test_a_job_for_the_target_of_a_board_runs_on_the_board(service: Service, worker: dict[str, Any]) -> None:
    job = service.tuned(product_relu(156), target=worker["target"], trials=16)
    assert job["target"] == worker["target"]
    assert job["device_class"] == worker["device_class"]
    [task] = job["tasks"]
    record = service.get(f"/records/{task['record_id']}")
    assert record["device_class"] == worker["device_class"]
    certificate = record["certificate"]
    assert certificate["max_rel_error"] < 1e-4
    assert task["best_us"] < task["baseline_us"]


def test_a_board_runs_without_walls_and_says_so(worker: dict[str, Any]) -> None:
    assert (worker["sandbox"], worker["device_model"].split()[0]) == ("none", "Loopback")


def test_auto_is_this_machine(service: Service, worker: dict[str, Any]) -> None:
    [auto] = [target for target in service.get("/targets")["items"] if target["is_auto"]]
    assert auto["target"] != worker["target"]
    assert worker["target"]["mtriple"].endswith("-linux-gnu")
