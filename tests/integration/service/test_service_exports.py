"""Records as TVM's JSON pair: sent while they are made, whatever else the service has to do."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import pytest

from db.exchange.json_pair import packed, unpack, unpack_certificates
from loopwright.codegen import signatures
from service.context import Context
from service.problems import ProblemError
from service.records import exchange
from tests.integration.service.conftest import Api
from tests.support import played_fleet
from tests.support.programs import product


@pytest.fixture(scope="module")
def exported(api: Api, job: dict[str, Any]) -> list[dict[str, Any]]:
    """All bests of the shared application: at least three, of a product each."""
    assert job
    for rows in (40, 100):
        played_fleet.join(api.database)
        made = api.submit(product(rows, 40), name="another product", budget={"max_trials": 20})
        played_fleet.play(api.database, made["id"])
    found: list[dict[str, Any]] = api.get("/bests", page_size=500)["items"]
    assert len(found) >= 3
    return found


@pytest.fixture
def context(api: Api, monkeypatch: pytest.MonkeyPatch) -> Context:
    """The service's, where a part of an export is one workload."""
    monkeypatch.setattr(exchange, "_WORKLOADS_A_CALL", 1)
    monkeypatch.setattr(exchange, "_AGAIN_SECONDS", 0.0)
    context: Context = api.http.app.state.context  # type: ignore[attr-defined]
    return context


def lines(data: bytes) -> tuple[list[Any], list[Any]]:
    workloads, records = unpack(data)
    return [json.loads(line) for line in workloads.splitlines()], [json.loads(line) for line in records.splitlines()]


@pytest.mark.parametrize("at_once", [1, 2, 50])
def test_all_bests_are_exported(
    api: Api, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(exchange, "_WORKLOADS_A_CALL", at_once)
    answer = api.http.get("/api/v1/records/export", headers=api.headers)
    assert answer.status_code == 200
    workloads, records = lines(answer.content)
    assert len(workloads) == len(exported)
    assert [position for position, _ in records] == list(range(len(exported)))
    assert sorted(min(fields[1]) for _, fields in records) == sorted(
        min(best["certificate"]["best_run_secs"]) for best in exported
    )


def test_the_bests_of_another_target_are_not_exported(api: Api, exported: list[dict[str, Any]]) -> None:
    data = b"".join(exchange.export(api.http.app.state.context, "another"))  # type: ignore[attr-defined]
    assert exported
    assert lines(data) == ([], [])


def test_all_measured_records_of_a_job_are_exported(api: Api, job: dict[str, Any]) -> None:
    answer = api.http.get(f"/api/v1/jobs/{job['id']}/records", headers=api.headers)
    workloads, records = lines(answer.content)
    assert (len(workloads), len(records)) == (1, job["progress"]["trials"] - job["progress"]["failed"])


def archive(data: bytes, certificates: list[dict[str, str]]) -> bytes:
    """Return an export with other certificates."""
    workloads, records = unpack(data)
    signed = BytesIO()
    signed.writelines(f"{json.dumps(each)}\n".encode() for each in certificates)
    return b"".join(packed(len(workloads.encode()), [(workloads, records)], BytesIO(), signed))


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
    _, records = lines(data)
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
    assert report["imported"] == len(records)
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


def test_the_first_part_is_sent_before_the_next_is_made(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = counted(context, monkeypatch)
    parts = exchange.export(context, None)
    assert len(next(parts)) == 512
    first = next(parts)
    assert calls == [0]
    assert first.startswith(b'["')
    rest = b"".join(parts)
    assert calls == list(range(len(exported)))
    assert rest


def test_an_export_that_has_begun_waits_for_a_busy_service(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    counted(context, monkeypatch, refused={1: 503, 2: 429})
    workloads, _ = lines(b"".join(exchange.export(context, None)))
    assert len(workloads) == len(exported)


def test_an_export_that_cannot_begin_is_refused(
    api: Api, context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exported
    counted(context, monkeypatch, refused={0: 503})
    assert api.http.get("/api/v1/records/export", headers=api.headers).status_code == 503


@pytest.mark.whole
def test_an_export_that_fails_in_the_middle_breaks_off(
    context: Context, exported: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exported
    counted(context, monkeypatch, refused={1: 500})
    parts = exchange.export(context, None)
    next(parts)
    with pytest.raises(ProblemError):
        list(parts)


def counted(context: Context, monkeypatch: pytest.MonkeyPatch, refused: dict[int, int] | None = None) -> list[int]:
    """Return the list of calls of the sandbox that are made from now on; calls of some numbers are refused once."""
    calls: list[int] = []
    export, left = context.sandbox.export, dict(refused or {})

    def call(modules: Any, records: Any, first: int) -> Any:
        if first in left:
            raise ProblemError(left.pop(first), "busy", "Too much at once.")
        calls.append(first)
        return export(modules, records, first)

    monkeypatch.setattr(context.sandbox, "export", call)
    return calls
