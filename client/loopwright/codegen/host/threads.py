"""The threads of TVM's runtime: how many there are, and where they run. Imports no TVM.

Left to itself, the runtime on x86-64 takes half of the machine's processors for hyper-threads, also where each is a
core. It binds its threads to processors from number 0 on, whatever else runs there, and restricts the thread that
launches a parallel loop to the same processors; threads which that thread starts later inherit the restriction.
Programs are certified with one thread for each core, none of them bound.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import sys
from pathlib import Path, PurePosixPath

NUM_THREADS = "TVM_NUM_THREADS"
"""The number of threads that run a parallel loop, the launching thread included. The runtime reads it when a thread
launches its first parallel loop: each launching thread has a pool of its own, whose size is final."""
OMP_NUM_THREADS = "OMP_NUM_THREADS"
"""What the runtime reads if `NUM_THREADS` is not set."""
BIND_THREADS = "TVM_BIND_THREADS"
"""The runtime binds its threads unless this is set to another number than 1."""


def environment(threads: int) -> dict[str, str]:
    """Return the environment variables under which programs are certified for a number of threads."""
    return {NUM_THREADS: str(threads), BIND_THREADS: "0"}


def set_defaults() -> str | None:
    """Set the variables of `environment` for this process, one thread for each usable core, where they are not set.

    A number of threads that the user has given to TVM or to OpenMP stays as it is. Systems other than Linux are left
    to the runtime.

    Returns:
        A warning for the user if the runtime has already started another number of threads, otherwise None.
    """
    if not hasattr(os, "sched_getaffinity"):
        return None
    warning = None
    if NUM_THREADS not in os.environ and OMP_NUM_THREADS not in os.environ:
        cores = usable_cores()
        started = _started()
        if started not in (None, cores):
            warning = (
                f"TVM's runtime has started {started} threads before Loopwright could set their number to {cores}. A "
                f"thread that has run a parallel loop keeps its number; set {NUM_THREADS}={cores} before the process "
                "starts, or run the model in a new thread"
            )
        os.environ[NUM_THREADS] = str(cores)
    os.environ.setdefault(BIND_THREADS, "0")
    return warning


def configured() -> int | None:
    """Return the number of threads that the environment gives to the runtime; None if it gives none."""
    value = os.environ.get(NUM_THREADS, os.environ.get(OMP_NUM_THREADS))
    if value is None:
        return None
    digits = re.match(r"\s*\+?(\d+)", value)  # the runtime reads it by atoi
    return max(1, int(digits[1])) if digits else 1


def usable_cores(root: Path = Path("/")) -> int:
    """Return the number of cores that this process may use; the hyper-threads of a core count once.

    The process's CPU affinity and the CPU quotas of its control groups (version 2) limit it, for instance in a
    container.

    Args:
        root: the directory with ``proc`` and ``sys``.
    """
    cpus = root / "sys/devices/system/cpu"
    cores = {_read(cpus / f"cpu{cpu}/topology/thread_siblings_list") or str(cpu) for cpu in os.sched_getaffinity(0)}
    return max(1, min([len(cores), *_quotas(root)]))


def _quotas(root: Path) -> list[int]:
    """Return the whole CPUs of each limited control group that this process is in."""
    groups = [line.removeprefix("0::/") for line in _read(root / "proc/self/cgroup").splitlines() if line[:4] == "0::/"]
    quotas = []
    for group in groups:
        path = PurePosixPath(group)
        for each in (path, *path.parents):
            quota, _, period = _read(root / "sys/fs/cgroup" / each / "cpu.max").partition(" ")
            if quota.isdigit():
                quotas.append(int(quota) // int(period))
    return quotas


def _started() -> int | None:
    """Return the number of threads of a pool that the runtime has started by itself, or None.

    To ask the runtime would start a pool, which a process that forks later must not have. The threads of a pool are
    known by their binding.
    """
    default = os.cpu_count() or 1
    if platform.machine() in ("x86_64", "AMD64"):
        default //= 2
    if "tvm" not in sys.modules or default < 2:
        return None
    bound = 0
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(ProcessLookupError):  # the thread has ended since
            bound += len(os.sched_getaffinity(int(task.name))) == 1
    return default if bound >= default - 1 else None


def _read(path: Path) -> str:
    """Return a file's text without white space around it; an empty text if there is no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
