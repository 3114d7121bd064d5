"""Rechecks: whether certified bests still are what their certificates say."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from loopwright.schemas.base import Wire, WorkloadHash
from loopwright.schemas.gates import Range

RecheckVerdict = Literal["holds", "regression", "failed", "unclear"]
"""``failed``: it does not run any more, or computes a wrong result; ``unclear``: after all rounds nothing was shown."""


class NewRecheck(Wire):
    """Body of ``POST /rechecks``: the workloads whose bests are to be raced anew, on machines that are there now."""

    workloads: Annotated[list[WorkloadHash], Field(min_length=1, max_length=1000)]
    """Hashes of the workloads."""
    target: str | dict[str, object] = "auto"
    """On which machines: ``auto``, a TVM target string or tag, or its JSON."""


class RecheckResult(Wire):
    """What a certified best takes now, in microseconds a call; None if nothing was measured.

    ``slowdown`` is the best's time over that of its certificate, as far as the unscheduled program has not become
    slower, too; from 1.1 on it is a regression.
    """

    verdict: RecheckVerdict
    """``holds``, ``regression``, ``failed`` (it does not run any more, or computes a wrong result), or ``unclear``
    (after all rounds nothing was shown)."""
    rounds: int
    """Rounds of the race."""
    slowdown: Range | None
    """Time of the best over that of its certificate, with its interval; None if nothing was measured."""
    best_us: float | None
    """What the best takes now, in microseconds; None if it was not measured."""
    baseline_us: float | None
    """What the unscheduled program takes now, in microseconds; None if it was not measured."""
    conditions: str | None
    """TVM, kernel and driver with which it was measured; None if nothing was."""
    message: str | None
    """Why it failed; None if it did not."""


class Recheck(Wire):
    """A best that a job races anew; ``result`` is None until then."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    certificate_id: str
    """The certificate that is in question."""
    record_id: str
    """Record of the best."""
    reason: str
    """Why it is raced anew: because it is old, because the machines changed, or because somebody asked."""
    certified_best_us: float
    """Latency of the best in the certificate, in microseconds."""
    certified_baseline_us: float
    """Latency of the unscheduled program in the certificate, in microseconds."""
    result: RecheckResult | None
    """What came of it; None until then."""


class RecheckFinished(Wire):
    """Data of the server-sent event ``recheck``: a certified best was raced anew."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    result: RecheckResult
    """What came of it."""
    at: datetime
    """When it happened."""
