"""Digests of files, kept with what the system knows of each file, so that an unchanged file is not read again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_FOLDER = ".digests"
"""In the folder of the cache."""
_SETTLED_NS = 2 * 10**9
"""Nanoseconds since a file's last change before which its digest is not kept: a second change within the tick of a file
system's clock would leave no trace. FAT's ticks of 2 s are the longest."""
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


State = list[int]
"""Of a file: device, inode, size in bytes, time of modification, and time of change, both in nanoseconds."""


def state_of(path: Path) -> State:
    """Return the state of a file. Raises OSError."""
    found = path.stat()
    return [found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


@dataclass(frozen=True, slots=True)
class FileDigest:
    """``beside`` names files in the same folder that belong to this one, such as the weights of an ONNX model."""

    sha256: str
    beside: Sequence[str] = ()


class FileDigests:
    """The digests that a cache has kept.

    A digest is taken for that of a file while the file has the same device, inode, size, time of modification and time
    of change as when it was read. The last is set by the kernel alone, with each write and each renaming, so that no
    program can leave all of them as they were; only stores into a mapping that was written to before come to the
    file's times some seconds later. States are compared only until the machine starts anew: what was in memory when it
    stopped may not have reached the disk.
    """

    def __init__(self, cache: Path) -> None:
        """Use the folder of a cache, which is its owner's alone."""
        self._folder = cache / _FOLDER

    def of(self, path: Path, beside: Callable[[bytes], Sequence[str]] = lambda _: ()) -> FileDigest:
        """Return the digest of a file, which is read unless it is known.

        Args:
            path: the file.
            beside: what finds the files that belong to it in its content.

        Raises:
            OSError: it cannot be read.
        """
        state = state_of(path)
        kept = self._kept(path, state)
        if kept is not None:
            return kept
        content = path.read_bytes()
        found = FileDigest(hashlib.sha256(content).hexdigest(), beside(content))
        if time.time_ns() - max(state[-2:]) > _SETTLED_NS and state_of(path) == state:
            self.keep(path, state, found)
        return found

    def keep(self, path: Path, state: State, digest: FileDigest) -> None:
        """Keep the digest of a file that was in this state when it was read, or written by this process."""
        with contextlib.suppress(OSError):  # the cache may be of a system that can only be read
            self._folder.mkdir(mode=0o700, exist_ok=True)
            made = self._folder / uuid.uuid4().hex
            made.write_text(json.dumps({"state": state, "boot": _boot(), "digest": asdict(digest)}), encoding="utf-8")
            made.replace(self._file(path))

    def _kept(self, path: Path, state: State) -> FileDigest | None:
        try:
            known = json.loads(self._file(path).read_bytes())
            return FileDigest(**known["digest"]) if (known["state"], known["boot"]) == (state, _boot()) else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _file(self, path: Path) -> Path:
        return self._folder / hashlib.sha256(os.fsencode(path.absolute())).hexdigest()


def _boot() -> str:
    """Return the id of this run of the machine; empty on systems other than Linux."""
    try:
        return _BOOT_ID.read_text(encoding="ascii")
    except OSError:
        return ""
