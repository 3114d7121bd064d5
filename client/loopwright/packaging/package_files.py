"""The files of a package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

NAME = "manifest.json"


def names(folder: Path) -> Iterator[str]:
    """Yield the path of each file of a package but its manifest, relative to the package."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != NAME and "__pycache__" not in path.parts:
            yield path.relative_to(folder).as_posix()


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file of a package but its manifest, with its SHA-256."""
    for name in names(folder):
        with (folder / name).open("rb") as file:
            yield name, hashlib.file_digest(file, "sha256").hexdigest()
