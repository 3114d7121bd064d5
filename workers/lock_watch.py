"""Watching the host's lock: who has it for long is named, and a child of ours that is stopped with it is killed.

A stopped process keeps its locks. Those that wait cannot help themselves: they are behind walls, and see no others.
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

from loopwright.codegen import host_lock

LONG_SECONDS = 20.0
"""That others wait before who has the lock is named, and that a child is stopped with it before it is killed. Most
timings take under a second."""
_LOOK_SECONDS = 2.0

log = logging.getLogger("loopwright.host_lock")


@dataclass(slots=True)
class _Held:
    """Since when a process was seen to have the lock while others waited, and since when to be stopped with it."""

    waited_for: float | None = None
    stopped: float | None = None
    named: bool = False


def is_child(process: psutil.Process) -> bool:
    """Return whether a process of this user is a warm child or its fork, which can be replaced at any time."""
    return process.uids().real == os.getuid() and "workers.child" in process.cmdline()


class LockWatch:
    """Looks at the kernel's list of locks. ``may_kill`` says of a stopped process whether it is ours to kill."""

    def __init__(self, seconds: float = LONG_SECONDS, may_kill: Callable[[psutil.Process], bool] = is_child) -> None:
        self._seconds = seconds
        self._may_kill = may_kill
        self._held: dict[int, _Held] = {}

    def start(self) -> None:
        """Look every now and then, in a thread, as long as the process lives."""
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
        """Look once."""
        now = time.monotonic()
        holders = _holders(Path("/proc/locks").read_text().splitlines(), host_lock.files())
        self._held = {pid: self._held.get(pid) or _Held() for pid in holders}
        for pid, held in self._held.items():
            held.waited_for = (held.waited_for or now) if holders[pid] else None
            with contextlib.suppress(psutil.NoSuchProcess):
                self._judge(psutil.Process(pid), held, now)

    def _judge(self, process: psutil.Process, held: _Held, now: float) -> None:
        is_stopped = process.status() == psutil.STATUS_STOPPED
        held.stopped = (held.stopped or now) if is_stopped else None
        if held.stopped is not None and now - held.stopped > self._seconds and self._may_kill(process):
            log.warning(
                "process %d (%s) is stopped since %.0f s and has the host's lock: it is killed",
                process.pid,
                _name(process),
                now - held.stopped,
            )
            process.send_signal(signal.SIGKILL)
        elif held.waited_for is not None and now - held.waited_for > self._seconds and not held.named:
            held.named = True
            log.warning(
                "process %d (%s%s) has the host's lock, for which others wait since %.0f s",
                process.pid,
                _name(process),
                ", stopped" if is_stopped else "",
                now - held.waited_for,
            )


def _name(process: psutil.Process) -> str:
    return " ".join(process.cmdline())[:200] or process.name()


def _holders(lines: Iterable[str], files: Iterable[Path]) -> dict[int, bool]:
    """Return the processes that have a lock on one of the files, and whether another process waits for it.

    ``lines`` are those of /proc/locks: ``1: FLOCK ADVISORY READ 815 fe:00:4711 0 EOF``, with ``->`` after the first
    number for one that waits.
    """
    inodes = {path.stat().st_ino for path in files}
    holders: dict[int, set[int]] = {}
    waited_for: set[int] = set()
    for line in lines:
        _, *words = line.split()
        waits = words[0] == "->"
        kind, _, _, pid, place, *_ = words[waits:]
        # Not the device: file systems of several volumes give another one here than to `stat`.
        inode = int(place.rpartition(":")[2])
        if kind != "FLOCK" or inode not in inodes:
            continue
        if waits:
            waited_for.add(inode)
        else:
            holders.setdefault(inode, set()).add(int(pid))
    found: dict[int, bool] = {}
    for inode, pids in holders.items():
        for holder in pids:
            found[holder] = found.get(holder, False) or inode in waited_for
    return found
