"""A readers-writer lock for the host's cores: one timing alone, or any number of builds and searches together.

The lock is two files that processes lock with flock, so that the kernel releases them when a process dies. A waiting
timing holds the turnstile, and no build or search starts while it waits: a stream of builds cannot starve a timing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

from loopwright.codegen.host.own_folder import own_folder

_TURNSTILE, _HOST = "turnstile", "host"


def directory() -> Path:
    """Return the folder of the lock's files, which this user alone can write; made if need be. Raises NotOurs.

    The same for all of a user's processes on the host. Not `tempfile.gettempdir()`: each fork of a warm child has its
    own temporary folder.
    """
    uid = os.getuid()
    runtime = Path(f"/run/user/{uid}")
    path = runtime / "loopwright" if runtime.is_dir() else Path(f"/tmp/loopwright-{uid}")
    return own_folder(path)


def files() -> list[Path]:
    """Return the lock's files; made if need be."""
    for name in (_TURNSTILE, _HOST):
        os.close(_open(name))
    return [directory() / f"{name}.lock" for name in (_TURNSTILE, _HOST)]


def made_directory() -> Path:
    """Return `directory` with the lock's files in it, which processes behind walls can open but not make."""
    files()
    return directory()


def _open(name: str) -> int:
    # To lock a file, it need not be writable: behind walls it is not.
    return os.open(directory() / f"{name}.lock", os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


class SharedHold:
    """The shared side of the lock: cores in use by a build or a search, which takes no timing."""

    def __init__(self) -> None:
        self._turnstile, self._host = _open(_TURNSTILE), _open(_HOST)
        self._enter()

    def timing_waits(self) -> bool:
        """Return whether a timing waits for the lock. Takes microseconds."""
        try:
            fcntl.flock(self._turnstile, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        fcntl.flock(self._turnstile, fcntl.LOCK_UN)
        return False

    def pause(self) -> None:
        """Release the lock to a timing that waits, and return when the lock is shared again."""
        if self.timing_waits():
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
def quiet() -> Iterator[None]:
    """Hold the lock alone while a timing is taken: no other holder of this lock runs."""
    turnstile, host = _open(_TURNSTILE), _open(_HOST)
    try:
        fcntl.flock(turnstile, fcntl.LOCK_EX)
        fcntl.flock(host, fcntl.LOCK_EX)
        yield
    finally:
        os.close(host)
        os.close(turnstile)
