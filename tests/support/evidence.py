"""Signatures of what played services answer."""

from __future__ import annotations

from typing import Any

from loopwright.codegen import signatures
from loopwright.codegen.versions import TVM_VERSION

PRIVATE_KEY = signatures.new_private_key()
KEY = {
    "id": signatures.key_id(signatures.public_key(PRIVATE_KEY)),
    "public_key": signatures.public_key(PRIVATE_KEY),
    "created_at": "2026-01-01T00:00:00Z",
    "retired_at": None,
}
RESULT = {
    "verdict": "holds",
    "rounds": 3,
    "slowdown": {"value": 1.01, "low": 0.97, "high": 1.04},
    "best_us": 12.5,
    "baseline_us": 130.0,
    "conditions": "TVM 0.27, Linux 6.8",
    "message": None,
}
TOLERANCES = ("rtol", "atol", "max_abs_error", "max_rel_error")
COPIED = ("id", "created_at", "inputs", *TOLERANCES, "baseline_run_secs", "best_run_secs", "contenders", "sandbox")


def signed(best: dict[str, Any], private_key: str = PRIVATE_KEY) -> dict[str, Any]:
    """Return a best as JSON whose certificate is signed."""
    certificate = best["certificate"]
    library = certificate["library"]
    document = signatures.canonical(
        {field: certificate[field] for field in COPIED}
        | {field: best[field] for field in ("workload_hash", "target", "device_class")}
        | {
            "format": 1,
            "candidate": "0" * 32,
            "trace_sha256": signatures.trace_digest(best["trace"]),
            "artifact_sha256": None,
            "machine": {"model": "cpu", "features": [], "cores": 2, "threads": 2},
            "runtime": "TVM 0.27",
            "system": "Linux 6.1",
            "tvm_version": TVM_VERSION,
            "codegen_version": best.get("codegen_version", 1),
            "seed": 0,
            "runner_up": certificate.get("runner_up"),
            "rejected": {each["candidate"]: each["kind"] for each in certificate["rejected"]},
            "library": library and {"name": library["name"], "run_secs": library["run_secs"]},
            "device_state": certificate.get("device_state"),
            "interval": certificate["interval"],
            "grade": certificate["grade"],
        }
    )
    return best | {"certificate": certificate | {"signed": sign(document, private_key)}}


def rechecked(best: dict[str, Any], private_key: str = PRIVATE_KEY, **changes: Any) -> dict[str, Any]:
    """Return a best as JSON that was raced again; ``changes`` are fields of what is signed of that."""
    certificate = best["certificate"]
    state = {"checked_at": "2026-02-01T00:00:00Z", "conditions": "TVM 0.27, Linux 6.8", "regressed_at": None}
    document = {
        "format": 1,
        "kind": "recheck",
        "certificate_id": certificate["id"],
        "workload_hash": best["workload_hash"],
        "device_class": best["device_class"],
        "job_id": "job",
        "result": RESULT,
    }
    verdict = sign(signatures.canonical(document | state | changes), private_key)
    shown = {field: changes.get(field, value) for field, value in state.items()}
    return best | {"certificate": certificate | shown | {"verdict": verdict}}


def sign(document: str, private_key: str = PRIVATE_KEY) -> dict[str, Any]:
    """Return a document with its signature."""
    return {
        "document": document,
        "key_id": signatures.key_id(signatures.public_key(private_key)),
        "signature": signatures.sign(private_key, document),
    }
