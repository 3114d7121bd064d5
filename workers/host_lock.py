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


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """Hold while this process uses the cores without taking a timing."""
    turnstile, host = _open("turnstile"), _open("host")
    try:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(host, fcntl.LOCK_SH)
        fcntl.flock(turnstile, fcntl.LOCK_UN)
        yield
    finally:
        os.close(turnstile)
        os.close(host)


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
