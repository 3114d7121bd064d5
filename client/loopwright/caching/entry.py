"""A compiled model in a folder of its own: written by one process at once, and checked whenever it is read."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

from loopwright.applying.report import Agreement, Outcome, Prediction
from loopwright.packaging.load import PackagedModel, load
from loopwright.packaging.manifest import NAME, Part, TensorSpec
from loopwright.packaging.package_files import digests
from loopwright.schemas import LookupAnswer

_UNFINISHED = ".loopwright-"
"""How the names of folders begin that are being written or removed."""
_LEFT_OVER_SECONDS = 3600.0
"""Longer than any model takes to be written."""


class StoredFunction(Part):
    """``workload_hash`` is that of its best; None if it has none. ``prediction`` is as of the report."""

    name: str
    outcome: Outcome
    workload_hash: str | None
    prediction: Prediction | None = None


class Stored(Part):
    """What is known of a compiled model; its file is one that `loopwright.load` reads.

    ``asked`` are the hashes that the service was asked for, and ``answer`` is what it said; None if it did not answer.
    """

    created_at: datetime
    threads: int
    inputs: tuple[TensorSpec, ...]
    functions: tuple[StoredFunction, ...]
    asked: tuple[str, ...]
    answer: LookupAnswer | None
    agreement: Agreement | None
    notes: tuple[str, ...]
    files: dict[str, str]
    """SHA-256 of each other file."""


class Entry:
    """The folder of a key within the folder of a cache."""

    def __init__(self, cache: Path, key: str) -> None:
        """Make the folder of the cache, unless it is there.

        Raises:
            PermissionError: others may write to it, whose code this process would run.
        """
        cache.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = cache / key
        for folder in (cache, self._folder):
            _check_is_own(folder)

    @property
    def path(self) -> Path:
        """The folder, which is there once it was written."""
        return self._folder

    def read(self) -> Stored | None:
        """Return what is known of the compiled model; None if there is none, or if a file of it is damaged."""
        try:
            stored = Stored.model_validate_json((self._folder / NAME).read_bytes())
            found = dict(digests(self._folder))
        except (OSError, ValueError):
            return None
        return stored if found == stored.files else None

    def load(self) -> PackagedModel:
        """Return the compiled model. Call it after `read` or `write`."""
        return load(self._folder)

    def write(self, fill: Callable[[Path], Stored]) -> None:
        """Take a folder's files for the entry's, all at once; ``fill`` writes them, and says what is known of them."""
        self._remove_leftovers()
        made = self._folder.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
        made.mkdir(mode=0o700)
        try:
            stored = fill(made)
            stored = stored.model_copy(update={"files": dict(sorted(digests(made)))})
            (made / NAME).write_text(stored.model_dump_json(indent=2), encoding="utf-8")
            self._take(made)
        finally:
            shutil.rmtree(made, ignore_errors=True)

    def _remove_leftovers(self) -> None:
        """Remove what processes left that were killed while they wrote."""
        for folder in self._folder.parent.glob(f"{_UNFINISHED}*"):
            with contextlib.suppress(FileNotFoundError):  # its writer has finished
                if time.time() - folder.stat().st_mtime > _LEFT_OVER_SECONDS:
                    shutil.rmtree(folder, ignore_errors=True)

    def _take(self, made: Path) -> None:
        """Put a folder in the entry's place. What was there goes; if another process was first, its folder stays."""
        old = self._folder.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
        try:
            self._folder.rename(old)
        except FileNotFoundError:
            pass
        else:
            shutil.rmtree(old, ignore_errors=True)
        try:
            made.rename(self._folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise


def _check_is_own(folder: Path) -> None:
    if not hasattr(os, "getuid") or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write to {folder}, and compiled models there would run as this process; give a folder of "
            f"your own, or take their right away: chmod go-w {folder}"
        )
