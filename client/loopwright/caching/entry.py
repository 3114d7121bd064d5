"""A compiled model in a folder of its own: written by one process at once, and checked whenever it is read."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from loopwright.applying.report import Summary
from loopwright.caching.file_digests import FileDigest, FileDigests, state_of
from loopwright.packaging.load import PackagedModel, load
from loopwright.packaging.package_files import NAME, digests, names
from loopwright.service_bests import KnownRecords

REPORT = "report.json"
"""The file of the full report."""
_UNFINISHED = ".loopwright-"
"""How the names of folders begin that are being written or removed."""
_LEFT_OVER_SECONDS = 3600.0
"""Longer than any model takes to be written."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is known of a compiled model; its file is one that `loopwright.load` reads.

    It is plain JSON: a process that loads the model has neither Pydantic nor the schemas, unless it wants the report.
    """

    created_at: str
    """In UTC, to the minute."""
    threads: int
    inputs: Sequence[Mapping[str, Any]]
    """The name, shape and dtype of each."""
    mapped: Sequence[Mapping[str, Any]]
    """The weights in a file of their own, as `loopwright.packaging.exporting.export_apart` returns them."""
    asked: Sequence[str]
    """The hashes that were asked for."""
    known: KnownRecords | None
    """What was answered; None if there was no answer."""
    summary: Summary
    files: Mapping[str, str]
    """SHA-256 of each other file."""

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), indent=2)

    @classmethod
    def from_json(cls, text: bytes) -> Stored:
        """Return what `to_json` wrote. Raises ValueError, TypeError or KeyError for anything else."""
        fields = json.loads(text)
        known = fields["known"] and KnownRecords(**fields["known"])
        return cls(**fields | {"known": known, "summary": Summary(**fields["summary"])})


class Entry:
    """The folder of a key within the folder of a cache."""

    def __init__(self, cache: Path, key: str) -> None:
        """Make the folder of the cache, unless it is there (`own`). Raises PermissionError as it does."""
        self._folder = own(cache) / key
        self._digests = FileDigests(cache)
        _check_is_own(self._folder)

    @property
    def path(self) -> Path:
        """The folder, which is there once it was written."""
        return self._folder

    def read(self) -> Stored | None:
        """Return what is known of the compiled model; None if there is none, or if a file of it is damaged."""
        try:
            stored = Stored.from_json((self._folder / NAME).read_bytes())
            found = {name: self._digests.of(self._folder / name).sha256 for name in names(self._folder)}
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return stored if found == stored.files else None

    def load(self) -> PackagedModel:
        """Return the compiled model, of which all files are of one writer. Call it after `read` or `write`."""
        while True:
            state = state_of(self._folder / NAME)
            loaded = load(self._folder)
            if state_of(self._folder / NAME) == state:
                return loaded

    def report(self) -> bytes:
        """Return the content of the file `REPORT`. Call it after `read` or `write`."""
        return (self._folder / REPORT).read_bytes()

    def write(self, fill: Callable[[Path], Stored]) -> None:
        """Take a folder's files for the entry's, all at once; ``fill`` writes them, and says what is known of them."""
        self._remove_leftovers()
        made = self._folder.with_name(f"{_UNFINISHED}{uuid.uuid4().hex}")
        made.mkdir(mode=0o700)
        try:
            stored = fill(made)
            files = dict(sorted(digests(made)))
            (made / NAME).write_text(replace(stored, files=files).to_json(), encoding="utf-8")
            states = {name: state_of(made / name) for name in files}
            self._take(made)
            for name, state in states.items():
                self._digests.keep(self._folder / name, state, FileDigest(files[name]))
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


def own(cache: Path) -> Path:
    """Return the folder of a cache, which is made if it is not there.

    Raises:
        PermissionError: others may write to it, whose code this process would run.
    """
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    _check_is_own(cache)
    return cache


def _check_is_own(folder: Path) -> None:
    if not hasattr(os, "getuid") or not folder.exists():
        return
    status = folder.stat()
    if status.st_uid != os.getuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError(
            f"others may write to {folder}, and compiled models there would run as this process; give a folder of "
            f"your own, or take their right away: chmod go-w {folder}"
        )
