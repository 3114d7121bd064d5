"""Watch the host's lock: log processes that have it for long, and kill stopped children of ours.

A stopped process keeps its locks, and one that waits for the lock gets it in its turn and keeps it. Those that wait
cannot help themselves: they are behind walls, and see no others.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

from loopwright.codegen.host import lock as host_lock

OTHER_SECONDS = 3.0
"""That others wait before users are told who has the lock. Not tuned: most timings take under a second."""
LONG_SECONDS = 20.0
"""That others wait before who has the lock is named. Most timings take under a second."""
STOPPED_SECONDS = 8.0
"""That a child is stopped, with the lock or in the queue for it, before it is killed. Nothing of ours stops one.

Not tuned."""
_LOOK_SECONDS = 2.0

log = logging.getLogger("loopwright.host_lock")


@dataclass(frozen=True, slots=True)
class _Use:
    """A process that has a lock on one of the files, for which others may wait, or waits for one itself."""

    has_it: bool = False
    is_waited_for: bool = False


@dataclass(slots=True)
class _Seen:
    """Since when a process was seen to have the lock while others waited, and since when to be stopped."""

    waited_for: float | None = None
    stopped: float | None = None
    named: bool = False


def is_child(process: psutil.Process) -> bool:
    """Return whether a process of this user is a warm child or its fork, which can be replaced at any time."""
    return process.uids().real == os.getuid() and "workers.child.program" in process.cmdline()


class LockWatch:
    """Looks at the kernel's list of locks. ``may_kill`` says of a stopped process whether it is ours to kill.

    ``other`` is the program, for users, for which others have been waiting, unless this process started it.
    """

    def __init__(
        self,
        seconds: float = LONG_SECONDS,
        stopped_seconds: float = STOPPED_SECONDS,
        *,
        may_kill: Callable[[psutil.Process], bool] = is_child,
    ) -> None:
        self._seconds = seconds
        self._stopped_seconds = stopped_seconds
        self._may_kill = may_kill
        self._seen: dict[int, _Seen] = {}
        self.other: str | None = None

    def start(self) -> None:
        """Check the lock regularly, in a thread, as long as the process runs."""
        threading.Thread(target=self._run, name="lock watch", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self.look()
            except OSError as error:
                log.warning("the host's lock cannot be watched: %s", error)
                return
            time.sleep(_LOOK_SECONDS)

    def look(self) -> None:
        """Check the lock once."""
        now = time.monotonic()
        uses = _uses(Path("/proc/locks").read_text().splitlines(), host_lock.files())
        self._seen = {pid: self._seen.get(pid) or _Seen() for pid in uses}
        other = None
        for pid, seen in self._seen.items():
            seen.waited_for = (seen.waited_for or now) if uses[pid].is_waited_for else None
            with contextlib.suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                self._judge(process, uses[pid], seen, now)
                if seen.waited_for is not None and now - seen.waited_for > OTHER_SECONDS and not _is_mine(process):
                    other = f"{process.name()} (process {pid})"
        self.other = other

    def _judge(self, process: psutil.Process, use: _Use, seen: _Seen, now: float) -> None:
        is_stopped = process.status() == psutil.STATUS_STOPPED
        seen.stopped = (seen.stopped or now) if is_stopped else None
        if seen.stopped is not None and now - seen.stopped > self._stopped_seconds and self._may_kill(process):
            log.warning(
                "process %d (%s) has been stopped for %.0f s and %s the host's lock: it is killed",
                process.pid,
                _name(process),
                now - seen.stopped,
                "has" if use.has_it else "waits for",
            )
            process.send_signal(signal.SIGKILL)
        elif seen.waited_for is not None and now - seen.waited_for > self._seconds and not seen.named:
            seen.named = True
            log.warning(
                "process %d (%s%s) has the host's lock, for which others have waited for %.0f s",
                process.pid,
                _name(process),
                ", stopped" if is_stopped else "",
                now - seen.waited_for,
            )


def _is_mine(process: psutil.Process) -> bool:
    return any(parent.pid == os.getpid() for parent in process.parents())


def _name(process: psutil.Process) -> str:
    return " ".join(process.cmdline())[:200] or process.name()


def _uses(lines: Iterable[str], files: Iterable[Path]) -> dict[int, _Use]:
    """Return the processes that have a lock on one of the files, or wait for one.

    ``lines`` are those of /proc/locks: ``1: FLOCK ADVISORY READ 815 fe:00:4711 0 EOF``, with ``->`` after the first
    number for one that waits.
    """
    inodes = {path.stat().st_ino for path in files}
    holders: dict[int, set[int]] = {}
    waiters: dict[int, set[int]] = {}
    for line in lines:
        _, *words = line.split()
        waits = words[0] == "->"
        kind, _, _, pid, place, *_ = words[waits:]
        # Not the device: file systems of several volumes give another one here than to `stat`.
        inode = int(place.rpartition(":")[2])
        if kind == "FLOCK" and inode in inodes:
            (waiters if waits else holders).setdefault(inode, set()).add(int(pid))
    uses = {waiter: _Use() for pids in waiters.values() for waiter in pids}
    for inode, pids in holders.items():
        for holder in pids:
            waited_for = inode in waiters or (holder in uses and uses[holder].is_waited_for)
            uses[holder] = _Use(has_it=True, is_waited_for=waited_for)
    return uses
