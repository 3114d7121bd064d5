"""Ray's session folders: Ray makes one at each start, for sockets and logs, and never removes any."""

from __future__ import annotations

import contextlib
import re
import shutil
from pathlib import Path

import psutil

KEPT = 3
"""Sessions that have ended, whose logs may say why."""
_SESSION = re.compile(r"session_[\d-]+_[\d-]+_\d+_(?P<pid>\d+)")


def remove_old_sessions(folder: Path, kept: int = KEPT) -> None:
    """Remove all sessions but the last ``kept`` whose process, which is part of their name, has ended."""
    ended = [
        path
        for path in folder.glob("session_*")
        if (match := _SESSION.fullmatch(path.name)) and not psutil.pid_exists(int(match["pid"]))
    ]
    # Their names begin with the time of their start.
    for path in sorted(ended, key=lambda path: path.name)[: max(0, len(ended) - kept)]:
        with contextlib.suppress(OSError):  # another service of this user removes it
            shutil.rmtree(path)
