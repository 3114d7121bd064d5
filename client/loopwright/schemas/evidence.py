"""Signed documents of certificates, and the keys that sign them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from loopwright.codegen.kinds import FailureKind, Grade, SandboxLevel
from loopwright.schemas.base import DeviceState, Wire
from loopwright.schemas.gates import Range


class SigningKey(Wire):
    """A public key of the service (Ed25519). ``GET /keys`` publishes the present key and all earlier ones."""

    id: str
    """The first 16 hexadecimal digits of the SHA-256 of the key."""
    public_key: str
    """The key's 32 bytes in base64."""
    created_at: datetime
    """Time since which it signs."""
    retired_at: datetime | None
    """Time at which another key replaced it; None for the present key. What it signed before stays valid."""
    revoked_at: datetime | None = None
    """Since when nothing that it signed is valid, because others may have its private part; None if it is not
    revoked."""


class SignedDocument(Wire):
    """A document and its signature, as they were made when a certificate was issued."""

    document: str
    """JSON of `loopwright.schemas.Evidence`, exactly as it was signed."""
    key_id: str
    """Id of the key that signed it."""
    signature: str
    """Ed25519 signature of the document's bytes, in base64."""


class CarriedCertificate(Wire):
    """A certificate as it travels with an exported record, in ``loopwright_certificates.json``."""

    document: str
    """As `SignedDocument.document`."""
    key_id: str
    """As `SignedDocument.key_id`."""
    signature: str
    """As `SignedDocument.signature`."""
    public_key: str
    """The key, as `SigningKey.public_key`. Whose it is, the line itself cannot show."""


class Read(BaseModel):
    """A part of a document, in which later versions may have more fields."""

    model_config = ConfigDict(extra="ignore", frozen=True, defer_build=True)


class Machine(Read):
    """The machine on which a race ran."""

    model: str
    """Model of the CPU or GPU."""
    features: list[str]
    """Instruction sets that code may use."""
    cores: int
    """Physical cores."""
    threads: int
    """Threads that functions use."""


class LibrarySamples(Read):
    """Samples of a vendor's library."""

    name: str
    """Name of the library, with versions."""
    run_secs: list[float]
    """Seconds per call."""


class RunnerUp(Read):
    """The fastest program of a closing race besides the best."""

    candidate: str
    """Digest of the candidate."""
    slowdown: Range
    """Its median latency over the best's, with the interval of 95 %. Where both are tied, it may be below 1."""


class Evidence(Read):
    """The document of a certificate: what was certified, where, and all that the closing race measured."""

    format: Literal[1]
    """Version of the document's form."""
    id: str
    """Id of the certificate."""
    created_at: datetime
    """When it was issued."""
    workload_hash: str
    """Digest of the function."""
    candidate: str
    """Digest of the candidate."""
    trace_sha256: str | None
    """SHA-256 of the trace as JSON with sorted keys and without spaces; None for the baseline."""
    artifact_sha256: str | None
    """SHA-256 of the machine code that was raced, as the builder sent it; None if it is unknown."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """Id of the device class."""
    machine: Machine
    """The machine of the device class."""
    runtime: str
    """Versions of the runtime that ran the race."""
    system: str
    """The kernel and the driver under the race."""
    tvm_version: str
    """Version of TVM that built the schedule."""
    codegen_version: int
    """The version of ``loopwright.codegen`` that applying the trace needs."""
    inputs: str
    """In words: how the inputs were drawn."""
    seed: int | None
    """Seed from which they were drawn; None if it is unknown."""
    rtol: float
    """As `Certificate.rtol`."""
    atol: float
    """As `Certificate.atol`."""
    max_abs_error: float
    """As `Certificate.max_abs_error`."""
    max_rel_error: float
    """As `Certificate.max_rel_error`."""
    baseline_run_secs: list[float]
    """As `Certificate.baseline_run_secs`."""
    best_run_secs: list[float]
    """As `Certificate.best_run_secs`."""
    interval: Range
    """As `Certificate.interval`."""
    grade: Grade
    """As `Certificate.grade`."""
    contenders: int
    """As `Certificate.contenders`."""
    runner_up: RunnerUp | None = None
    """As `Certificate.runner_up`."""
    rejected: dict[str, FailureKind]
    """Why candidates of the race may not be published, by digest."""
    library: LibrarySamples | None
    """As `Certificate.library`, without its median."""
    sandbox: SandboxLevel
    """As `Certificate.sandbox`."""
    device_state: DeviceState | None
    """As `Certificate.device_state`."""
