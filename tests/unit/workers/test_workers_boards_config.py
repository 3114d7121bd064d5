"""The file of boards: what it may have, and what is said of what it may not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tuner.codec import decode, encode
from workers.boards.config import BOOT_SECONDS, BadBoards, Board, read_boards

PI = """
[[rpc_device]]
name = "pi5"
address = "192.0.2.7:9090"
target = { kind = "llvm", mtriple = "aarch64-linux-gnu", mcpu = "cortex-a76" }
model = "Raspberry Pi 5"
temperature = "/sys/class/thermal/thermal_zone0/temp"
reboot = ["ssh", "plug", "cycle", "3"]
"""


def read(folder: Path, text: str) -> tuple[Board, ...]:
    path = folder / "rpc-devices.toml"
    path.write_text(text)
    return read_boards(path)


def test_without_a_file_there_are_no_boards() -> None:
    assert read_boards(None) == ()


def test_a_board_is_read_and_crosses_a_process_boundary(tmp_path: Path) -> None:
    [board] = read(tmp_path, PI)
    assert (board.name, board.address, board.is_tracker, board.key) == ("pi5", ("192.0.2.7", 9090), False, "")
    assert (board.reboot, board.boot_seconds) == (("ssh", "plug", "cycle", "3"), BOOT_SECONDS)
    assert json.loads(board.target_json)["mcpu"] == "cortex-a76"
    assert decode(Board, json.loads(json.dumps(encode(board)))) == board


def test_a_tracker_and_an_address_of_ipv6(tmp_path: Path) -> None:
    [board] = read(tmp_path, PI.replace('address = "192.0.2.7:9090"', 'tracker = "[2001:db8::1]:9190"\nkey = "pi"'))
    assert (board.address, board.is_tracker, board.key) == (("2001:db8::1", 9190), True, "pi")


@pytest.mark.parametrize(
    ("before", "after", "reason"),
    [
        ("[[rpc_device]]", "[[boards]]", "[[rpc_device]]"),
        ("model =", "modle =", "'modle'"),
        ('"pi5"', '"Pi 5"', "'Pi 5'"),
        ('"pi5"', '"cpu"', "'cpu'"),
        ("192.0.2.7:9090", "192.0.2.7", "HOST:PORT"),
        ("address =", "tracker =", "key"),
        ('address = "192.0.2.7:9090"', "", "tracker"),
        ('kind = "llvm"', 'kind = "cuda"', "kind = 'llvm'"),
        ('["ssh", "plug", "cycle", "3"]', '"ssh plug"', "reboot is a list"),
        ('model = "Raspberry Pi 5"', "model = 5", "model is a text"),
        ('model = "Raspberry Pi 5"', "boot_seconds = 0", "boot_seconds"),
        ("[[rpc_device]]", "[[board]", "cannot be read"),
    ],
)
def test_a_bad_file_is_refused_with_what_to_change(tmp_path: Path, before: str, after: str, reason: str) -> None:
    with pytest.raises(BadBoards, match="rpc-devices") as refused:
        read(tmp_path, PI.replace(before, after))
    assert reason in str(refused.value)


def test_two_boards_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadBoards, match="'pi5'"):
        read(tmp_path, PI + PI)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadBoards, match="cannot be read"):
        read_boards(tmp_path / "none")
