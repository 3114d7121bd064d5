"""The signed document of a certificate, which `loopwright.schemas.Evidence` describes and reads."""

from __future__ import annotations

import json
from datetime import datetime

from db.models import DeviceClass, Target, Task, Trial
from loopwright.codegen import signatures
from tuner.codec import encode
from tuner.types import Certificate

FORMAT = 1


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
            "contenders": certificate.contenders,
            "rejected": {key: failure.kind.value for key, failure in certificate.rejected.items()},
            "library": encode(certificate.library),
            "sandbox": encode(certificate.sandbox),
            "device_state": encode(certificate.device_state),
        }
    )
