"""Processes of services, machines and workers, as tests see them from outside."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import psutil

_OF_TESTS = ("LOOPWRIGHT_", "XDG_", "RAY_", "OMP_")


def clean_environment() -> dict[str, str]:
    """Return the environment without what this process's tests have set: one that starts Ray itself sets some of it."""
    return {name: value for name, value in os.environ.items() if not name.startswith(_OF_TESTS)}


class Family:
    """The processes that have a folder as their HOME, with their descendants, which may have lost the variable."""

    def __init__(self, home: Path) -> None:
        self._home = str(home)
        self._seen: set[psutil.Process] = set()

    def living(self) -> list[psutil.Process]:
        """Return those that live; a descendant that was seen once stays one when its parent has gone."""
        marked = [process for process in psutil.process_iter() if _environment(process).get("HOME") == self._home]
        for process in marked:
            self._seen.add(process)
            with contextlib.suppress(psutil.NoSuchProcess):
                self._seen.update(process.children(recursive=True))
        self._seen = {process for process in self._seen if _is_alive(process)}
        return list(self._seen)

    def find(self, *words: str) -> list[psutil.Process]:
        """Return those whose command line holds all of ``words``, the oldest first."""
        found = [process for process in self.living() if all(word in command_of(process) for word in words)]
        return sorted(found, key=lambda process: (process.create_time(), process.pid))

    def send(self, number: signal.Signals) -> None:
        """Send a signal to all of them."""
        for process in self.living():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(number)


def is_warm_child(process: psutil.Process) -> bool:
    """Return whether a process is a warm child or its fork, and not the program that keeps it behind walls.

    One that has ended is none.
    """
    try:
        return process.name() != "bwrap" and "workers.child.program" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def command_of(process: psutil.Process) -> str:
    """Return the command line of a process; empty if it has ended."""
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def _environment(process: psutil.Process) -> dict[str, str]:
    try:
        return process.environ()
    except psutil.Error:
        return {}


def _is_alive(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
