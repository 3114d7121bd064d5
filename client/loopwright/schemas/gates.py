"""Gates: whether a model became slower than a reference, for continuous integration."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from loopwright.schemas.base import Wire, WorkloadHash


class ReferenceFunction(Wire):
    """A function of the reference: which record runs in the race, and how often the model calls it."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    workload_hash: WorkloadHash
    weight: Annotated[int, Field(ge=1)]
    record_id: Annotated[str, Field(min_length=1, max_length=100)]


class Gate(Wire):
    """What a job's model is compared with once its tasks are done."""

    against: str | Annotated[list[ReferenceFunction], Field(min_length=1, max_length=10_000)]
    """The id of a job, or the name of one (the newest that succeeded), or what `ReferenceFunction` describes."""
    max_slowdown: Annotated[float, Field(ge=0, le=10)] = 0.03
    """Share by which one run of the model may be slower: 0.03 for three percent."""


class Range(Wire):
    """An estimate with its 95 % interval; ``low`` 0 or ``high`` None where one round does not say."""

    value: float
    low: float
    high: float | None


class GateFunction(Wire):
    """A function, in microseconds a call. ``ratio`` is the candidate's time over the reference's."""

    name: str
    workload_hash: str
    change: Literal["same", "changed", "added", "removed", "failed"]
    """``same``: the same program, which was not measured."""
    reference_us: float | None
    candidate_us: float | None
    ratio: Range | None
    message: str | None


class GateResult(Wire):
    """What came of a gate. Times are of one run of the model, the sum over its functions, in microseconds."""

    verdict: Literal["no regression", "regression", "unclear"]
    """``unclear``: after all rounds neither was shown."""
    max_slowdown: float
    slowdown: Range
    """The candidate's time over the reference's."""
    rounds: int
    reference_us: float
    candidate_us: float
    functions: list[GateFunction]


class GateState(Wire):
    """A job's gate; ``result`` is None until its tasks are done and the race is over."""

    against: str
    """The id of the job that the reference is from, or "functions" where they were given."""
    reference: list[ReferenceFunction]
    max_slowdown: float
    result: GateResult | None
