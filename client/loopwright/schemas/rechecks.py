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
    target: str | dict[str, object] = "auto"


class RecheckResult(Wire):
    """What a certified best takes now, in microseconds a call; None if nothing was measured.

    ``slowdown`` is the best's time over that of its certificate, as far as the unscheduled program has not become
    slower, too; from 1.1 on it is a regression.
    """

    verdict: RecheckVerdict
    rounds: int
    slowdown: Range | None
    best_us: float | None
    baseline_us: float | None
    conditions: str | None
    """TVM, kernel and driver with which it was measured; None if nothing was."""
    message: str | None


class Recheck(Wire):
    """A best that a job races anew; ``result`` is None until then."""

    workload_hash: str
    name: str
    certificate_id: str
    record_id: str
    reason: str
    certified_best_us: float
    certified_baseline_us: float
    result: RecheckResult | None


class RecheckFinished(Wire):
    """Data of the server-sent event ``recheck``: a certified best was raced anew."""

    workload_hash: str
    name: str
    result: RecheckResult
    at: datetime
