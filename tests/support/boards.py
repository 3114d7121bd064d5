"""A board on loopback: the server of `deploy/rpc-device`, started again whenever it exits, as systemd does."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import psutil

from tests.support.service import ROOT, free_port
from tests.support.waiting import wait_for

SERVER = ROOT / "deploy" / "rpc-device" / "serve.py"


class ServedBoard:
    """A server on a free port of 127.0.0.1; ``start`` is the command and environment that run Python on the board."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        python: Sequence[str] = (sys.executable,),
        environment: Mapping[str, str] | None = None,
        server: Path = SERVER,
        threads: int = 1,
    ) -> None:
        self.folder = folder
        self.port = free_port()
        self.starts = 0
        """How often the server was started."""
        self._python = python
        self._command = [*python, str(server), "--host", "127.0.0.1", "--port", str(self.port), *options]
        own = {"TVM_NUM_THREADS": str(threads), "TVM_BIND_THREADS": "0", "TMPDIR": str(folder)}
        self._environment = {**(os.environ if environment is None else environment), **own}
        self._log = folder / "board.log"
        self._stopped = threading.Event()
        self._changed = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the server, and return when it listens."""
        self._stopped.clear()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()
        wait_for("the board's server", self.listens)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def sessions(self) -> list[psutil.Process]:
        """Return the processes that serve clients: one at a time."""
        process = self._process
        return [] if process is None else psutil.Process(process.pid).children()

    def kill(self) -> None:
        """Kill the server and what it serves; it is started again, unless it was stopped."""
        with self._changed:
            if self._process is not None and self._process.poll() is None:
                server = psutil.Process(self._process.pid)
                for process in (server, *server.children(recursive=True)):
                    with contextlib.suppress(psutil.NoSuchProcess):
                        process.kill()

    def stop(self) -> None:
        """Switch the board off."""
        self._stopped.set()
        self.kill()
        self._keeper.join()

    def run(self, script: str, *arguments: str) -> None:
        """Run a script on the board, beside the server. Fails if it does."""
        command = [*self._python, "-c", script, *arguments]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def row(self, name: str, **fields: Any) -> dict[str, Any]:
        """Return the board's table in the file of boards."""
        return {"name": name, "address": f"127.0.0.1:{self.port}", "target": {"kind": "llvm"}, **fields}

    def _keep(self) -> None:
        while not self._stopped.is_set():
            with self._changed, self._log.open("ab") as log:
                self._process = subprocess.Popen(
                    self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
                self.starts += 1
            self._process.wait()


def write_boards(folder: Path, *rows: Mapping[str, Any]) -> Path:
    """Write a file of boards, and return its path."""
    path = folder / "rpc-devices.toml"
    path.write_text("\n".join(_table(row) for row in rows), encoding="utf-8")
    return path


def _table(row: Mapping[str, Any]) -> str:
    fields = {name: json.dumps(value) for name, value in row.items() if not isinstance(value, dict)}
    nested = {
        f"{name}.{json.dumps(key)}": json.dumps(each)
        for name, value in row.items()
        if isinstance(value, dict)
        for key, each in value.items()
    }
    return "\n".join(["[[rpc_device]]", *(f"{name} = {value}" for name, value in (fields | nested).items())])
