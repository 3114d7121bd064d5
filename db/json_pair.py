"""TVM's pair of JSON files in a tar, as records travel. Knows nothing of what stands in them."""

from __future__ import annotations

import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO

from db.errors import InvalidArchive

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"
MEMBER_BYTES = 64 * 2**20
_PART_BYTES = 2**18


def pack(pair: Mapping[str, str]) -> bytes:
    """The texts under ``database_workload`` and ``database_tuning_record`` as a tar; equal texts make equal bytes."""
    contents = [io.BytesIO(pair[name.removesuffix(".json")].encode()) for name in (WORKLOADS, RECORDS)]
    return b"".join(packed(*contents))


def packed(workloads: IO[bytes], records: IO[bytes]) -> Iterator[bytes]:
    """Yield the tar of the two files, which are read from their beginnings, some at a time."""
    for name, file in ((WORKLOADS, workloads), (RECORDS, records)):
        member = tarfile.TarInfo(name)
        member.size = file.seek(0, os.SEEK_END)
        file.seek(0)
        yield member.tobuf()
        while part := file.read(_PART_BYTES):
            yield part
        yield bytes(-member.size % tarfile.BLOCKSIZE)
    yield bytes(2 * tarfile.BLOCKSIZE)


def unpack(data: bytes, member_bytes: int = MEMBER_BYTES) -> tuple[str, str]:
    """The texts of the workloads and of the records, which stand at the top of the tar or in one folder.

    Bytes that are not UTF-8 are replaced, so that they spoil one line and not the file. Raises InvalidArchive.
    """
    found: dict[str, str] = {}
    try:
        # Uncompressed only: a small body must not become a large one.
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                if name not in (WORKLOADS, RECORDS):
                    continue
                _check(member, name, member_bytes)
                if name in found:
                    raise InvalidArchive(f"the archive holds {name} twice; send one pair at a time")
                file = tar.extractfile(member)
                assert file is not None, "a regular file has content"
                found[name] = file.read().decode(errors="replace")
    except InvalidArchive:
        raise
    except (tarfile.TarError, ValueError, ArithmeticError, EOFError, OSError) as error:
        raise InvalidArchive(f"not a .tar ({error}); send {WORKLOADS} and {RECORDS} in one, uncompressed") from error
    if missing := [name for name in (WORKLOADS, RECORDS) if name not in found]:
        raise InvalidArchive(f"the archive lacks {' and '.join(missing)}")
    return found[WORKLOADS], found[RECORDS]


def _check(member: tarfile.TarInfo, name: str, member_bytes: int) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or len(path.parts) > 2:
        raise InvalidArchive(f"the archive holds {member.name!r}; {name} belongs at its top or in one folder")
    if not member.isreg() or member.issparse():
        raise InvalidArchive(f"{member.name} in the archive is not a plain file")
    if member.size > member_bytes:
        raise InvalidArchive(
            f"{member.name} is {member.size} bytes, over the limit of {member_bytes}; send the records in parts"
        )
