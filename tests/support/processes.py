"""Processes of the workers as tests see them from outside."""

from __future__ import annotations

import psutil


def is_warm_child(process: psutil.Process) -> bool:
    """Return whether a process is a warm child or its fork, and not the program that keeps it behind walls.

    One that has ended is none.
    """
    try:
        return process.name() != "bwrap" and "workers.child" in process.cmdline()
    except psutil.NoSuchProcess:
        return False
