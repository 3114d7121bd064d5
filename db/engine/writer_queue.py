"""The queue of the writers of an SQLite file.

SQLite lets a waiting writer sleep and look again, for up to a tenth of a second, and whoever looks at the right moment
is next: of many writers at once, some wait for seconds. Here the kernel wakes the next one as soon as the one before it
is done.

The queue is a courtesy. SQLite's own lock still decides who writes, so that a writer may go on without its turn: if
the process that has the turn is stopped, or if the queue's file cannot be made.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import threading
import time
from collections.abc import Iterator

TURN_SECONDS = 5.0
"""That a writer waits for its turn before it goes on without. A transaction takes milliseconds. Not tuned."""


@contextlib.contextmanager
def turn(database: str) -> Iterator[None]:
    """Wait for the turn to write into the file ``database``, at most `TURN_SECONDS`, and have it for the block."""
    queue = _queue_of(f"{database}-queue")
    until = time.monotonic() + TURN_SECONDS
    if not queue.threads.acquire(timeout=TURN_SECONDS):
        yield
        return
    try:
        descriptor = queue.lock(until)
        try:
            yield
        finally:
            if descriptor is not None:
                os.close(descriptor)  # which releases the lock
    finally:
        queue.threads.release()


class _Queue:
    """The queue at a file, as this process sees it."""

    def __init__(self, file: str) -> None:
        self.threads = threading.Lock()
        """Of this process, because the kernel's lock is the whole process's."""
        self._file = file
        self._late: _Wait | None = None

    def lock(self, until: float) -> int | None:
        """Return a descriptor of the file with the kernel's lock, or None if the lock is not to be had until then.

        It is a lock of POSIX: the kernel releases it when the process dies, and forks do not inherit it.
        """
        if self._late is not None and not self._late.over.is_set():
            return None  # nothing has moved since
        try:
            descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return None
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except OSError:
            self._late = _Wait(descriptor)
        return descriptor if self._late.awaited(until) else None


@functools.cache
def _queue_of(file: str) -> _Queue:
    return _Queue(file)


# A thread that has a turn at a fork does not exist in the child.
os.register_at_fork(after_in_child=_queue_of.cache_clear)


class _Wait:
    """A thread that waits for the lock, because the kernel's waiting has no deadline."""

    def __init__(self, descriptor: int) -> None:
        self.over = threading.Event()
        self._descriptor = descriptor
        self._abandoned = False
        self._deciding = threading.Lock()
        threading.Thread(target=self._wait, name="turn to write", daemon=True).start()

    def awaited(self, until: float) -> bool:
        """Return whether the lock was had in time. If not, the thread closes the descriptor when it gets the lock."""
        self.over.wait(max(0.0, until - time.monotonic()))
        with self._deciding:
            self._abandoned = not self.over.is_set()
        return not self._abandoned

    def _wait(self) -> None:
        # EDEADLK: the kernel takes the locks of all threads of a process for one's. Then this writer has no turn.
        with contextlib.suppress(OSError):
            fcntl.lockf(self._descriptor, fcntl.LOCK_EX)
        with self._deciding:
            if self._abandoned:
                os.close(self._descriptor)
            self.over.set()
