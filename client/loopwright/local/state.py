"""Who runs the service on a data directory: a file that says it, with a lock that says whether it still holds.

The kernel releases the lock when the process ends, however it ends, so a crash leaves no service that seems to run.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

LOCK = "lock"
"""The file in the data directory. `service.process.supervisor` locks and writes it."""


@dataclass(frozen=True, slots=True)
class LocalState:
    """``pid`` is of the process that a signal stops; ``url`` has the port, also of a service that has ended."""

    pid: int
    url: str
    is_ready: bool = False


def running(folder: Path) -> LocalState | None:
    """Return the service that runs on a data directory, ready or not; None if none does."""
    import fcntl  # as every service does: the command line is imported on other systems, too

    try:
        with (folder / LOCK).open() as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return _read(file.read())
    except FileNotFoundError:
        pass
    return None


def last(folder: Path) -> LocalState | None:
    """Return the newest service of a data directory, whether it runs or not; None before the first."""
    try:
        found = _read((folder / LOCK).read_text())
    except FileNotFoundError:
        return None
    return found if found.url else None


def _read(text: str) -> LocalState:
    """Return what the file says. It says nothing while it is written, for less than a millisecond."""
    try:
        return LocalState(**json.loads(text))
    except (TypeError, ValueError):
        return LocalState(pid=0, url="")
