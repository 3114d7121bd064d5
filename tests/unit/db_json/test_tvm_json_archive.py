"""The pair of files in a tar: what comes out, and which tars are refused."""

from __future__ import annotations

import contextlib
import io
import json
import tarfile
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.errors import InvalidArchive
from db.exchange.json_pair import RECORDS, WORKLOADS, pack, packed, unpack, workload_line, workload_line_bytes

PAIR = {"database_workload": '["1","module"]\n', "database_tuning_record": '[0,["é"]]\n'}


def _tar(*members: tuple[str, bytes] | tarfile.TarInfo, mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as tar:  # type: ignore[call-overload]
        for member in members:
            if isinstance(member, tarfile.TarInfo):
                tar.addfile(member)
            else:
                info = tarfile.TarInfo(member[0])
                info.size = len(member[1])
                tar.addfile(info, io.BytesIO(member[1]))
    return buffer.getvalue()


def _link(name: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, "/etc/passwd"
    return info


def test_what_is_packed_comes_out_again() -> None:
    assert unpack(pack(PAIR)) == (PAIR["database_workload"], PAIR["database_tuning_record"])
    assert pack(PAIR) == pack(PAIR)


def test_a_tar_begins_before_its_parts_are_made() -> None:
    asked = []

    def parts() -> Iterator[tuple[str, str]]:
        for number in range(3):
            asked.append(number)
            yield f"workload {number}\n", f"record {number}\n"

    made = packed(3 * len("workload 0\n"), parts(), io.BytesIO())
    begin = next(made)
    assert asked == []
    begin += next(made)
    assert asked == [0]
    workloads, records = unpack(begin + b"".join(made))
    assert (workloads.count("\n"), records) == (3, "record 0\nrecord 1\nrecord 2\n")


@pytest.mark.parametrize("size", [9, 11])
def test_a_tar_whose_size_was_wrong_is_not_ended(size: int) -> None:
    made = packed(size, [("workload 0", "")], io.BytesIO())
    with pytest.raises(ValueError, match=f"to have {size} bytes, and has 10"):
        b"".join(made)


@pytest.mark.parametrize(("digits", "module"), [("7", "{}"), ("1" * 20, '"é"'), ("12", "")])
def test_lines_of_workloads_have_the_size_that_is_foretold(digits: str, module: str) -> None:
    line = workload_line(digits, module)
    assert len(line.encode()) == workload_line_bytes(len(module.encode()))
    assert json.loads(line)[0] == digits


@pytest.mark.parametrize("folder", ["", "./", "work_dir/", "./work_dir/"])
def test_the_pair_may_lie_in_a_folder_beside_other_files(folder: str) -> None:
    data = _tar(
        (f"{folder}readme.txt", b"hello"), (f"{folder}{RECORDS}", b"records"), (f"{folder}{WORKLOADS}", b"workloads")
    )
    assert unpack(data) == ("workloads", "records")


def test_bytes_that_are_not_text_spoil_only_their_line() -> None:
    workloads, _ = unpack(_tar((WORKLOADS, b"good\nb\xffd\ngood"), (RECORDS, b"")))
    assert workloads.split("\n")[::2] == ["good", "good"]


RECORDS_MEMBER = (RECORDS, b"")


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "not a .tar"),
        (b"not a tar" * 1000, "not a .tar"),
        (_tar((WORKLOADS, b""), RECORDS_MEMBER, mode="w:gz"), "uncompressed"),
        (_tar((WORKLOADS, bytes(900)), RECORDS_MEMBER)[:1000], "not a .tar"),
        (_tar(RECORDS_MEMBER), f"lacks {WORKLOADS}"),
        (_tar(("other.json", b"")), f"lacks {WORKLOADS} and {RECORDS}"),
        (_tar((f"../{WORKLOADS}", b""), RECORDS_MEMBER), "at its top or in one folder"),
        (_tar((f"/{WORKLOADS}", b""), RECORDS_MEMBER), "at its top or in one folder"),
        (_tar((f"a/b/{WORKLOADS}", b""), RECORDS_MEMBER), "at its top or in one folder"),
        (_tar(_link(WORKLOADS), RECORDS_MEMBER), "not a plain file"),
        (_tar((WORKLOADS, b"1"), (f"old/{WORKLOADS}", b"2"), RECORDS_MEMBER), "twice"),
        (_tar((WORKLOADS, bytes(2000)), RECORDS_MEMBER), "over the limit of 1000"),
    ],
)
def test_other_archives_are_refused_with_the_reason(data: bytes, reason: str) -> None:
    with pytest.raises(InvalidArchive, match=reason):
        unpack(data, member_bytes=1000)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(st.integers(0, 2047), st.binary(min_size=1, max_size=40))
def test_a_damaged_archive_is_read_or_refused(position: int, damage: bytes) -> None:
    data = bytearray(pack(PAIR))
    data[position : position + len(damage)] = damage
    with contextlib.suppress(InvalidArchive):
        workloads, records = unpack(bytes(data))
        assert isinstance(workloads + records, str)


def test_headers_that_each_describe_the_next_are_refused() -> None:
    header = tarfile.TarInfo("././@LongLink")
    header.type, header.size = tarfile.GNUTYPE_LONGNAME, 2
    chain = (header.tobuf(tarfile.GNU_FORMAT) + b"a".ljust(tarfile.BLOCKSIZE, b"\0")) * 2000
    with pytest.raises(InvalidArchive, match=r"not a \.tar"):
        unpack(chain + pack(PAIR))
