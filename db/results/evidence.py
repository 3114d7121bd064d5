"""What is signed: certificates and verdicts of rechecks, as `loopwright.schemas.evidence` describes and reads them."""

from __future__ import annotations

import functools
import json
import math
from datetime import datetime
from typing import Any

from db.models import Certificate as CertificateRow
from db.models import DeviceClass, Target, Task, Trial
from db.views import SpeedupInterval
from loopwright.codegen import signatures
from loopwright.codegen.kinds import Grade
from tuner.codec import encode
from tuner.types import Certificate, RunnerUp

FORMAT = 1


def interval_of(document: str) -> SpeedupInterval:
    """Return the interval of a document's speedup."""
    interval, _ = _found_in(document)
    return interval


def runner_up_of(document: str) -> RunnerUp | None:
    """Return the runner-up of a document; None if it has none, as documents from before they had any."""
    _, runner_up = _found_in(document)
    return runner_up


@functools.lru_cache(maxsize=2000)
def _found_in(document: str) -> tuple[SpeedupInterval, RunnerUp | None]:
    """Return the interval and the runner-up. A document has some kB, and the same ones are shown again."""
    fields = json.loads(document)
    interval = SpeedupInterval(**fields["interval"], grade=Grade(fields["grade"]))
    second = fields.get("runner_up")
    if second is None:
        return interval, None
    slowdown = second["slowdown"]
    high = math.inf if slowdown["high"] is None else slowdown["high"]
    return interval, RunnerUp(second["candidate"], slowdown["value"], slowdown["low"], high)


def document(
    certificate: Certificate,
    *,
    id: str,
    created_at: datetime,
    task: Task,
    trial: Trial,
    device_class: DeviceClass,
    target: Target,
) -> str:
    """Return the text that is signed: what was certified, on which machine, and everything that the race measured."""
    # Imported here, because processes that read certificates need no SciPy.
    from tuner.races.grade import graded

    interval, grade = graded(certificate.baseline_run_secs, certificate.best_run_secs)
    return signatures.canonical(
        {
            "format": FORMAT,
            "id": id,
            "created_at": created_at.isoformat(),
            "workload_hash": task.workload_hash,
            "candidate": certificate.candidate_hash,
            "trace_sha256": signatures.trace_digest(None if trial.trace_json is None else json.loads(trial.trace_json)),
            "artifact_sha256": certificate.artifact_sha256,
            "target": json.loads(target.json),
            "device_class": device_class.id,
            "machine": {
                "model": device_class.model,
                "features": device_class.features,
                "cores": device_class.cores,
                "threads": device_class.threads,
            },
            "runtime": device_class.runtime,
            "system": certificate.system,
            "tvm_version": trial.tvm_version,
            "codegen_version": trial.codegen_version,
            "inputs": certificate.inputs,
            "seed": certificate.seed,
            "rtol": certificate.rtol,
            "atol": certificate.atol,
            "max_abs_error": certificate.max_abs_error,
            "max_rel_error": certificate.max_rel_error,
            "baseline_run_secs": list(certificate.baseline_run_secs),
            "best_run_secs": list(certificate.best_run_secs),
            "interval": _range(interval.value, interval.low, interval.high),
            "grade": grade.value,
            "contenders": certificate.contenders,
            "runner_up": _runner_up(certificate.runner_up),
            "rejected": {key: failure.kind.value for key, failure in certificate.rejected.items()},
            "library": encode(certificate.library),
            "sandbox": encode(certificate.sandbox),
            "device_state": encode(certificate.device_state),
        }
    )


def _range(value: float, low: float, high: float) -> dict[str, float | None]:
    return {"value": value, "low": low, "high": high if math.isfinite(high) else None}


def _runner_up(second: RunnerUp | None) -> dict[str, Any] | None:
    if second is None:
        return None
    return {"candidate": second.candidate_hash, "slowdown": _range(second.slowdown, second.low, second.high)}


def verdict(certificate: CertificateRow, job_id: str, result: dict[str, Any]) -> str:
    """Return the text that is signed of a recheck: its result, and what the certificate says of itself since then.

    ``result`` is in the form of the wire.
    """
    regressed_at = certificate.regressed_at
    assert certificate.checked_at is not None, "a certificate that was raced again says when"
    return signatures.canonical(
        {
            "format": FORMAT,
            "kind": "recheck",
            "certificate_id": certificate.id,
            "workload_hash": certificate.workload_hash,
            "device_class": certificate.device_class_id,
            "job_id": job_id,
            "checked_at": certificate.checked_at.isoformat(),
            "conditions": certificate.conditions,
            "regressed_at": None if regressed_at is None else regressed_at.isoformat(),
            "result": result,
        }
    )
