"""Rechecks: whether certified bests still hold."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from loopwright.codegen.kinds import RecheckVerdict
from loopwright.schemas.base import Wire, WorkloadHash
from loopwright.schemas.evidence import Read, SignedDocument
from loopwright.schemas.gates import Range


class NewRecheck(Wire):
    """Body of ``POST /rechecks``: the workloads whose bests are raced again, on present machines."""

    workloads: Annotated[list[WorkloadHash], Field(min_length=1, max_length=1000)]
    """Hashes of the workloads."""
    target: str | dict[str, object] = "auto"
    """Target of the machines: ``auto``, a TVM target string or tag, or its JSON."""


class RecheckResult(Wire):
    """Present latency of a certified best, in microseconds per call; None if nothing was measured.

    ``slowdown`` is the best's time over that of its certificate, as far as the unscheduled program has not become
    slower, too; from 1.1 on it is a regression.
    """

    verdict: RecheckVerdict
    """``holds``, ``regression``, ``failed`` (it no longer runs, or computes a wrong result), or ``unclear``
    (after all rounds nothing was shown)."""
    rounds: int
    """Rounds of the race."""
    slowdown: Range | None
    """Slowdown of the best against its certificate, with its interval; None if nothing was measured."""
    best_us: float | None
    """Present latency of the best, in microseconds; None if it was not measured."""
    baseline_us: float | None
    """Present latency of the unscheduled program, in microseconds; None if it was not measured."""
    conditions: str | None
    """TVM, kernel and driver with which it was measured; None if nothing was."""
    message: str | None
    """Why it failed; None if it did not."""


class Recheck(Wire):
    """A best that a job races again; ``result`` is None until then."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    source: str | None = None
    """Where the model of the job that found it calls the function, as `Task.source`; None where that is not known."""
    certificate_id: str
    """Id of the best's certificate."""
    record_id: str
    """Record of the best."""
    reason: str
    """Reason of the recheck: the last race is old, the machines changed, or a user asked."""
    certified_best_us: float
    """Latency of the best in the certificate, in microseconds."""
    certified_baseline_us: float
    """Latency of the unscheduled program in the certificate, in microseconds."""
    result: RecheckResult | None
    """The result; None until the race."""
    signed: SignedDocument | None = None
    """The result as the service signed it, which `RecheckEvidence` describes; None until the race."""


class RecheckEvidence(Read):
    """The document of a recheck: its result, and what the certificate says of itself since then."""

    format: Literal[1]
    """Version of the document's form."""
    kind: Literal["recheck"]
    """What is signed."""
    certificate_id: str
    """Id of the certificate of the best that was raced again."""
    workload_hash: str
    """Digest of the function."""
    device_class: str
    """Id of the device class."""
    job_id: str
    """The job that raced it."""
    checked_at: datetime
    """As `Certificate.checked_at`."""
    conditions: str
    """As `Certificate.conditions`."""
    regressed_at: datetime | None
    """As `Certificate.regressed_at`."""
    result: RecheckResult
    """The result."""


class RecheckFinished(Wire):
    """Data of the server-sent event ``recheck``: a certified best was raced again."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    result: RecheckResult
    """The result."""
    at: datetime
    """When it happened."""
