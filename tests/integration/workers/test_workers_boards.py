"""A board on loopback behind its measurer: what it says it is, what it measures, and what becomes of its faults."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from loopwright.codegen.kinds import FailureKind
from loopwright.codegen.versions import TVM_VERSION
from tests.integration.workers.children import LEVEL
from tests.support import workloads
from tests.support.boards import ServedBoard
from tests.support.service import free_port
from tests.support.waiting import wait_for
from tuner.codec import decode, encode
from tuner.ports import Raced
from tuner.types import DeviceClass, Failure, Workload
from workers.board_messages import DescribedBoard
from workers.boards.config import Board
from workers.child import child_calls
from workers.child.warm_child import WarmChild
from workers.messages import (
    Artifact,
    BuildRequest,
    BuiltRace,
    Candidate,
    DeviceSpeed,
    MeasureAnswer,
    MeasureBatch,
    RaceAnswer,
    Samples,
)
from workers.ray import board_measurer as measurers
from workers.ray.board_measurer import BoardMeasurer, Limits, link_to
from workers.walls.levels import Policy

HOST = '{"kind": "llvm"}'
LIMITS = Limits(measure=60.0, race=120.0, answer=120.0)
"""No passing test comes near them."""
DESCRIBE_SECONDS = 60.0
CALLER = "test"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedBoard]:
    with ServedBoard(tmp_path_factory.mktemp("board")) as board:
        yield board


@pytest.fixture(scope="module")
def child() -> Iterator[WarmChild]:
    """A child that may connect to boards."""
    made = WarmChild([child_calls.DESCRIBE_BOARD.module], level=LEVEL, network=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def measurer(served: ServedBoard) -> Iterator[BoardMeasurer]:
    made = BoardMeasurer(encode(board(served)), Policy.PREFER, LIMITS)
    made.describe()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds write files into the current folder."""
    monkeypatch.chdir(tmp_path)


def board(served: ServedBoard, **fields: Any) -> Board:
    return replace(Board("loop", ("127.0.0.1", served.port), False, "", HOST), **fields)


def described(child: WarmChild, board: Board) -> DeviceClass | str:
    """Return the class of a board, or why it cannot be used."""
    asked = DescribedBoard(board.name, board.target_json, board.model, board.tvm)
    link = link_to(board, DESCRIBE_SECONDS)
    found = measurers.describe(child, link, asked, seconds=DESCRIBE_SECONDS)
    return found.message if isinstance(found, Failure) else found.device.device_class


@functools.cache
def built(workload: Workload, exact_math: bool = False) -> Artifact:
    from workers.device import build

    return build.artifact_of(BuildRequest(workload.module_json, None, HOST, exact_math))


def measured(measurer: BoardMeasurer, *programs: Workload) -> list[Samples | Failure]:
    candidates = tuple(Candidate(str(number), built(each)) for number, each in enumerate(programs))
    answers = measurer.measure(encode(MeasureBatch(programs[0].args, candidates)), CALLER)
    return [each.result for each in decode(list[MeasureAnswer], answers)]


def uploads(served: ServedBoard) -> set[Path]:
    """Return the programs on the board. A server that was killed, by another test, leaves its own."""
    return set(served.folder.rglob("loopwright-*.so"))


def raced(measurer: BoardMeasurer, *contenders: Artifact) -> RaceAnswer | Failure:
    product = workloads.product()
    race = BuiltRace(
        product.args, (False, False, True), built(product, exact_math=True), (built(product), *contenders), 3
    )
    answer: RaceAnswer | Failure = decode(RaceAnswer | Failure, measurer.race(encode(race), CALLER))
    return answer


def test_a_board_says_what_it_is(child: WarmChild, served: ServedBoard) -> None:
    found = described(child, board(served, model="Testboard", tvm="0.26.0"))  # the server knows better
    assert isinstance(found, DeviceClass)
    assert found.is_board
    assert found.model.startswith("Testboard ")
    assert (found.threads, found.cores) == (1, len(os.sched_getaffinity(0)))
    target = json.loads(found.target_json)
    assert (target["num-cores"], target["mtriple"]) == (1, f"{os.uname().machine}-linux-gnu")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        pytest.param({"target_json": '{"kind": "llvm", "num-cores": 3}'}, "TVM_NUM_THREADS=3", marks=pytest.mark.whole),
        ({"target_json": '{"kind": "llvm", "mtriple": "riscv64-linux-gnu"}'}, "mtriple"),
        ({"target_json": '{"kind": "llvm", "mcpu": "no-such-cpu"}'}, "no-such-cpu"),
        ({"address": ("127.0.0.1", 9)}, "does not answer"),
        ({"key": "another"}, "does not answer"),
    ],
    ids=["threads", "architecture", "processor", "away", "key"],
)
def test_a_board_that_cannot_be_used_is_refused_with_a_reason(
    child: WarmChild, served: ServedBoard, fields: dict[str, Any], reason: str
) -> None:
    found = described(child, board(served, **fields))
    assert isinstance(found, str)
    assert reason in found


@pytest.mark.whole
def test_a_server_of_tvm_alone_needs_the_hosts_version_from_the_operator(child: WarmChild, tmp_path: Path) -> None:
    server = tmp_path / "stock.py"
    server.write_text(
        "import sys\nfrom tvm.rpc.server import PopenRPCServerState\n"
        "PopenRPCServerState('127.0.0.1', int(sys.argv[4]), int(sys.argv[4]) + 1).thread.join()\n"
    )
    triple = f'{{"kind": "llvm", "mtriple": "{os.uname().machine}-linux-gnu"}}'
    with ServedBoard(tmp_path, server=server) as stock:
        unsaid = described(child, board(stock, target_json=triple))
        other = described(child, board(stock, target_json=triple, tvm="0.26.0"))
        said = described(child, board(stock, target_json=triple, tvm=TVM_VERSION, model="Stock"))
    assert isinstance(unsaid, str)
    assert f"tvm = '{TVM_VERSION}'" in unsaid
    assert isinstance(other, str)
    assert f"apache-tvm=={TVM_VERSION}" in other
    assert isinstance(said, DeviceClass)
    assert said.model.startswith("Stock ")


@pytest.mark.whole
def test_a_board_behind_a_tracker(child: WarmChild, tmp_path: Path) -> None:
    port = free_port()
    ports = ["--port", str(port), "--port-end", str(port + 1)]
    command = [sys.executable, "-m", "tvm.exec.rpc_tracker", "--host", "127.0.0.1", *ports]
    tracker = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        with ServedBoard(tmp_path, "--tracker", f"127.0.0.1:{port}", "--key", "loop") as tracked:
            found = described(child, board(tracked, address=("127.0.0.1", port), is_tracker=True, key="loop"))
    finally:
        parent = psutil.Process(tracker.pid)
        for process in (*parent.children(recursive=True), parent):
            process.kill()
        tracker.wait()
    assert isinstance(found, DeviceClass)


def test_programs_are_measured_and_leave_no_file_behind(served: ServedBoard, measurer: BoardMeasurer) -> None:
    before = uploads(served)
    for result in measured(measurer, workloads.product(), workloads.product()):
        assert isinstance(result, Samples)
        assert all(0 < seconds < 1 for seconds in result.run_secs)
    # The server removes its folder after the session's end.
    wait_for("the uploaded programs to go", lambda: not uploads(served) - before)


@pytest.mark.whole
def test_a_race_compares_results_with_those_of_the_host(measurer: BoardMeasurer) -> None:
    result = raced(measurer, built(workloads.product()), built(workloads.elementwise()))
    assert isinstance(result, RaceAnswer)
    baseline, right, wrong = result.contenders
    assert isinstance(baseline, Raced)
    assert isinstance(right, Raced)
    assert len(right.run_secs) == len(baseline.run_secs)
    assert right.max_rel_error < 1e-4
    assert isinstance(wrong, Failure)
    assert wrong.kind is FailureKind.WRONG_RESULT
    assert (result.system or "").startswith("Linux ")


@pytest.mark.whole
def test_reference_kernels_run_on_the_board(measurer: BoardMeasurer) -> None:
    speed = decode(DeviceSpeed, measurer.check(HOST))
    assert speed.flops > 1e6


@pytest.mark.whole
def test_a_program_that_crashes_the_server_is_at_fault_and_the_next_is_measured(
    served: ServedBoard, measurer: BoardMeasurer
) -> None:
    before = uploads(served)
    crash, after = measured(measurer, workloads.crash(), workloads.product())
    assert isinstance(crash, Failure)
    assert crash.kind is FailureKind.CRASH
    assert "connection" in crash.message
    assert isinstance(after, Samples)
    wait_for("the crashed program to go", lambda: not uploads(served) - before)


@pytest.mark.whole
def test_a_program_that_hangs_meets_its_deadline_and_the_next_is_measured(
    served: ServedBoard, measurer: BoardMeasurer
) -> None:
    impatient = BoardMeasurer(encode(board(served)), Policy.PREFER, replace(LIMITS, measure=2.0))
    try:
        [hang] = measured(impatient, workloads.hang())
    finally:
        impatient.close()
    assert isinstance(hang, Failure)
    assert hang.kind is FailureKind.TIMEOUT
    [after] = measured(measurer, workloads.product())
    assert isinstance(after, Samples)


@pytest.mark.whole
def test_a_race_whose_server_is_killed_is_run_again(served: ServedBoard, measurer: BoardMeasurer) -> None:
    before = served.starts
    results: list[RaceAnswer | Failure] = []
    racing = threading.Thread(target=lambda: results.append(raced(measurer, built(workloads.product()))))
    racing.start()
    wait_for("a session of the race", served.sessions)
    served.kill()
    racing.join()
    assert served.starts == before + 1
    assert isinstance(results[0], RaceAnswer)


def test_a_board_whose_name_is_unknown_is_refused(served: ServedBoard) -> None:
    unknown = board(served, address=("no-such-host.invalid", 9))
    measurer = BoardMeasurer(encode(unknown), Policy.PREFER, LIMITS)
    try:
        found = decode(Failure, measurer.describe())
    finally:
        measurer.close()
    assert isinstance(found, Failure)
    assert found.message.startswith("no-such-host.invalid: ")


@pytest.mark.whole
def test_a_board_that_stays_away_is_lost_and_is_started_anew_once(tmp_path: Path, served: ServedBoard) -> None:
    """The third loss starts it anew: the command notes it, and the board stays away all the same."""
    note = tmp_path / "note"
    command = (sys.executable, "-c", f"open({str(note)!r}, 'a').write('once')")
    away = board(served, address=("127.0.0.1", 9), reboot=command, boot_seconds=0.1)
    measurer = BoardMeasurer(encode(away), Policy.PREFER, replace(LIMITS, answer=0.1))
    try:
        results = measured(measurer, *[workloads.product()] * 7)
    finally:
        measurer.close()
    assert {result.kind for result in results if isinstance(result, Failure)} == {FailureKind.DEVICE_LOST}
    assert note.read_text() == "once"
