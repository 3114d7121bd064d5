"""Walls by Landlock: of the file system, a process can open what it is given and nothing else, for good."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from py_landlock import AccessFs, Landlock, LandlockError
from py_landlock.landlock_sys import get_abi_version

_READABLE = ("/dev/zero", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm")
_OF_CUDA = ("/proc/devices", "/proc/driver/nvidia")
_WRITABLE = ("/dev/null",)
_OF_FILES = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.EXECUTE | AccessFs.TRUNCATE | AccessFs.IOCTL_DEV
"""The rights that a file can have; those of folders are refused for it."""
_READ = AccessFs.READ_FILE | AccessFs.READ_DIR | AccessFs.EXECUTE
_WRITE = (
    AccessFs.WRITE_FILE
    | AccessFs.TRUNCATE
    | AccessFs.MAKE_REG
    | AccessFs.MAKE_DIR
    | AccessFs.REMOVE_FILE
    | AccessFs.REMOVE_DIR
)
_OF_ITSELF = ("fd", "maps", "stat", "statm", "status")
"""In a process's own folder in /proc, which also has the sockets of the whole host (``net``)."""
_RENAME_THREADS = AccessFs.WRITE_FILE | AccessFs.TRUNCATE
"""Of a process's folder in /proc. CUDA names its threads, by ``task/…/comm``, and does not start if it cannot."""
_DEVICE = AccessFs.READ_FILE | AccessFs.WRITE_FILE | AccessFs.IOCTL_DEV


def prepare(*, readable: Sequence[str], devices: Sequence[str], network: bool = False) -> Callable[[str], None]:
    """Return a function that restricts its thread, and all that this starts, to these paths and a scratch folder.

    With ``network``, TCP is not refused here; `workers.walls.syscalls` allows connections alone.
    It is called once, in a fork: to look the paths up in each would cost milliseconds. It raises LandlockError.
    """
    rules = Landlock(strict=False)
    if network:
        rules.allow_all_network()

    def allow(path: str, access: AccessFs) -> None:
        rules.add_path_rule(path, access=access if os.path.isdir(path) else access & _OF_FILES)

    known = (*_READABLE, *_OF_CUDA) if devices else _READABLE
    for path in (*readable, *filter(os.path.exists, known)):
        allow(path, _READ)
    for node in (*devices, *_WRITABLE):
        allow(node, _DEVICE)

    def restrict(scratch: str) -> None:
        own = f"/proc/{os.getpid()}"
        of_itself = {own: _READ | _RENAME_THREADS} if devices else {f"{own}/{name}": _READ for name in _OF_ITSELF}
        for path, access in of_itself.items():
            os.open(path, os.O_PATH)  # left open: the kernel forgets the rule of what nobody has open there
            allow(path, access)
        allow(scratch, _READ | _WRITE)
        rules.apply()

    return restrict


def obstacle() -> str | None:
    """Return why Landlock does not work here, or None."""
    try:
        get_abi_version()
    except LandlockError as error:
        return str(error)
    return None
