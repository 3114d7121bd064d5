"""TVM's pair of JSON files in a tar, as records travel."""

from __future__ import annotations

import io
import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MEMBERS = ("database_workload.json", "database_tuning_record.json")
CERTIFICATES = "loopwright_certificates.json"
"""Beside the pair: line n is the signed certificate of record n, or empty. TVM does not read it."""

RECORDS_A_PART = 250
"""The service replays each record, which takes milliseconds, and has half a minute for a request. Not tuned."""
BYTES_A_PART = 8 * 2**20
"""After which no line is added. Services take four times as many by default."""
_WORKLOAD = re.compile(rb"\s*\[\s*(\d+)")
"""At the beginning of a record: the position of its workload."""


@dataclass(frozen=True, slots=True)
class Part:
    """A pair in a tar, in which the lines of other parts are blank, so that all lines keep their numbers.

    ``repeated`` is the position of a workload that the part before has, too, because its records are in both.
    """

    tar: bytes
    repeated: int | None


def parts(directory: Path) -> Iterator[Part]:
    """Yield the pair in ``directory`` in parts that the service takes. Raises FileNotFoundError if one is missing."""
    workloads, records = ((directory / member).read_bytes().split(b"\n") for member in MEMBERS)
    path = directory / CERTIFICATES
    certificates = path.read_bytes().split(b"\n") if path.is_file() else []
    last = None
    for of_workloads, of_records in list(_divided(workloads, records)) or [([], [])]:
        repeated = last if last is not None and last in of_workloads else None
        signed = [position for position in of_records if position < len(certificates)]
        contents = [_only(workloads, of_workloads), _only(records, of_records), _only(certificates, signed)]
        tar = _pack(contents[: 3 if certificates else 2])
        last = of_workloads[-1] if of_workloads else None
        yield Part(tar, repeated)


def _divided(workloads: list[bytes], records: list[bytes]) -> Iterator[tuple[list[int], list[int]]]:
    """Yield the positions of each part's workloads and records, with the workload of each record in its part."""
    records_of: dict[int | None, list[int]] = {}
    for position, line in enumerate(records):
        if line.strip():
            records_of.setdefault(_workload_of(line, len(workloads)), []).append(position)
    some_workloads: list[int] = []
    some_records: list[int] = []
    size = 0
    # What is no record, or of no workload, comes first: the service says so.
    for workload in (None, *range(len(workloads))):
        own = [] if workload is None or not workloads[workload].strip() else [workload]
        some_workloads += own
        size += sum(len(workloads[position]) for position in own)
        for record in records_of.get(workload, []):
            if some_records and (len(some_records) >= RECORDS_A_PART or size >= BYTES_A_PART):
                yield some_workloads, some_records
                some_workloads, some_records, size = [*own], [], 0
            some_records.append(record)
            size += len(records[record])
        if len(some_records) >= RECORDS_A_PART or size >= BYTES_A_PART:
            yield some_workloads, some_records
            some_workloads, some_records, size = [], [], 0
    if some_workloads or some_records:
        yield some_workloads, some_records


def _workload_of(record: bytes, workloads: int) -> int | None:
    found = _WORKLOAD.match(record)
    position = workloads if found is None else int(found[1])
    return position if position < workloads else None


def _only(lines: list[bytes], positions: list[int]) -> bytes:
    """Return the lines at some positions, with blank ones before and between them."""
    kept = set(positions)
    return b"".join(
        (lines[position] if position in kept else b"") + b"\n" for position in range(max(kept, default=-1) + 1)
    )


def _pack(contents: list[bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for member, content in zip((*MEMBERS, CERTIFICATES), contents, strict=False):
            info = tarfile.TarInfo(member)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


def unpack(data: IO[bytes], directory: Path) -> Path:
    """Write the pair from a tar into ``directory``, with its certificates; other members are left alone. Returns the
    directory."""
    directory.mkdir(parents=True, exist_ok=True)
    # Those of another pair, if a service before it sent certificates has made this one.
    (directory / CERTIFICATES).unlink(missing_ok=True)
    data.seek(0)
    with tarfile.open(fileobj=data) as tar:
        for member in (*MEMBERS, *(name for name in tar.getnames() if name == CERTIFICATES)):
            file = tar.extractfile(member)
            if file is None:
                raise ValueError(f"{member} is not a file in the archive")
            with (directory / member).open("wb") as target:
                shutil.copyfileobj(file, target)
    return directory
