"""What the client does not compile: bests whose certificates are not what the service signed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import loopwright
from loopwright import schemas
from loopwright.cli.views import certificate_words
from loopwright.codegen import signatures
from loopwright.results import evidence
from tests.support.evidence import KEY, RESULT, rechecked, sign, signed
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import KEYS, FakeService, best_json, job_json
from tests.unit.client.known_bests import serve

HASH = "0" * 32
TRACE = [["GetSBlock", [], ["a", "b"], ["v"]], [0.1, 2**70]]
LIBRARY = {"name": "oneDNN 3", "us": 25.0, "run_secs": [25e-6, 25e-6]}
REJECTED = {"candidate": "c" * 32, "record_id": None, "stage": "certify", "kind": "WRONG_RESULT", "message": "by 0.5"}
STATE = {"sm_mhz": 1980, "memory_mhz": None, "celsius": 61, "watts": 412, "throttled": ["power_cap"]}


RUNNER_UP = {"candidate": "c" * 32, "slowdown": {"value": 1.1, "low": 1.05, "high": 1.2}}


def honest() -> dict[str, Any]:
    best = best_json(HASH, TRACE)
    more = {"library": LIBRARY, "rejected": [REJECTED], "device_state": STATE, "runner_up": RUNNER_UP}
    return signed(best | {"certificate": best["certificate"] | more})


def check(best: dict[str, Any], *keys: dict[str, Any]) -> schemas.Evidence:
    known = evidence.by_id(schemas.SigningKey.model_validate(key) for key in keys or (KEY,))
    return evidence.check_best(schemas.Best.model_validate(best), known)


def in_certificate(best: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return best | {"certificate": best["certificate"] | changes}


def test_an_honest_best_is_taken() -> None:
    assert check(honest()).workload_hash == HASH


def test_the_runner_up_is_shown() -> None:
    words = certificate_words(schemas.Best.model_validate(honest()).certificate)
    assert "; cccccccc came second, at 1.10x the time (1.05x to 1.20x)" in words


CERTIFICATE = {
    "id": "other",
    "created_at": "2026-01-01T00:00:01Z",
    "inputs": "1 set",
    "rtol": 1e-2,
    "atol": 1e-2,
    "max_abs_error": 0.0,
    "max_rel_error": 0.0,
    "rounds": 3,
    "baseline_run_secs": [1e-4, 2e-4],
    "best_run_secs": [1e-5, 1e-6],
    "baseline_us": 100.001,
    "best_us": 9.999,
    "speedup": 10.001,
    "interval": {"value": 10.0, "low": 9.9, "high": 10.1},
    "grade": "noisy",
    "contenders": 25,
    "runner_up": RUNNER_UP | {"slowdown": {"value": 2.0, "low": 1.9, "high": 2.1}},
    "rejected": [],
    "library": LIBRARY | {"us": 26.0},
    "sandbox": "namespaces",
    "device_state": STATE | {"throttled": []},
    "conditions": "TVM 0.28, Linux 6.1",
    "checked_at": "2026-02-01T00:00:00Z",
    "regressed_at": "2026-02-01T00:00:00Z",
    "signed": None,
    "verdict": sign("{}"),
}
BEST = {
    "workload_hash": "1" * 32,
    "target": {"kind": "llvm", "mcpu": "znver3"},
    "device_class": "class-2",
    "baseline_us": 1000.0,
    "best_us": 1.0,
    "speedup": 100.0,
    "is_baseline": True,
    "trace": [TRACE[0], [0.2, 2**70]],
    "codegen_version": 2,
    "created_at": "2026-01-02T00:00:00Z",
}


@pytest.mark.parametrize("field", CERTIFICATE)
def test_each_field_of_a_certificate_is_what_was_signed(field: str) -> None:
    with pytest.raises(loopwright.WrongCertificate):
        check(in_certificate(honest(), **{field: CERTIFICATE[field]}))


@pytest.mark.parametrize("field", BEST)
def test_each_field_of_a_best_that_decides_what_is_compiled_is_what_was_signed(field: str) -> None:
    with pytest.raises(loopwright.WrongCertificate):
        check(honest() | {field: BEST[field]})


def test_no_field_of_a_certificate_is_left_out() -> None:
    assert set(CERTIFICATE) == set(schemas.Certificate.model_fields)
    derived = {"name", "source", "record_id", "rule", "packs_weight", "math", "certificate"}
    assert {*BEST, *derived} == set(schemas.Best.model_fields)


@pytest.mark.parametrize("regressed_at", [None, "2026-01-15T00:00:00Z"])
def test_a_recheck_leaves_a_certificate_valid(regressed_at: str | None) -> None:
    check(rechecked(honest(), regressed_at=regressed_at))


@pytest.mark.parametrize(
    "change",
    [
        {"conditions": "TVM 0.27, Linux 6.1"},
        {"checked_at": "2026-03-01T00:00:00Z"},
        {"checked_at": None},
        {"regressed_at": None},
        {"verdict": None},
    ],
)
def test_what_a_recheck_sets_is_what_was_signed(change: dict[str, Any]) -> None:
    best = rechecked(honest(), regressed_at="2026-02-01T00:00:00Z")
    check(best)
    with pytest.raises(loopwright.WrongCertificate, match="signed"):
        check(in_certificate(best, **change))


@pytest.mark.parametrize("changes", [{"certificate_id": "another"}, {"workload_hash": "1" * 32}])
def test_a_recheck_of_another_certificate_is_not_believed(changes: dict[str, Any]) -> None:
    with pytest.raises(loopwright.WrongCertificate, match="another certificate"):
        check(rechecked(honest(), **changes))


def test_a_certificate_is_no_recheck_and_a_recheck_no_certificate() -> None:
    best = rechecked(honest())
    certificate = best["certificate"]
    for change in ({"verdict": certificate["signed"]}, {"signed": certificate["verdict"]}):
        with pytest.raises(loopwright.WrongCertificate, match="form"):
            check(in_certificate(best, **change))


def test_a_recheck_by_a_key_of_somebody_else_is_not_believed() -> None:
    private = signatures.new_private_key()
    with pytest.raises(loopwright.WrongCertificate, match="none of"):
        check(rechecked(honest(), private))
    check(rechecked(honest(), private), KEY, key(private))
    with pytest.raises(loopwright.WrongCertificate, match="retired"):
        check(rechecked(honest(), private), KEY, key(private, retired_at="2026-01-31T00:00:00Z"))


def recheck_json(**changes: Any) -> dict[str, Any]:
    best = rechecked(honest())
    return {
        "workload_hash": HASH,
        "name": best["name"],
        "certificate_id": best["certificate"]["id"],
        "record_id": best["record_id"],
        "reason": "a user asked",
        "certified_best_us": best["best_us"],
        "certified_baseline_us": best["baseline_us"],
        "result": RESULT,
        "signed": best["certificate"]["verdict"],
    } | changes


@pytest.mark.parametrize(
    ("changes", "holds"),
    [
        ({}, True),
        ({"result": None, "signed": None}, True),
        ({"signed": None}, False),
        ({"result": RESULT | {"verdict": "regression"}}, False),
        ({"result": RESULT | {"best_us": 12.0}}, False),
        ({"certificate_id": "another"}, False),
        ({"workload_hash": "1" * 32}, False),
    ],
)
def test_a_client_reads_rechecks_as_they_were_signed(
    service: FakeService, client: loopwright.Client, changes: dict[str, Any], holds: bool
) -> None:
    service.on("GET", "/api/v1/jobs/job-1", job_json("succeeded"))
    service.on("GET", "/api/v1/jobs/job-1/rechecks", {"items": [recheck_json(**changes)], "next_page_token": None})
    job = client.job("job-1")
    if holds:
        assert len(job.rechecks()) == 1
    else:
        with pytest.raises(loopwright.WrongCertificate):
            job.rechecks()


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.replace('"seed":0', '"seed":1'),
        lambda document: document + " ",
        lambda document: "",
        lambda document: "\ud800",
    ],
)
def test_each_byte_of_the_document_is_signed(change: Callable[[str], str]) -> None:
    best = honest()
    document = best["certificate"]["signed"]
    with pytest.raises((loopwright.WrongCertificate, ValueError)):
        check(in_certificate(best, signed=document | {"document": change(document["document"])}))


@pytest.mark.parametrize("signature", ["", "AAAA", "no base64", "é", "A" * 88])
def test_what_is_no_signature_is_refused(signature: str) -> None:
    best = honest()
    with pytest.raises(loopwright.WrongCertificate, match="signature"):
        check(in_certificate(best, signed=best["certificate"]["signed"] | {"signature": signature}))


def key(private: str, **changes: Any) -> dict[str, Any]:
    public = signatures.public_key(private)
    return KEY | {"id": signatures.key_id(public), "public_key": public} | changes


def test_a_key_of_somebody_else_is_not_believed() -> None:
    private = signatures.new_private_key()
    with pytest.raises(loopwright.WrongCertificate, match="none of"):
        check(signed(best_json(HASH, TRACE), private))
    assert check(signed(best_json(HASH, TRACE), private), KEY, key(private))


def test_a_key_under_the_id_of_another_is_not_believed() -> None:
    with pytest.raises(loopwright.WrongCertificate, match="another id"):
        check(honest(), key(signatures.new_private_key(), id=KEY["id"]))


@pytest.mark.parametrize(("retired_at", "holds"), [("2026-01-02T00:00:00Z", True), ("2025-12-31T00:00:00Z", False)])
def test_a_retired_key_signed_only_before_it_was_retired(retired_at: str, holds: bool) -> None:
    if holds:
        check(honest(), KEY | {"retired_at": retired_at})
    else:
        with pytest.raises(loopwright.WrongCertificate, match="retired"):
            check(honest(), KEY | {"retired_at": retired_at})


@pytest.mark.parametrize("retired_at", [None, "2026-01-02T00:00:00Z"])
def test_nothing_that_a_revoked_key_signed_is_believed_whatever_its_date(retired_at: str | None) -> None:
    private = signatures.new_private_key()
    revoked = key(private, retired_at=retired_at, revoked_at="2026-03-01T00:00:00Z")
    with pytest.raises(loopwright.WrongCertificate, match=r"revoked at 2026-03-01"):
        check(signed(best_json(HASH, TRACE), private), KEY, revoked)
    with pytest.raises(loopwright.WrongCertificate, match="revoked"):
        check(rechecked(honest(), private), KEY, revoked)


def test_a_client_hands_on_no_best_that_was_changed(service: FakeService, client: loopwright.Client) -> None:
    ask = client._bests.on_target("auto")
    serve(service, best_json(HASH, TRACE))
    assert ask([HASH]).hits
    serve(service, best_json(HASH, TRACE) | {"trace": []})
    with pytest.raises(loopwright.WrongCertificate, match="another schedule"):
        ask([HASH])


def test_the_command_verifies_a_best_in_a_file(service: FakeService, run: Command, tmp_path: Path) -> None:
    best, keys = tmp_path / "best.json", tmp_path / "keys.json"
    best.write_text(json.dumps(honest()))
    keys.write_text(json.dumps([KEY]))
    assert "holds" in run("verify", str(best)).out
    assert json.loads(run("verify", str(best), "--keys", str(keys), "--json").out)["workload_hash"] == HASH
    best.write_text(json.dumps(honest() | {"trace": []}))
    assert run("verify", str(best)).status == 3
    assert run("verify", str(keys)).status == 2
    assert run("verify", str(best), "--keys", str(best)).status == 2


def imported_record(private_key: str, **changes: Any) -> dict[str, Any]:
    """Return a record that was imported with a certificate."""
    best = signed(best_json(HASH, TRACE), private_key)
    certificate = {
        "signed": best["certificate"]["signed"],
        "public_key": signatures.public_key(private_key),
        "signed_by": "another deployment",
        "imported_at": "2026-03-01T00:00:00Z",
    }
    unknown = (
        "job_id",
        "predicted",
        "parent",
        "worker",
        "seed",
        "certificate",
        "trace_python",
        "job_name",
        "reproduce",
    )
    record = {field: best[field] for field in ("workload_hash", "name", "target", "trace", "is_baseline", "created_at")}
    return {
        **dict.fromkeys(unknown),
        **record,
        **{"id": "record", "device_class": "imported", "median_us": 10.0, "certified": False, "run_secs": [1e-5]},
        **{"device": {}, "origin": "import", "tvm_version": "0.27", "script_before": "", "script_after": ""},
        "imported_certificate": certificate,
        **changes,
    }


def test_the_certificate_of_an_imported_record_is_verified_with_the_keys_of_its_deployment() -> None:
    private = signatures.new_private_key()

    def verified(record: dict[str, Any], *keys: dict[str, Any]) -> schemas.Evidence:
        known = evidence.by_id(schemas.SigningKey.model_validate(each) for each in keys)
        return evidence.check_best(schemas.RecordDetail.model_validate(record), known)

    assert verified(imported_record(private), KEY, key(private)).workload_hash == HASH
    with pytest.raises(loopwright.WrongCertificate, match="none of"):
        verified(imported_record(private), KEY)
    wrong: tuple[dict[str, Any], ...] = ({"trace": []}, {"workload_hash": "1" * 32}, {"target": {"kind": "cuda"}})
    for changes in wrong:
        with pytest.raises(loopwright.WrongCertificate):
            verified(imported_record(private, **changes), key(private))
    with pytest.raises(loopwright.WrongCertificate, match="not certified"):
        verified(imported_record(private, imported_certificate=None), key(private))


def test_a_client_asks_again_for_keys_after_a_rotation(service: FakeService, client: loopwright.Client) -> None:
    ask, private = client._bests.on_target("auto"), signatures.new_private_key()
    serve(service, best_json(HASH, TRACE))
    assert ask([HASH]).hits
    serve(service, signed(best_json(HASH, TRACE), private))
    with pytest.raises(loopwright.WrongCertificate):
        ask([HASH])
    service.on("GET", KEYS, {"items": [key(private), KEY], "next_page_token": None})
    assert ask([HASH]).hits
