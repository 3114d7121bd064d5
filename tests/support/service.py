"""A real service in processes of its own."""

from __future__ import annotations

import contextlib
import secrets
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

import httpx
import psutil

from tests.support.processes import Family, clean_environment, command_of
from tests.support.service_client import ServiceClient

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 180.0
_SAYS_SECONDS = 1000.0
"""A service that makes no progress in its start says so before."""
PLACES = 2
"""Jobs that the service which tests share works on at a time."""


def free_port() -> int:
    """A port that nobody listens on, above those of Ray's workers and below those that connections get."""
    while True:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


class Service(ServiceClient):
    """``python -m service`` on a data directory, which outlives it. Everything of the user's lies in ``folder``."""

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.folder = folder
        self.data_dir = folder / "data"
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.port = free_port()
        self.environment = {**clean_environment(), "HOME": str(self.home), "XDG_STATE_HOME": str(folder / "state")}
        if database_url is not None:
            self.environment["LOOPWRIGHT_DATABASE_URL"] = database_url
        self.directory = ROOT
        """Where its processes start: in a checkout, whose code they run then."""
        self._family = Family(self.home)
        self.process: subprocess.Popen[str] | None = None
        self.url = f"http://127.0.0.1:{self.port}"
        self.http = httpx.Client()
        self.printed_url = ""
        """What the service has said that signs a browser in, once."""

    def __enter__(self) -> Self:
        """Start it; leave nothing behind at the end, whatever state it is in then."""
        try:
            self.start()
        except BaseException:
            self.destroy()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def start(self) -> None:
        """Return when the service has said that it is ready."""
        process = self.launch()
        assert process.stdout is not None
        readable, _, _ = select.select([process.stdout], [], [], _SAYS_SECONDS)
        line = process.stdout.readline() if readable else ""
        self.printed_url = "".join(line.split()[-1:])
        assert self.printed_url.startswith(f"{self.url}/#code="), f"not ready: {line!r}\n{self.logs()}"
        self.connect()

    def launch(self, *role: str) -> subprocess.Popen[str]:
        """Start a process of the service, as a whole or in one ``role``."""
        command = [sys.executable, "-m", "service", *role, "--data-dir", str(self.data_dir), "--port", str(self.port)]
        with (self.folder / "stderr").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self.process

    def connect(self) -> None:
        """Sign in as the owner."""
        headers = {"Authorization": f"Bearer {self.token}"}
        self.http = httpx.Client(base_url=self.url, headers=headers, timeout=90, trust_env=False)

    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def stop(self) -> int:
        """End it as a user or systemd does; its exit status."""
        assert self.process is not None
        self.note_processes()
        self.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, seconds: float = 60.0) -> int:
        """The exit status of the service, once it and all that it ever started are gone."""
        assert self.process is not None
        status = self.process.wait(seconds)
        until = time.monotonic() + seconds
        while left := self.note_processes():
            assert time.monotonic() < until, f"the service left behind {[command_of(process) for process in left]}"
            time.sleep(0.1)
        self.http.close()
        return status

    def destroy(self) -> None:
        """Leave nothing behind, whatever state the service is in."""
        if self.process is not None and self.running():
            self.note_processes()
            self.process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.process.wait(60)
        self._family.send(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()
        self.http.close()

    def note_processes(self) -> list[psutil.Process]:
        """Return the living processes of this service, and remember them."""
        return self._family.living()

    def find(self, *words: str) -> list[psutil.Process]:
        """Its living processes whose command line holds all of ``words``, the oldest first."""
        return self._family.find(*words)

    def logs(self) -> str:
        files = [self.folder / "stderr", *self.data_dir.glob("*.log")]
        return "\n".join(
            f"--- {file.name}\n{file.read_text(errors='replace')[-3000:]}" for file in files if file.exists()
        )
