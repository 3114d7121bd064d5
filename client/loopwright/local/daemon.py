"""Starts and stops the service of this machine: one process of this user, in the background, on one data directory."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from loopwright.errors import LocalServiceFailed
from loopwright.local import parts
from loopwright.local.state import LocalState, last, running
from loopwright.session import config
from loopwright.session.config import Endpoint

LOG = "service.log"
"""In the data directory, which its user alone may enter. The logs of API and controller lie beside it."""
_PORT = 8080
_HOST = "127.0.0.1"
_STOP_SECONDS = 120.0
"""The service gives its parts 20 s each; then it kills them. Not tuned."""
_LOOK_SECONDS = 0.1
_ANSWER_SECONDS = 5.0

Say = Callable[[str], None]


def ensure(folder: Path, say: Say, port: int | None = None) -> LocalState:
    """Start the service on a data directory unless it runs, and return it when it is ready.

    Args:
        folder: the data directory.
        say: told each step of a start.
        port: to listen on; by default that of ``LOOPWRIGHT_PORT``, else that of the last start, 8080 before the first,
            or another one if that one is taken.

    Raises:
        LocalServiceFailed: it is not installed, or did not start; the message says what to do.
    """
    process = _spawn(folder, port) if running(folder) is None else None
    told = 0
    while True:
        state = running(folder)
        if state is not None and state.is_ready and (process is None or state.pid == process.pid):
            return state
        told = _tell(folder / LOG, told, say)
        has_ended = state is None if process is None else process.poll() is not None
        if has_ended:
            raise LocalServiceFailed(_reason(folder))
        time.sleep(_LOOK_SECONDS)


def answers(endpoint: Endpoint | None) -> bool:
    """Return whether a service answers there."""
    if endpoint is None:
        return False
    try:
        return httpx.get(f"{endpoint.url}/healthz", timeout=_ANSWER_SECONDS).is_success
    except httpx.HTTPError:
        return False


def stop(folder: Path) -> bool:
    """Stop the service of a data directory, and return when it has ended, or False if none runs.

    Raises:
        LocalServiceFailed: it did not end within two minutes.
    """
    state = running(folder)
    if state is None or not state.pid:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(state.pid, signal.SIGTERM)
    until = time.monotonic() + _STOP_SECONDS
    while (left := running(folder)) is not None and left.pid == state.pid:
        if time.monotonic() > until:
            raise LocalServiceFailed(
                f"the service (process {state.pid}) did not end within {_STOP_SECONDS:.0f} s; see {folder / LOG}"
            )
        time.sleep(_LOOK_SECONDS)
    return True


def _spawn(folder: Path, port: int | None) -> subprocess.Popen[bytes]:
    command = parts.command("service")
    if command is None:
        raise LocalServiceFailed(
            "no service runs on this machine, and this installation is the client alone; install the service beside it "
            "with: pip install 'loopwright[local]', or name a service with --url or 'loopwright login'"
        )
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    chosen = port or config.service_port() or _free_port(folder)
    # Each start has a log of its own; an address that signs a browser in stands in it.
    with os.fdopen(os.open(folder / LOG, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as log:
        return subprocess.Popen(
            [*command, "--data-dir", str(folder), "--port", str(chosen)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            # Neither Ctrl-C nor the end of the terminal is for the service.
            start_new_session=True,
        )


def _free_port(folder: Path) -> int:
    before = last(folder)
    for port in (before and urlsplit(before.url).port, _PORT, 0):
        if port is not None:
            with contextlib.suppress(OSError), socket.create_server((_HOST, port)) as probe:
                found: int = probe.getsockname()[1]
                return found
    raise LocalServiceFailed(f"no port of {_HOST} is free")


def _tell(log: Path, told: int, say: Say) -> int:
    """Say what was added to the log for people since ``told`` bytes, and return how many there are."""
    with contextlib.suppress(FileNotFoundError), log.open("rb") as file:
        file.seek(told)
        lines = file.read().splitlines(keepends=True)
        for line in lines:
            if line.startswith(b"loopwright: ") and line.endswith(b"\n"):
                say(line.decode(errors="replace").strip().removeprefix("loopwright: "))
        told += sum(len(line) for line in lines if line.endswith(b"\n"))
    return told


def _reason(folder: Path) -> str:
    lines = (folder / LOG).read_text(errors="replace").strip().splitlines()
    said = [line.removeprefix("loopwright: ") for line in lines if line.startswith("loopwright: ")]
    return f"the service did not start: {(said or lines or ['it said nothing'])[-1]} (log: {folder / LOG})"
