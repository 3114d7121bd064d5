"""Where the threads of TVM's runtime run."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path


def settle() -> None:
    """Keep this thread off the cores to which the runtime has bound its workers; call it once they are there.

    The runtime lets the thread that launches a parallel loop run anywhere. Where it begins beside a worker it stays for
    some tens of milliseconds, as neither waits for a core while both spin, and parallel programs take four times as
    long.
    """
    taken: set[int] = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # it has ended since
            cores = os.sched_getaffinity(int(task.name))
            if len(cores) == 1 and int(task.name) != threading.get_native_id():
                taken |= cores
    free = os.sched_getaffinity(0) - taken
    if free:
        os.sched_setaffinity(0, free)
