"""Gates: whether a model became slower than a reference, for continuous integration."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from loopwright.codegen.kinds import Change, GateVerdict
from loopwright.schemas.base import Wire, WorkloadHash


class ReferenceFunction(Wire):
    """A function of the reference: which record runs in the race, and how often the model calls it."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    """Name of the function."""
    workload_hash: WorkloadHash
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    weight: Annotated[int, Field(ge=1)]
    """How often the model calls it."""
    record_id: Annotated[str, Field(min_length=1, max_length=100)]
    """The record whose program runs in the race."""
    source: Annotated[str | None, Field(max_length=100_000)] = None
    """Where the model calls it, as `Task.source`; None where that is not known."""


class Gate(Wire):
    """The reference with which a job's model is compared when its tasks are finished."""

    against: str | Annotated[list[ReferenceFunction], Field(min_length=1, max_length=10_000)]
    """The id of a job, or the name of one (the newest that succeeded), or what `ReferenceFunction` describes."""
    max_slowdown: Annotated[float, Field(ge=0, le=10)] = 0.03
    """Share by which one run of the model may be slower: 0.03 for three percent."""


class Range(Wire):
    """An estimate with its 95 % interval; ``low`` is 0 and ``high`` None after a single round."""

    value: float
    """The estimate."""
    low: float
    """Lower end of the interval."""
    high: float | None
    """Upper end of the interval; None if it is not known."""


class GateFunction(Wire):
    """A function, in microseconds a call. ``ratio`` is the candidate's time over the reference's."""

    name: str
    """Name of the function."""
    source: str | None = None
    """Where the submitted model calls it, as `Task.source`, or the reference if the model lacks it; None where that is
    not known."""
    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    change: Change
    """``same``: the same program, which was not measured."""
    reference_us: float | None
    """Latency in the reference; None if the reference lacks the function."""
    candidate_us: float | None
    """Latency in the submitted model; None if the model lacks the function."""
    ratio: Range | None
    """``candidate_us / reference_us``, with its interval; None if one of them is missing."""
    message: str | None
    """Why it was not measured; None if it was."""


class GateResult(Wire):
    """The result of a gate. Times are those of one run of the model, the sum over its functions, in microseconds."""

    verdict: GateVerdict
    """``unclear``: after all rounds neither a regression nor its absence was shown."""
    max_slowdown: float
    """The share by which it may be slower, as it was submitted."""
    slowdown: Range
    """The candidate's time divided by the reference's."""
    rounds: int
    """Rounds of the race."""
    reference_us: float
    """One run of the reference."""
    candidate_us: float
    """One run of the submitted model."""
    functions: list[GateFunction]
    """Each function of either model."""


class GateState(Wire):
    """A job's gate; ``result`` is None until its tasks are done and the race is over."""

    against: str
    """The id of the job that the reference is from, or "functions" where they were given."""
    reference: list[ReferenceFunction]
    """The functions of the reference."""
    max_slowdown: float
    """Share by which one run of the model may be slower."""
    result: GateResult | None
    """The result; None until the race is over."""
