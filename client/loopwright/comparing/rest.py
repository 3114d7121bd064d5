"""Waiting until a process has come to rest: thread pools spin for a while after their work, on cores of the others."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_LOOK_SECONDS = 0.02
_IDLE_SHARE = 0.05
"""Of one core below which a process is at rest: a spinning thread has a share of 1."""
PATIENCE_SECONDS = 2.0
"""OpenMP's and TVM's threads spin for 0.1 to 0.2 s."""


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process's living threads."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended since
            total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


def wait_for_rest(pid: int) -> bool:
    """Return when a process uses almost no CPU time, with True, or after `PATIENCE_SECONDS`, with False."""
    until = time.monotonic() + PATIENCE_SECONDS
    before, looked = cpu_seconds(pid), time.monotonic()
    while time.monotonic() < until:
        time.sleep(_LOOK_SECONDS)
        after, now = cpu_seconds(pid), time.monotonic()
        if after - before < _IDLE_SHARE * (now - looked):
            return True
        before, looked = after, now
    return False
