"""When a board is started anew: after some losses in a row, and not again and again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from workers.boards.config import Board
from workers.boards.reboot import AFTER_LOSSES, INTERVAL_SECONDS, Reboot


def rebooting(*command: str, clock: Callable[[], float] = lambda: 0.0) -> Reboot:
    return Reboot(Board("loop", ("192.0.2.7", 9090), False, "", '{"kind": "llvm"}', reboot=command), clock)


def noting(path: Path) -> tuple[str, ...]:
    return sys.executable, "-c", f"open({str(path)!r}, 'a').write('x')"


def test_it_is_started_anew_after_losses_in_a_row_and_then_not_for_a_while(tmp_path: Path) -> None:
    now = 0.0
    board = rebooting(*noting(tmp_path / "note"), clock=lambda: now)
    assert [board.lost() for _ in range(2 * AFTER_LOSSES)] == [False, False, True, False, False, False]
    now = INTERVAL_SECONDS
    assert board.lost()
    assert (tmp_path / "note").read_text() == "xx"


def test_a_board_that_answers_in_between_is_left_alone(tmp_path: Path) -> None:
    board = rebooting(*noting(tmp_path / "note"))
    for _ in range(AFTER_LOSSES):
        board.lost()
        board.found()
    assert not (tmp_path / "note").exists()


@pytest.mark.parametrize("command", [(), ("/no/such/command",), (sys.executable, "-c", "raise SystemExit(3)")])
def test_without_a_command_that_works_there_is_nothing_to_wait_for(command: tuple[str, ...]) -> None:
    board = rebooting(*command)
    assert [board.lost() for _ in range(AFTER_LOSSES)] == [False] * AFTER_LOSSES
