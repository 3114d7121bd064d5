"""The files of a package."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

from loopwright.packaging.manifest import NAME


def digests(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file of a package but its manifest, with its SHA-256."""
    for path in folder.rglob("*"):
        if path.is_file() and path.name != NAME and "__pycache__" not in path.parts:
            with path.open("rb") as file:
                yield path.relative_to(folder).as_posix(), hashlib.file_digest(file, "sha256").hexdigest()
