"""An aarch64 board in emulation, through the whole service: cross-compiled, uploaded, measured, certified."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import loopwright
from tests.support.boards import ServedBoard, write_boards
from tests.support.emulated_board import aarch64_board
from tests.support.programs import product
from tests.support.service import Service
from tests.support.waiting import wait_for

pytestmark = pytest.mark.whole
TARGET = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "mcpu": "cortex-a72"}


PRODUCT = product(160, 32, 32)
RUN = """
import sys
import numpy, tvm, tvm_ffi
a, b = (numpy.random.default_rng(n).random(shape, dtype="float32") for n, shape in ((1, (160, 32)), (2, (32, 32))))
arguments = [tvm.runtime.tensor(array) for array in (a, b, numpy.zeros((160, 32), "float32"))]
tvm_ffi.load_module(sys.argv[1])["main"](*arguments)
numpy.testing.assert_allclose(arguments[2].numpy(), (a * a) @ b, rtol=1e-4)
"""


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBoard]:
    with aarch64_board(tmp_path_factory.mktemp("board")) as made:
        yield made


@pytest.fixture(scope="module")
def service(board: ServedBoard, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("emulated")
    service = Service(folder / "service")
    boards = write_boards(folder, board.row("arm", model="emulated", target=TARGET))
    service.environment["LOOPWRIGHT_RPC_DEVICES"] = str(boards)
    with service:
        yield service


@pytest.fixture(scope="module")
def worker(service: Service) -> dict[str, Any]:
    found = wait_for("the board", lambda: [each for each in service.items("/workers") if each["device"] == "arm"])
    return dict(found[0])


def test_a_job_for_aarch64_is_certified_and_its_library_runs_on_the_board(
    service: Service, board: ServedBoard, worker: dict[str, Any], tmp_path: Path
) -> None:
    # The board's target has more fields than were asked for: what TVM derives, and the number of threads.
    assert worker["target"].items() >= TARGET.items()
    job = service.tuned(PRODUCT, target=TARGET, trials=8)
    assert job["device_class"] == worker["device_class"]
    [task] = job["tasks"]
    record = service.get(f"/records/{task['record_id']}")
    assert record["certificate"]["max_rel_error"] < 1e-4
    assert task["failures"] == {}
    with loopwright.Client(service.url, token=service.token) as client:
        built = client.compile(PRODUCT, worker["target"])
        assert client.last_report is not None
        # In an emulator the unscheduled program may be the fastest.
        assert [function.outcome for function in client.last_report.functions] in (["tuned"], ["baseline"])
    library = tmp_path / "product.so"
    loopwright.export_library(built, library, worker["target"])
    board.run(RUN, str(library))
