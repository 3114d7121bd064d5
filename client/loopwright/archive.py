"""TVM's pair of JSON files in a tar, as records travel."""

from __future__ import annotations

import io
import shutil
import tarfile
from pathlib import Path
from typing import IO

MEMBERS = ("database_workload.json", "database_tuning_record.json")


def pack(directory: Path) -> bytes:
    """The pair in ``directory`` as a tar. Raises FileNotFoundError if one is missing."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member in MEMBERS:
            tar.add(directory / member, arcname=member)
    return buffer.getvalue()


def unpack(data: IO[bytes], directory: Path) -> Path:
    """Write the pair from a tar into ``directory``; other members are left alone. Returns the directory."""
    directory.mkdir(parents=True, exist_ok=True)
    data.seek(0)
    with tarfile.open(fileobj=data) as tar:
        for member in MEMBERS:
            file = tar.extractfile(member)
            if file is None:
                raise ValueError(f"{member} is not a file in the archive")
            with (directory / member).open("wb") as target:
                shutil.copyfileobj(file, target)
    return directory
