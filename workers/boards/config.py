"""The file of RPC devices, which this folder calls boards: TOML in which an operator lists them."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOOT_SECONDS = 120.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,39}")
_TAKEN = ("cpu", "cuda")
_TEXTS = ("address", "tracker", "key", "host", "model", "tvm", "temperature")
_FIELDS = ("name", "target", "reboot", "boot_seconds", *_TEXTS)


class BadBoards(ValueError):
    """The file of RPC devices cannot be used; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Board:
    """A device behind TVM's RPC server.

    Args:
        name: of the worker, unique in the file.
        address: host and port of the RPC server, or of the RPC tracker if ``is_tracker``.
        key: the tracker's queue, or the key that the server was started with ("": none).
        target_json: what code is generated for.
        host: name of the worker host that drives the board; None: any.
        model: model of the board; None: the model that the board reports.
        tvm: the version of TVM on the board, for a server that cannot say.
        temperature: a file on the board with thousandths of a degree Celsius, None if there is none.
        reboot: command on the worker host that reboots the board; empty if there is none.
        boot_seconds: from the reboot until the server answers.
    """

    name: str
    address: tuple[str, int]
    is_tracker: bool
    key: str
    target_json: str
    host: str | None = None
    model: str | None = None
    tvm: str | None = None
    temperature: str | None = None
    reboot: tuple[str, ...] = ()
    boot_seconds: float = BOOT_SECONDS


def read_boards(path: Path | None) -> tuple[Board, ...]:
    """Return the boards of a file, none without a file. Raises BadBoards."""
    if path is None:
        return ()
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadBoards(f"the file of RPC devices {path} cannot be read: {error}") from error
    rows = tables.get("rpc_device")
    if set(tables) != {"rpc_device"} or not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BadBoards(f"{path}: write a table [[rpc_device]] for each device, and nothing else")
    boards = tuple(_board(row, f"{path}, device {number}") for number, row in enumerate(rows, 1))
    names = [board.name for board in boards]
    if twice := {name for name in names if names.count(name) > 1}:
        raise BadBoards(f"{path}: two devices have the name {min(twice)!r}")
    return boards


def _board(row: Mapping[str, Any], place: str) -> Board:
    if unknown := set(row) - set(_FIELDS):
        raise BadBoards(f"{place}: {min(unknown)!r} is not known; a device may have {', '.join(sorted(_FIELDS))}")
    name = row.get("name")
    if not isinstance(name, str) or not _NAME.fullmatch(name) or name in _TAKEN:
        raise BadBoards(f"{place}: its name is {name!r}; use lower-case letters, digits, '.', '_' and '-'")
    for field in _TEXTS:
        if field in row and not (isinstance(row[field], str) and row[field]):
            raise BadBoards(f"{place}: {field} is a text, not {row[field]!r}")
    if ("address" in row) == ("tracker" in row):
        raise BadBoards(f"{place}: give either the address of its RPC server or that of a tracker")
    if "tracker" in row and "key" not in row:
        raise BadBoards(f"{place}: give the key under which the tracker knows the device")
    target = row.get("target")
    if not isinstance(target, dict) or target.get("kind") != "llvm":
        raise BadBoards(f"{place}: its target is a table with kind = 'llvm' and what else TVM takes, not {target!r}")
    reboot, seconds = row.get("reboot", []), row.get("boot_seconds", BOOT_SECONDS)
    if not isinstance(reboot, list) or not all(isinstance(word, str) for word in reboot):
        raise BadBoards(f"{place}: reboot is a list with a command and its arguments, not {reboot!r}")
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or seconds <= 0:
        raise BadBoards(f"{place}: boot_seconds is a number over 0, not {seconds!r}")
    return Board(
        name=name,
        address=_address(row.get("address") or row["tracker"], place),
        is_tracker="tracker" in row,
        key=row.get("key", ""),
        target_json=json.dumps(target, sort_keys=True),
        reboot=tuple(reboot),
        boot_seconds=float(seconds),
        **{field: row.get(field) for field in ("host", "model", "tvm", "temperature")},
    )


def _address(text: str, place: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 2**16:
        raise BadBoards(f"{place}: {text!r} is no address; write HOST:PORT")
    return host.strip("[]"), int(port)
