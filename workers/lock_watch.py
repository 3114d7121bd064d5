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
"""That others wait before who has the lock is named, or killed if it is stopped. Most timings take under a second."""
_LOOK_SECONDS = 2.0

log = logging.getLogger("loopwright.host_lock")


@dataclass(slots=True)
class _Held:
    """When a process was first seen to have the lock while others waited, and when to be stopped."""

    since: float
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
        holders = _holders_waited_for(Path("/proc/locks").read_text().splitlines(), host_lock.files())
        self._held = {pid: self._held.get(pid) or _Held(now) for pid in holders}
        for pid, held in self._held.items():
            with contextlib.suppress(psutil.NoSuchProcess):
                self._judge(psutil.Process(pid), held, now)

    def _judge(self, process: psutil.Process, held: _Held, now: float) -> None:
        is_stopped = process.status() == psutil.STATUS_STOPPED
        held.stopped = (held.stopped or now) if is_stopped else None
        if held.stopped is not None and now - held.stopped > self._seconds and self._may_kill(process):
            log.warning(
                "process %d (%s) is stopped and has the host's lock, for which others wait since %.0f s: it is killed",
                process.pid,
                _name(process),
                now - held.since,
            )
            process.send_signal(signal.SIGKILL)
        elif now - held.since > self._seconds and not held.named:
            held.named = True
            log.warning(
                "process %d (%s%s) has the host's lock, for which others wait since %.0f s",
                process.pid,
                _name(process),
                ", stopped" if is_stopped else "",
                now - held.since,
            )


def _name(process: psutil.Process) -> str:
    return " ".join(process.cmdline())[:200] or process.name()


def _holders_waited_for(lines: Iterable[str], files: Iterable[Path]) -> set[int]:
    """Return the processes that have a lock on one of the files for which another process waits.

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
    return {pid for inode in waited_for for pid in holders.get(inode, ())}
