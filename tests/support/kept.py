"""A process that is started again whenever it ends: what ``restart: unless-stopped`` and systemd do."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

_PAUSE_SECONDS = 0.5
"""Between an end and the next start."""
_STOP_SECONDS = 60.0


class Kept:
    """A command that is kept running from `start` to `stop`. What it says is added to ``log``."""

    def __init__(self, command: list[str], environment: dict[str, str], log: Path) -> None:
        self._command = command
        self._environment = environment
        self._log = log
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._keeper: threading.Thread | None = None

    def start(self) -> None:
        assert self._keeper is None
        self._stopping.clear()
        self._keeper = threading.Thread(target=self._keep, name=f"keeper of {self._log.stem}", daemon=True)
        self._keeper.start()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End the process for good by a signal, and wait for its end. Do nothing if it is not kept running."""
        if self._keeper is None:
            return
        with self._lock:
            self._stopping.set()
        if self._process is not None:
            self._process.send_signal(number)
        self._keeper.join(_STOP_SECONDS)
        assert not self._keeper.is_alive(), f"{self._command[:4]} did not end within {_STOP_SECONDS:g} s"
        self._keeper = None

    def _keep(self) -> None:
        while (process := self._launched()) is not None:
            process.wait()
            self._stopping.wait(_PAUSE_SECONDS)

    def _launched(self) -> subprocess.Popen[bytes] | None:
        with self._lock, self._log.open("ab") as log:
            if self._stopping.is_set():
                return None
            self._process = subprocess.Popen(
                self._command, env=self._environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
            return self._process
