"""The properties of a board, from its RPC server and its operator. Runs in a fork of a warm child."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tvm.target import Target, codegen

from loopwright.codegen.kinds import FailureKind, Stage
from loopwright.codegen.program import linking
from loopwright.codegen.target import canonical_target, target_from
from loopwright.codegen.versions import TVM_VERSION
from tuner.types import OVER_RPC, DeviceClass, Failure
from workers.board_messages import DescribedBoard, DetectedBoard, Link, Temperature
from workers.boards.session import BoardSession, LostBoard, connected
from workers.entry import entry
from workers.error_text import for_users
from workers.messages import DetectedDevice

_DESCRIBE = "loopwright.rpc_device.describe"
"""A function that `deploy/rpc-device/serve.py` adds to TVM's server."""
_MOST_TEXT = 120
_MOST_FEATURES = 500
_MILLIDEGREES = 1000.0


class BoardRefused(Exception):
    """The board cannot be used as it is; the message says what to change."""


@dataclass(frozen=True, slots=True)
class Description:
    """The properties that a board reports; None for each that its server cannot report."""

    tvm: str | None = None
    machine: str | None = None
    cpu: str | None = None
    features: tuple[str, ...] = ()
    cores: int | None = None
    system: str = "unknown system"


@entry
def describe(link: Link, board: DescribedBoard) -> Iterator[DetectedBoard | Failure]:
    """Yield what the board is, or why it cannot be used."""
    result: DetectedBoard | Failure
    try:
        with connected(link) as session:
            description = _description(session)
            found = device_class(board, description, session.threads())
            result = DetectedBoard(DetectedDevice(board.name, found), description.system)
    except (LostBoard, BoardRefused) as error:
        result = Failure(Stage.RUN, FailureKind.DEVICE_LOST, str(error))
    except Exception as error:  # TVM raises RPCError, RuntimeError and others while it asks the board
        result = Failure(Stage.RUN, FailureKind.DEVICE_LOST, for_users(str(error)))
    yield result


@entry
def temperature(link: Link, path: str) -> Iterator[Temperature]:
    """Yield the temperature from a file on the board with thousandths of a degree."""
    with connected(link) as session:
        text = bytes(session.rpc.download(path)).rstrip(b"\0").decode(errors="replace").strip()
    digits = text.removeprefix("-")
    yield Temperature(int(text) / _MILLIDEGREES if digits.isdigit() else None)


def device_class(board: DescribedBoard, description: Description, threads: int) -> DeviceClass:
    """Return the device class of a board; ``threads`` is the size of its runtime's pool. Raises Refused."""
    version = description.tvm or board.tvm
    if version is None:
        raise BoardRefused(
            "its server does not say which version of TVM it has; start deploy/rpc-device/serve.py on it, or give the "
            f"version as tvm = '{TVM_VERSION}' in the file of RPC devices"
        )
    if version != TVM_VERSION:
        raise BoardRefused(
            f"it has TVM {version}, and this host {TVM_VERSION}; install apache-tvm=={TVM_VERSION} on it"
        )
    target = _target(board, description, threads)
    features = description.features or tuple(sorted(map(str, codegen.llvm_get_cpu_features(target))))
    digest = hashlib.sha256(" ".join(features).encode()).hexdigest()[:8]
    model = board.model or description.cpu or str(target.attrs.get("mcpu", linking.machine(target)))
    return DeviceClass(
        target_json=canonical_target(target),
        model=f"{model} {digest}",
        features=features,
        cores=description.cores or threads,
        threads=threads,
        runtime=f"tvm {version}, llvm {codegen.llvm_version_major()}{OVER_RPC}",
    )


def _target(board: DescribedBoard, description: Description, threads: int) -> Target:
    """Return the board's target, with what its operator left out. Raises Refused."""
    fields = json.loads(board.target_json)
    if "mtriple" not in fields:
        if description.machine is None:
            raise BoardRefused("its target has no mtriple; give one, such as aarch64-linux-gnu")
        fields["mtriple"] = f"{description.machine}-linux-gnu"
    if fields.setdefault("num-cores", threads) != threads:
        raise BoardRefused(
            f"its target has num-cores {fields['num-cores']}, and its server runs {threads} threads; start the server "
            f"with TVM_NUM_THREADS={fields['num-cores']}"
        )
    try:
        target = target_from(fields)
    except ValueError as error:
        raise BoardRefused(str(error)) from error
    if description.machine is not None and linking.machine(target) != description.machine:
        raise BoardRefused(
            f"its target is for {linking.machine(target)}, and it is {description.machine}; change its mtriple"
        )
    if linking.linker(target) is None:
        raise BoardRefused(f"this host has no linker for {linking.machine(target)}; {linking.linker_packages(target)}")
    return target


def _description(session: BoardSession) -> Description:
    """Ask the board; what it answers is checked, since programs of users run on it."""
    try:
        ask = session.rpc.get_function(_DESCRIBE)
    except AttributeError:
        return Description()
    fields: dict[str, Any] = json.loads(str(ask()))
    texts = {name: str(fields[name])[:_MOST_TEXT] for name in ("tvm", "machine", "cpu", "system")}
    features = tuple(str(feature)[:_MOST_TEXT] for feature in fields["features"][:_MOST_FEATURES])
    return Description(**texts, features=features, cores=int(fields["cores"]))
