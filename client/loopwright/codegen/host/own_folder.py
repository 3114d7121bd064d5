"""Folders that this user alone can write, at names that others can guess."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path


class NotOurs(Exception):
    """A folder belongs to somebody else, who could put other files in it, or take away ours."""


def own_folder(path: Path) -> Path:
    """Return a folder that was made, if need be, for this user alone. Raises NotOurs."""
    with contextlib.suppress(OSError):  # it is there, or what is found below says why not
        path.mkdir(mode=0o700)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise NotOurs(f"{path} must be a folder of this user that no other can write; remove it")
    return path
