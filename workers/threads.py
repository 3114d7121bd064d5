"""Placement of the threads of TVM's runtime."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def settle() -> None:
    """Keep this thread off the cores to which the runtime has bound its workers; call it after they have started.

    The runtime lets the thread that launches a parallel loop run on any core. If that thread starts on a worker's core,
    it stays there for some tens of milliseconds, because both spin, and parallel programs take four times as long.
    """
    taken: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # the thread has ended since
            cores = os.sched_getaffinity(int(task.name))
            if len(cores) == 1 and int(task.name) != threading.get_native_id():
                taken |= cores
    free = os.sched_getaffinity(0) - taken
    if free:
        os.sched_setaffinity(0, free)
