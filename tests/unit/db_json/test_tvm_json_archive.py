"""The pair of files in a tar: what comes out, and which tars are refused."""

from __future__ import annotations

import contextlib
import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from db.errors import InvalidArchive
from db.json_pair import RECORDS, WORKLOADS, pack, unpack

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
