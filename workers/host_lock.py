"""Who may use this host's cores now: one timing alone, or any number of builds and searches together.

Two flock'ed files a host, so that the kernel frees them when a holder dies. A timing that waits holds the
turnstile, and so no newcomer starts while it waits: a stream of builds cannot starve it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

DIRECTORY = Path("/tmp")
"""Not `tempfile.gettempdir()`: each fork of a warm child has a temporary directory of its own."""


def _open(name: str) -> int:
    path = DIRECTORY / f"loopwright-{os.getuid()}-{name}.lock"
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


class Busy:
    """The cores in use, without a timing."""

    def __init__(self) -> None:
        self._turnstile, self._host = _open("turnstile"), _open("host")
        self._enter()

    def wanted(self) -> bool:
        """Whether a timing waits. Costs microseconds."""
        try:
            fcntl.flock(self._turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        return False

    def pause(self) -> None:
        """Let a timing that waits go first."""
        if self.wanted():
            fcntl.flock(self._host, fcntl.LOCK_UN)
            self._enter()

    def close(self) -> None:
        os.close(self._turnstile)
        os.close(self._host)

    def _enter(self) -> None:
        fcntl.flock(self._turnstile, fcntl.LOCK_EX)
        fcntl.flock(self._host, fcntl.LOCK_SH)
        fcntl.flock(self._turnstile, fcntl.LOCK_UN)


@contextlib.contextmanager
def busy() -> Iterator[Busy]:
    """Hold while this process uses the cores without taking a timing; where it takes long, pause now and then."""
    with contextlib.closing(Busy()) as held:
        yield held


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hold while taking a timing: nothing else that uses this lock runs."""
    turnstile, host = _open("turnstile"), _open("host")
    try:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(host, fcntl.LOCK_EX)
        yield
    finally:
        os.close(host)
        os.close(turnstile)
