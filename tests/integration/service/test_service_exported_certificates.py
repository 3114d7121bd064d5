"""Certificates that travel with exported records, and what an import makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import BytesIO
from typing import Any

import pytest

from db.exchange.json_pair import packed, unpack, unpack_certificates
from loopwright.codegen import signatures
from service.records import exchange
from tests.integration.service.conftest import Api, running, settings_in
from tests.support import played_fleet
from tests.support.programs import product


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """An application of its own: a test revokes its key."""
    with running(settings_in(tmp_path_factory.mktemp("certificates"))) as api:
        yield api


@pytest.fixture(scope="module")
def exported(api: Api) -> list[dict[str, Any]]:
    """Three bests, of a product each."""
    for rows in (40, 64, 100):
        played_fleet.join(api.database)
        made = api.submit(product(rows, 40), name="a product", budget={"max_trials": 20})
        played_fleet.play(api.database, made["id"])
    found: list[dict[str, Any]] = api.get("/bests", page_size=500)["items"]
    assert len(found) == 3
    return found


def archive(data: bytes, certificates: list[dict[str, str]]) -> bytes:
    """Return an export with other certificates, and with latencies of another machine."""
    workloads, records = unpack(data)
    records = "".join(f"{json.dumps(_slower(json.loads(line)))}\n" for line in records.splitlines())
    signed = BytesIO()
    signed.writelines(f"{json.dumps(each)}\n".encode() for each in certificates)
    return b"".join(packed(len(workloads.encode()), [(workloads, records)], BytesIO(), signed))


def _slower(line: list[Any]) -> list[Any]:
    number, (trace, run_secs, *rest) = line
    return [number, [trace, [1.5 * float(seconds) for seconds in run_secs], *rest]]


def imported(api: Api, data: bytes) -> dict[str, Any]:
    headers = {**api.headers, "Content-Type": exchange.TAR}
    answer = api.http.post("/api/v1/records/import", content=data, headers=headers)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def signed_again(line: dict[str, str], private_key: str, **changes: Any) -> dict[str, str]:
    """Return a certificate with other fields, which another key has signed."""
    document = signatures.canonical(json.loads(line["document"]) | changes)
    public_key = signatures.public_key(private_key)
    return {
        "document": document,
        "key_id": signatures.key_id(public_key),
        "signature": signatures.sign(private_key, document),
        "public_key": public_key,
    }


def test_certificates_travel_with_records_and_are_worth_what_their_keys_are(
    api: Api, exported: list[dict[str, Any]]
) -> None:
    data = api.http.get("/api/v1/records/export", headers=api.headers).content
    records = unpack(data)[1].splitlines()
    certificates = [json.loads(line) for line in unpack_certificates(data) if line]
    assert len(certificates) == len(records) == len(exported)
    for certificate in certificates:
        assert signatures.is_signed(certificate["document"], certificate["signature"], certificate["public_key"])

    first, second, *rest = certificates
    private_key = signatures.new_private_key()
    foreign = signed_again(second, private_key)
    forged = [
        rest[0] | {"document": rest[0]["document"].replace("certificate", "x").replace('"seed":', '"seed": ')},
        rest[0] | {"public_key": foreign["public_key"]},
        rest[0] | {"signature": foreign["signature"]},
        {"document": "{}"},
    ]
    report = imported(api, archive(data, [first, foreign, *forged]))
    assert report["imported"] + report["duplicates"] == len(records)
    assert (report["signed_here"], report["signed_elsewhere"]) == (1, 1)
    assert [error.split(":")[0] for error in report["errors"]] == [
        f"loopwright_certificates.json line {number}" for number in (3, 4, 5, 6)
    ]

    by_hash = {}
    for listed in api.get("/records", page_size=500)["items"]:
        record = api.get(f"/records/{listed['id']}")
        if record["origin"] == "import":
            assert (record["certificate"], record["certified"]) == (None, False)
            by_hash[record["workload_hash"]] = record["imported_certificate"]
    here, there, nowhere = (by_hash[json.loads(each["document"])["workload_hash"]] for each in (first, second, rest[0]))
    assert (here["signed_by"], there["signed_by"], nowhere) == ("this service", "another deployment", None)
    assert there["signed"]["document"] == second["document"]
    assert there["public_key"] == signatures.public_key(private_key)
    # What comes later does not replace it.
    again = imported(api, archive(data, [signed_again(first, private_key)]))
    assert (again["imported"], again["duplicates"], again["signed_elsewhere"]) == (0, len(records), 1)

    stolen = here["signed"]["key_id"]
    api.database.signing_keys.revoke(stolen)
    [own] = [
        record["imported_certificate"]
        for listed in api.get("/records", page_size=500)["items"]
        if (record := api.get(f"/records/{listed['id']}"))["origin"] == "import"
        and record["imported_certificate"]
        and record["imported_certificate"]["signed"]["key_id"] == stolen
    ]
    assert own["signed_by"] == "a revoked key"
    refused = imported(api, archive(data, [first]))
    assert (refused["signed_here"], len(refused["errors"])) == (0, 1)
    assert "was revoked" in refused["errors"][0]


def test_a_certificate_of_another_schedule_or_target_is_not_taken_for_a_records(
    api: Api, exported: list[dict[str, Any]]
) -> None:
    data = api.http.get("/api/v1/records/export", headers=api.headers).content
    line, private_key = json.loads(unpack_certificates(data)[0]), signatures.new_private_key()
    for changes in ({"trace_sha256": "0" * 64}, {"target": {"kind": "cuda"}}, {"workload_hash": "1" * 32}):
        report = imported(api, archive(data, [signed_again(line, private_key, **changes)]))
        assert (report["signed_here"], report["signed_elsewhere"]) == (0, 0)
