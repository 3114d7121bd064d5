"""This machine's node of the Ray cluster: ``ray start`` as a child."""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import subprocess
import sys
import threading
import time
from collections import deque

import psutil

from workers.host.errors import HeadAway
from workers.host.options import HostOptions
from workers.ray.environment import QUIET, ROTATION, is_loopback
from workers.ray.names import HOST_LABEL, PROCESS_LABEL

_JOIN_SECONDS = 120.0
"""For Ray's processes to start: a busy machine takes half a minute for it. Not tuned."""
_POLL_SECONDS = 0.2
_STOP_SECONDS = 15.0
_LINES = 100
"""Of what ``ray start`` says, the last are kept."""
_NO_DRAIN = {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
"""Ray would wait for its actors to end, which those of a fleet never do; `workers.host.leave` waits for the work."""
_JOINED = "Ray runtime started"
_TELLING = re.compile(r"error|exception|fail|cannot|could not|refused", re.IGNORECASE)


class Node:
    """A node that is joining or has joined. ``mark`` is its label `PROCESS_LABEL`."""

    def __init__(self, options: HostOptions) -> None:
        self.mark = secrets.token_hex(8)
        labels = options.labels | {HOST_LABEL: options.name, PROCESS_LABEL: self.mark}
        command = [
            *(sys.executable, "-m", "workers.host.ray_start", "start", "--block"),
            f"--address={options.address}",
            f"--labels={','.join(f'{key}={value}' for key, value in labels.items())}",
            "--include-log-monitor=false",  # it would cost cores that are timed
        ]
        if is_loopback(options.address):
            # The head's node is on this machine too: let the kernel choose ports that it does not have.
            command += ["--min-worker-port=0", "--max-worker-port=0"]
        # A session of its own: Ctrl-C in a terminal is for the process that drains first.
        self._process = subprocess.Popen(
            command,
            env={**QUIET, **ROTATION, **os.environ, **_NO_DRAIN},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
            errors="replace",
        )
        self._said: deque[str] = deque(maxlen=_LINES)
        self._joined = threading.Event()
        self._listener = threading.Thread(target=self._listen, name="ray start", daemon=True)
        self._listener.start()

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def await_joined(self, stop: threading.Event) -> None:
        """Return when the node has joined, or ``stop`` is set. Raises HeadAway, with the node stopped."""
        until = time.monotonic() + _JOIN_SECONDS
        while not self._joined.is_set():
            if not self.is_running:
                words = self.last_words()
                self.stop()
                raise HeadAway(f"Ray did not start: {words}")
            if time.monotonic() > until:
                self.stop()
                raise HeadAway(f"Ray did not start within {_JOIN_SECONDS:.0f} s: {self.last_words()}")
            if stop.wait(_POLL_SECONDS):
                return

    def stop(self) -> None:
        """End all processes of the node, in order if that takes no longer than `_STOP_SECONDS`."""
        family = []
        with contextlib.suppress(psutil.NoSuchProcess):
            family = psutil.Process(self._process.pid).children(recursive=True)
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        _, left = psutil.wait_procs(family, timeout=_STOP_SECONDS)
        for process in left:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    def last_words(self) -> str:
        """Return the last line of what ``ray start`` said that tells of a fault, or its last line."""
        if not self.is_running:
            self._listener.join(_POLL_SECONDS)
        lines = list(self._said)
        telling = [line for line in lines if _TELLING.search(line)]
        return (telling or lines or ["it said nothing"])[-1]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if _JOINED in line:
                self._joined.set()
            if line.strip():
                self._said.append(line.strip())
