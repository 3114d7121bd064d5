"""Packs: what is written, and what of hostile, damaged and foreign ones is refused."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from loopwright import Client, InvalidPack
from loopwright.codegen import signatures
from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.versions import TVM_VERSION
from loopwright.packs import archive, signing
from loopwright.packs.archive import read
from loopwright.results import evidence
from loopwright.results.archive import CERTIFICATES, MEMBERS
from tests.support.evidence import rechecked
from tests.unit.client.conftest import API, OTHER, VERSION, Command, Made
from tests.unit.client.fake_service import FakeService, best_json
from tests.unit.client.known_bests import HASH, LLVM


def members(path: Path) -> list[tuple[str, bytes]]:
    with tarfile.open(path) as tar:
        return [(each.name, tar.extractfile(each).read()) for each in tar]


def write(path: Path, content: list[tuple[str, bytes]], **changes: Any) -> None:
    """Write a tar; ``changes`` are attributes of its first member."""
    with tarfile.open(path, "w") as tar:
        for number, (name, data) in enumerate(content):
            member = tarfile.TarInfo(name)
            member.size = len(data)
            for field, value in changes.items() if number == 0 else ():
                setattr(member, field, value)
            tar.addfile(member, io.BytesIO(data))


def signed_again(made: Made, change: Callable[[dict[str, Any]], None], **parts: bytes) -> None:
    """Let the pack's own key sign another manifest, with other parts (without compression) under their first names."""
    content = dict(members(made.path))
    manifest = json.loads(content[archive.MANIFEST])
    for name in [name for name in content if name.partition(".")[0] in parts]:
        data = parts[name.partition(".")[0]]
        content[name] = gzip.compress(data)
        digest = hashlib.sha256(content[name]).hexdigest()
        manifest["files"][name] = {"sha256": digest, "bytes": len(content[name]), "unpacked_bytes": len(data)}
    change(manifest)
    text = signatures.canonical(manifest)
    content[archive.MANIFEST] = text.encode()
    content[archive.SIGNATURE] = signing.sign(text, signing.read_key(made.key)).model_dump_json().encode()
    write(made.path, list(content.items()))


def refusal(made: Made) -> str:
    with pytest.raises(InvalidPack) as refused:
        read(made.path, evidence.read_keys(made.keys))
    return str(refused.value)


def test_a_pack_says_what_is_in_it_and_where_it_was_certified(made: Made) -> None:
    pack = read(made.path, evidence.read_keys(made.keys))
    manifest = pack.manifest
    assert (manifest.name, manifest.creator, manifest.licence) == ("team", "the team", "Apache-2.0")
    assert (manifest.bests, manifest.functions, manifest.tvm) == (3, 2, TVM_VERSION)
    assert [(each.device_class, each.model, each.threads) for each in manifest.machines] == [
        ("class-1", "cpu", 2),
        ("class-2", "cpu", 2),
    ]
    assert {each.best.record_id for each in pack.bests} == {"record-1", "record-2", "record-3"}
    assert {each.module.data for each in pack.bests if each.best.workload_hash == OTHER} == {"another module"}
    assert not read(made.path).is_known


def test_equal_bests_make_equal_parts(made: Made, client: Client) -> None:
    before = members(made.path)
    client.export_pack(made.path, key=made.key, creator="the team", licence="Apache-2.0")
    again = members(made.path)
    assert before[2:] == again[2:]
    assert before[0] != again[0]  # made at another time


@pytest.mark.parametrize(
    ("choice", "records"),
    [
        ({"text": "DENSE"}, {"record-3"}),
        ({"device_class": "class-2"}, {"record-2"}),
        ({"device_class": "class-1"}, {"record-1", "record-3"}),
        ({"text": "dense", "device_class": "class-2"}, set()),
    ],
)
def test_what_goes_into_a_pack_is_chosen(made: Made, client: Client, choice: Any, records: set[str]) -> None:
    def export() -> None:
        client.export_pack(made.path, key=made.key, creator="the team", licence="Apache-2.0", **choice)

    if not records:
        with pytest.raises(ValueError, match="no certified best of this choice"):
            export()
        return
    export()
    assert {each.best.record_id for each in read(made.path).bests} == records


def test_bests_that_no_longer_hold_stay_at_home(made: Made, known: list[dict[str, Any]], client: Client) -> None:
    known[2] = rechecked(best_json(OTHER, None, target=LLVM), regressed_at="2026-02-01T00:00:00Z")
    client.export_pack(made.path, key=made.key, creator="the team", licence="Apache-2.0")
    assert {each.best.workload_hash for each in read(made.path).bests} == {HASH}


def test_an_install_sends_records_with_their_certificates(
    made: Made, service: FakeService, run: Command, mod: Any
) -> None:
    done = run("pack", "install", str(made.path), "--keys", str(made.keys))
    assert (done.status, done.out) == (0, "1 records imported, 0 known before, 0 not taken\n"), done.err
    [request] = service.seen("POST", f"{API}/records/import")
    with tarfile.open(fileobj=io.BytesIO(request.body)) as tar:
        workloads, records, certificates = (
            [json.loads(line) for line in tar.extractfile(name).read().splitlines()]
            for name in (*MEMBERS, CERTIFICATES)
        )
    # The unscheduled program is nothing to import.
    assert (len(workloads), len(records), len(certificates)) == (2, 2, 2)
    for (position, (trace, samples, target, _)), certificate in zip(records, certificates, strict=True):
        document = json.loads(certificate["document"])
        assert document["trace_sha256"] == signatures.trace_digest(trace)
        assert (document["target"], document["best_run_secs"]) == (target, samples)
        assert signatures.is_signed(certificate["document"], certificate["signature"], certificate["public_key"])
        assert (document["workload_hash"] == HASH) == (module_to_json(mod) in _module(workloads[position]))


def _module(workload: list[str]) -> str:
    return base64.b64decode(workload[1])[8:].decode()


def test_a_service_with_another_tvm_gets_nothing(made: Made, service: FakeService, run: Command) -> None:
    service.on("GET", "/version", VERSION | {"tvm": "0.28"})
    done = run("pack", "install", str(made.path), "--keys", str(made.keys))
    assert done.status == 2
    assert f"made with TVM {TVM_VERSION}" in done.err
    assert not service.seen("POST", f"{API}/records/import")


def test_the_private_key_is_its_owners_and_is_not_shown(made: Made, run: Command) -> None:
    assert stat.S_IMODE(made.key.stat().st_mode) == 0o600
    assert run("key", "show", str(made.key), "--json").out == made.keys.read_text()
    assert json.loads(made.key.read_text())["private_key"] not in made.keys.read_text()
    assert run("key", "new", str(made.key)).status == 2
    secret = signatures.new_private_key()
    made.key.write_text(f'{{"private_key": "{secret}x", "created_at": "2026-01-01T00:00:00Z"}}')
    done = run("key", "show", str(made.key))
    assert (done.status, secret in done.err) == (2, False)


def test_the_key_has_to_be_one_that_was_given(made: Made, run: Command, tmp_path: Path) -> None:
    others = tmp_path / "others.json"
    others.write_text(run("key", "new", str(tmp_path / "other.key"), "--json").out)
    assert "is none of" in refusal(replace(made, keys=others))
    others.write_text("[]")
    assert "no keys" in refusal(replace(made, keys=others))
    done = run("pack", "show", str(made.path))
    assert "nobody has vouched for" in done.out
    assert "which is in your keys" in run("pack", "show", str(made.path), "--keys", str(made.keys)).out


def test_a_revoked_key_has_signed_nothing(made: Made, run: Command) -> None:
    [key] = json.loads(made.keys.read_text())
    assert run("key", "revoke", str(made.keys), "0" * 16).status == 2
    assert run("key", "revoke", str(made.keys), key["id"]).status == 0
    assert "was revoked" in refusal(made)
    [revoked] = json.loads(made.keys.read_text())
    made.keys.write_text(json.dumps([revoked | {"revoked_at": None, "retired_at": "2026-01-01T00:00:00Z"}]))
    assert "was retired" in refusal(made)


def test_the_key_of_a_signature_is_the_one_that_was_given_by_its_id(made: Made) -> None:
    """A pack whose signature names a known id, and brings another key for it."""
    content = dict(members(made.path))
    foreign = signing.PackKey(private_key=signatures.new_private_key(), created_at="2026-01-01T00:00:00Z")
    forged = signing.sign(content[archive.MANIFEST].decode(), foreign).model_dump()
    [key] = json.loads(made.keys.read_text())
    for changes in ({"key_id": key["id"]}, {"key_id": key["id"], "public_key": key["public_key"]}):
        content[archive.SIGNATURE] = json.dumps(forged | changes).encode()
        write(made.path, list(content.items()))
        assert "another id" in refusal(made) or "was changed" in refusal(made)


def test_no_byte_of_the_content_can_change(made: Made) -> None:
    whole = members(made.path)
    for number, (name, data) in enumerate(whole):
        for position in (0, len(data) // 2, len(data) - 1):
            changed = bytearray(data)
            changed[position] ^= 1
            write(made.path, [*whole[:number], (name, bytes(changed)), *whole[number + 1 :]])
            assert str(made.path) in refusal(made)


def test_a_pack_that_is_cut_off_is_refused_wherever_that_is(made: Made) -> None:
    whole = made.path.read_bytes()
    content = sum(512 + -(-len(data) // 512) * 512 for _, data in members(made.path))
    for length in (0, 1, 511, 512, 600, 1024, *range(2048, content - 512, 997)):
        made.path.write_bytes(whole[:length])
        assert "cut off" in refusal(made) or "no pack" in refusal(made)


MORE = ("more", b"")


@pytest.mark.parametrize(
    ("content", "changes"),
    [
        (lambda whole: [*whole, MORE], {}),
        (lambda whole: [MORE, *whole], {}),
        (lambda whole: whole[:-1], {}),
        (lambda whole: [whole[1], whole[0], *whole[2:]], {}),
        (lambda whole: [whole[0], *whole], {}),
        (lambda whole: [(f"../{whole[0][0]}", whole[0][1]), *whole[1:]], {}),
        (lambda whole: [(f"/etc/{whole[0][0]}", whole[0][1]), *whole[1:]], {}),
        (lambda whole: [(whole[0][0], b""), *whole[1:]], {"type": tarfile.SYMTYPE, "linkname": "/etc/passwd"}),
        (lambda whole: [(whole[0][0], b""), *whole[1:]], {"type": tarfile.LNKTYPE, "linkname": archive.SIGNATURE}),
        (lambda whole: [(whole[0][0], b""), *whole[1:]], {"type": tarfile.FIFOTYPE}),
        (lambda whole: [(whole[0][0], b" " * (2**20 + 1)), *whole[1:]], {}),
        (lambda whole: [whole[0], (whole[1][0], b" " * (2**12 + 1)), *whole[2:]], {}),
        (lambda whole: whole, {"pax_headers": {"path": "x" * 5000}}),
    ],
)
def test_a_file_too_many_or_of_another_kind_is_refused(
    made: Made, tmp_path: Path, content: Any, changes: dict[str, Any]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    write(made.path, content(members(made.path)), **changes)
    assert str(made.path) in refusal(made)
    assert sorted(tmp_path.rglob("*")) == before


def test_nested_headers_of_a_tar_are_refused(made: Made) -> None:
    """Each header of the extended form says that another one follows."""
    header = tarfile.TarInfo("x")
    header.type, header.size = tarfile.XHDTYPE, 512
    made.path.write_bytes((header.tobuf() + bytes(512)) * 3000)
    assert "no pack" in refusal(made)


@pytest.mark.parametrize("declared", [2**20, 2**40])
def test_a_part_does_not_unpack_to_more_than_was_signed(made: Made, declared: int) -> None:
    """Not even the owner of the key can make a reader allocate what the manifest does not say, or too much."""
    bomb = gzip.compress(bytes(2**26))

    def change(manifest: dict[str, Any]) -> None:
        digest = hashlib.sha256(bomb).hexdigest()
        manifest["files"]["bests.jsonl.gz"] = {"sha256": digest, "bytes": len(bomb), "unpacked_bytes": declared}

    signed_again(made, change)
    write(made.path, [(name, bomb if name == "bests.jsonl.gz" else data) for name, data in members(made.path)])
    assert "does not unpack to" in refusal(made) or "over the limit" in refusal(made)


def test_a_newer_form_says_so(made: Made) -> None:
    signed_again(made, lambda manifest: manifest.update(format=2, novelty=[]))
    assert "upgrade loopwright" in refusal(made)
    signed_again(made, lambda manifest: manifest.update(format=1))
    read(made.path, evidence.read_keys(made.keys))  # what a later version adds to this form is left out
    signed_again(made, lambda manifest: manifest.update(kind="certificate"))
    assert "not one that this version can read" in refusal(made)


def forged(line: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield bests that claim more than their certificates."""
    best = line["best"]
    certificate = best["certificate"]
    yield best | {"best_us": 1.0}
    yield best | {"trace": [[], []], "is_baseline": False}
    yield best | {"workload_hash": "c" * 32}
    yield best | {"target": {"kind": "cuda"}}
    yield best | {"device_class": "class-9"}
    yield best | {"certificate": certificate | {"signed": None}}
    yield best | {"certificate": certificate | {"max_rel_error": 0.0}}
    yield best | {"certificate": certificate | {"best_run_secs": [1e-9, 1e-9]}}


def test_who_signs_a_pack_cannot_sign_its_certificates(made: Made) -> None:
    lines = [json.loads(line) for line in gzip.decompress(dict(members(made.path))["bests.jsonl.gz"]).splitlines()]
    for number in range(2):
        for best in forged(lines[number]):
            changed = [*lines[:number], lines[number] | {"best": best}, *lines[number + 1 :]]
            text = "\n".join(map(json.dumps, changed)).encode()
            signed_again(made, lambda manifest: None, bests=text)
            assert "certificate of" in refusal(made)


def test_the_bests_are_as_many_as_the_manifest_says(made: Made) -> None:
    signed_again(made, lambda manifest: manifest.update(bests=4))
    assert "its manifest says 4" in refusal(made)


def test_a_certificate_of_a_revoked_key_of_a_service_is_refused(made: Made) -> None:
    keys = json.loads(gzip.decompress(dict(members(made.path))["keys.json.gz"]))
    revoked = [key | {"revoked_at": "2026-03-01T00:00:00Z"} for key in keys]
    signed_again(made, lambda manifest: None, keys=json.dumps(revoked).encode())
    assert "was revoked" in refusal(made)
    signed_again(made, lambda manifest: None, keys=b"[]")
    assert "none of no keys" in refusal(made)


def test_other_files_are_no_packs(made: Made, run: Command) -> None:
    for content in (b"", b"no tar", bytes(10_240), gzip.compress(made.path.read_bytes())):
        made.path.write_bytes(content)
        done = run("pack", "show", str(made.path))
        assert (done.status, str(made.path) in done.err) == (2, True)
    assert run("pack", "show", str(made.path.with_name("none.pack"))).status == 2
