"""TVM's pair of JSON files in a tar, as records travel, with their certificates beside. Imports no TVM."""

from __future__ import annotations

import base64
import io
import struct
import tarfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import IO

from db.errors import InvalidArchive

WORKLOADS = "database_workload.json"
RECORDS = "database_tuning_record.json"
CERTIFICATES = "loopwright_certificates.json"
"""Line n is the signed certificate of the record in line n, or empty."""
MEMBER_BYTES = 64 * 2**20
_PART_BYTES = 2**18


LENGTH = struct.Struct("<Q")
"""Before the JSON of a module, in what a line of workloads has in base64."""
_HASH_DIGITS = 20
"""Of TVM's structural hash at most: it has 64 bits."""


def workload_line(structural_hash: str, module_json: str) -> str:
    """Return a line of workloads, with spaces at its end for the digits that the hash lacks."""
    module = module_json.encode()
    packed = base64.b64encode(LENGTH.pack(len(module)) + module).decode()
    return f'["{structural_hash}","{packed}"]{" " * (_HASH_DIGITS - len(structural_hash))}\n'


def workload_line_bytes(module_bytes: int) -> int:
    """Return the size of the `workload_line` of a module whose JSON has so many bytes."""
    return len('["",""]\n') + _HASH_DIGITS + (LENGTH.size + module_bytes + 2) // 3 * 4


def pack(pair: Mapping[str, str]) -> bytes:
    """Return the texts under ``database_workload`` and ``database_tuning_record`` as a tar; equal texts make equal
    bytes."""
    workloads, records = (pair[name.removesuffix(".json")] for name in (WORKLOADS, RECORDS))
    return b"".join(packed(len(workloads.encode()), [(workloads, records)], io.BytesIO()))


def packed(
    workload_bytes: int, parts: Iterable[tuple[str, str]], kept: IO[bytes], certificates: IO[bytes] | None = None
) -> Iterator[bytes]:
    """Yield the tar of a pair while it is made.

    Args:
        workload_bytes: the size of all lines of workloads, which comes before them in a tar.
        parts: some lines of workloads each, and the lines of their records.
        kept: an empty file, in which records wait until all workloads are there.
        certificates: a file that has their certificates once the last part was made.

    Raises ValueError if the lines of workloads have another size.
    """
    left = workload_bytes
    yield _head(WORKLOADS, workload_bytes)
    for workloads, records in parts:
        lines = workloads.encode()
        left -= len(lines)
        yield lines
        kept.write(records.encode())
    if left:
        raise ValueError(f"{WORKLOADS} was to have {workload_bytes} bytes, and has {workload_bytes - left}")
    yield _fill(workload_bytes)
    yield from _member(RECORDS, kept)
    if certificates is not None:
        yield from _member(CERTIFICATES, certificates)
    yield bytes(2 * tarfile.BLOCKSIZE)


def _member(name: str, file: IO[bytes]) -> Iterator[bytes]:
    size = file.tell()
    file.seek(0)
    yield _head(name, size)
    while part := file.read(_PART_BYTES):
        yield part
    yield _fill(size)


def _head(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size = size
    return member.tobuf()


def _fill(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)


def unpack(data: bytes, member_bytes: int = MEMBER_BYTES) -> tuple[str, str]:
    """Return the texts of the workloads and of the records, which stand at the top of the tar or in one folder.

    Bytes that are not UTF-8 are replaced, so that they spoil one line and not the file. Raises InvalidArchive.
    """
    found = _found(data, (WORKLOADS, RECORDS), member_bytes)
    if missing := [name for name in (WORKLOADS, RECORDS) if name not in found]:
        raise InvalidArchive(f"the archive lacks {' and '.join(missing)}")
    return found[WORKLOADS], found[RECORDS]


def unpack_certificates(data: bytes, member_bytes: int = MEMBER_BYTES) -> list[str]:
    """Return the lines of certificates beside a pair; none if there is no such file. Raises InvalidArchive."""
    return _found(data, (CERTIFICATES,), member_bytes).get(CERTIFICATES, "").split("\n")


def _found(data: bytes, names: Collection[str], member_bytes: int) -> dict[str, str]:
    found: dict[str, str] = {}
    try:
        # Uncompressed only: a small body must not become a large one.
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as tar:
            for member in tar:
                name = PurePosixPath(member.name).name
                if name not in names:
                    continue
                _check(member, name, member_bytes)
                if name in found:
                    raise InvalidArchive(f"the archive contains {name} twice; send one pair at a time")
                file = tar.extractfile(member)
                assert file is not None, "a regular file has content"
                found[name] = file.read().decode(errors="replace")
    except InvalidArchive:
        raise
    except (tarfile.TarError, ValueError, ArithmeticError, EOFError, OSError, RecursionError) as error:
        raise InvalidArchive(f"not a .tar ({error}); send {WORKLOADS} and {RECORDS} in one, uncompressed") from error
    return found


def _check(member: tarfile.TarInfo, name: str, member_bytes: int) -> None:
    path = PurePosixPath(member.name)
    if path.is_absolute() or ".." in path.parts or len(path.parts) > 2:
        raise InvalidArchive(f"the archive contains {member.name!r}; put {name} at its top or in one folder")
    if not member.isreg() or member.issparse():
        raise InvalidArchive(f"{member.name} in the archive is not a plain file")
    if member.size > member_bytes:
        raise InvalidArchive(
            f"{member.name} is {member.size} bytes, over the limit of {member_bytes}; send the records in parts"
        )
