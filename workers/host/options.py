"""The options of a worker host."""

from __future__ import annotations

import argparse
import math
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from loopwright.codegen import worker_labels
from loopwright.codegen.errors import InvalidLabel
from workers.walls.levels import Policy

_PORT = 6379
"""Ray's own."""


@dataclass(frozen=True, slots=True)
class HostOptions:
    """``address``: ``HOST:PORT`` of Ray's head. ``token_file`` None: what Ray's own variables say.

    ``name``: of this host. ``drain_seconds``: for what is being measured to end, once the host is told to leave.
    ``reconnect_seconds``: how long a head that was lost is waited for.
    """

    address: str
    token_file: Path | None
    name: str
    labels: dict[str, str]
    walls: Policy
    drain_seconds: float
    reconnect_seconds: float


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/worker",
        description="Join this machine to a fleet: it builds candidates, and measures them on its devices, until "
        "SIGTERM or Ctrl-C.",
    )
    parser.add_argument(
        "--address", required=True, type=_address, metavar="HOST[:PORT]", help=f"Ray's head (port {_PORT})"
    )
    parser.add_argument(
        "--token-file",
        type=Path,
        metavar="FILE",
        help="the token of the Ray cluster (default: RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH)",
    )
    parser.add_argument("--name", type=_name, help="what to call this host (default: its host name)")
    parser.add_argument(
        "--label",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="what jobs may ask for; give the option once for each label",
    )
    parser.add_argument(
        "--sandbox",
        type=Policy,
        choices=list(Policy),
        default=Policy.REQUIRE,
        help="whether to join if this machine supports no sandbox for what users send (default require). Which "
        "sandbox is used, the controller decides",
    )
    parser.add_argument(
        "--drain-seconds",
        type=_seconds,
        default=60.0,
        metavar="SECONDS",
        help="for what is being measured to end, when told to leave (default 60)",
    )
    parser.add_argument(
        "--reconnect-seconds",
        type=_seconds,
        default=600.0,
        metavar="SECONDS",
        help="to wait for a head that was lost, before giving up (default 600)",
    )
    return parser


def read(arguments: Sequence[str] | None = None) -> HostOptions:
    """Return the options; bad ones end the process with exit status 2."""
    program = parser()
    parsed = program.parse_args(arguments)
    try:
        labels = worker_labels.parse(parsed.label)
    except InvalidLabel as error:
        program.error(str(error))
    return HostOptions(
        address=parsed.address,
        token_file=parsed.token_file,
        name=parsed.name or platform.node(),
        labels=labels,
        walls=parsed.sandbox,
        drain_seconds=parsed.drain_seconds,
        reconnect_seconds=parsed.reconnect_seconds,
    )


def split(address: str) -> tuple[str, int]:
    """Return host and port of ``HOST:PORT``."""
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _address(text: str) -> str:
    match = re.fullmatch(r"(\[[0-9A-Fa-f:]+\]|[^\s:/\[\]]+)(?::(\d{1,5}))?", text)
    if match is None or not 0 < int(match[2] or _PORT) < 2**16:
        raise argparse.ArgumentTypeError(f"{text!a} is not HOST or HOST:PORT")
    return f"{match[1]}:{match[2] or _PORT}"


def _name(text: str) -> str:
    if re.fullmatch(worker_labels.WORD, text) is None:
        raise argparse.ArgumentTypeError(
            f"{text!a} is no name of a host: take up to 63 letters, digits, '-', '_' and '.'"
        )
    return text


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < math.inf:
        raise argparse.ArgumentTypeError(f"{text!a} is not a number of seconds")
    return value
