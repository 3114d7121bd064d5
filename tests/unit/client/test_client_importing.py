"""A pair of JSON files in parts: each line is sent, with its number, and each record with its workload."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

import loopwright
from loopwright.results import archive
from loopwright.results.archive import Part, parts
from tests.unit.client.fake_service import Answer, FakeService


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of three records, or of 60 bytes."""
    monkeypatch.setattr(archive, "RECORDS_A_PART", 3)
    monkeypatch.setattr(archive, "BYTES_A_PART", 60)


def write(folder: Path, workloads: list[str], records: list[str]) -> Path:
    (folder / "database_workload.json").write_text("\n".join(workloads))
    (folder / "database_tuning_record.json").write_text("\n".join(records))
    return folder


def lines(part: Part) -> Iterator[dict[int, str]]:
    """Yield the lines of workloads and of records that are not blank, by position."""
    with tarfile.open(fileobj=io.BytesIO(part.tar)) as tar:
        for member in archive.MEMBERS:
            file = tar.extractfile(member)
            assert file is not None
            text = file.read().decode()
            yield {position: line for position, line in enumerate(text.split("\n")) if line}


def test_a_small_pair_is_one_part(tmp_path: Path) -> None:
    (part,) = parts(write(tmp_path, ["[1]", "[2]", ""], ["[0,[]]", "", "[1,[]]", "what is this", "[7,[]]"]))
    workloads, records = lines(part)
    assert workloads == {0: "[1]", 1: "[2]"}
    assert records == {0: "[0,[]]", 2: "[1,[]]", 3: "what is this", 4: "[7,[]]"}
    assert part.repeated is None


def test_an_empty_pair_is_one_part(tmp_path: Path) -> None:
    (part,) = parts(write(tmp_path, [], []))
    assert list(lines(part)) == [{}, {}]


@pytest.mark.usefixtures("small")
def test_each_record_is_sent_once_with_its_workload(tmp_path: Path) -> None:
    workloads = [
        "[0]",
        "[1]",
        '["a workload without records"]',
        "[3]",
        '["one that is longer than a part may be"]' * 3,
        "",
    ]
    of_workloads = [3, 0, 1, 0, 0, 0, 0, 9, 1, 4, 3, 0, 0]
    folder = write(
        tmp_path, workloads, [json.dumps([position, [number]]) for number, position in enumerate(of_workloads)]
    )
    sent: list[int] = []
    seen: list[int] = []
    for part in parts(folder):
        of_part, records = lines(part)
        assert all(line == workloads[position] for position, line in of_part.items())
        assert all(json.loads(line) == [of_workloads[number], [number]] for number, line in records.items())
        assert {of_workloads[number] for number in records} <= {*of_part, 9}
        assert len(records) <= 3
        again = set(seen) & of_part.keys()
        assert again == (set() if part.repeated is None else {part.repeated})
        sent += records
        seen += of_part
    assert sorted(sent) == list(range(len(of_workloads)))
    assert set(seen) == {0, 1, 2, 3, 4}


@pytest.mark.usefixtures("small")
def test_reports_of_parts_are_added(service: FakeService, client: loopwright.Client, tmp_path: Path) -> None:
    refused = "database_workload.json line 2: not a workload"
    reports = [
        {"workloads": 1, "imported": 3, "duplicates": 0, "errors": []},
        {"workloads": 1, "imported": 1, "duplicates": 0, "errors": [refused, "database_tuning_record.json line 6: so"]},
        {"workloads": 0, "imported": 0, "duplicates": 1, "errors": [refused]},
    ]
    service.on("POST", "/api/v1/records/import", [Answer(report) for report in reports])
    folder = write(tmp_path, ["[0]", "[1]"], ["[0,[]]"] * 4 + ["[1,[]]"] * 3)
    report = client.import_records(folder)
    assert len(service.requests) == 3
    assert (report.workloads, report.imported, report.duplicates) == (1, 4, 1)
    assert report.errors == [refused, "database_tuning_record.json line 6: so"]


@pytest.mark.usefixtures("small")
def test_certificates_are_sent_with_their_records(tmp_path: Path) -> None:
    records = [f"[{number % 2},[{number}]]" for number in range(7)]
    folder = write(tmp_path, ["[0]", "[1]"], records)
    (folder / archive.CERTIFICATES).write_text(
        "".join(f"{{{number}}}\n" if number != 3 else "\n" for number in range(6))
    )
    found: dict[int, str] = {}
    for part in parts(folder):
        _, sent = lines(part)
        with tarfile.open(fileobj=io.BytesIO(part.tar)) as tar:
            file = tar.extractfile(archive.CERTIFICATES)
            assert file is not None
            certificates = {n: line for n, line in enumerate(file.read().decode().split("\n")) if line}
        assert set(certificates) == {position for position in sent if position not in (3, 6)}
        found |= certificates
    assert found == {number: f"{{{number}}}" for number in (0, 1, 2, 4, 5)}


@pytest.mark.parametrize("certificates", [b"", b"{}\n\n", None])
def test_certificates_are_written_beside_a_pair(tmp_path: Path, certificates: bytes | None) -> None:
    contents = dict.fromkeys(archive.MEMBERS, b"[0]\n") | (
        {} if certificates is None else {archive.CERTIFICATES: certificates}
    )
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as tar:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    (tmp_path / archive.CERTIFICATES).write_bytes(b"of another pair")
    archive.unpack(data, tmp_path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == contents
