"""Ablations and lineage: which decisions of a schedule make it fast, and where the schedule comes from."""

from __future__ import annotations

from loopwright.codegen.kinds import JobState
from loopwright.schemas.base import Wire
from loopwright.schemas.gates import Range


class DecisionChange(Wire):
    """A decision that two schedules of a workload make differently."""

    name: str
    """Name of the decision, as `DecisionColumn.name`."""
    before: str
    """Its value in the first schedule; empty if that has no such decision."""
    after: str
    """Its value in the second one; empty if that has no such decision."""


class Neighbour(Wire):
    """A program that differs from a schedule in one decision, with what follows from this decision."""

    changes: list[DecisionChange]
    """What differs from the schedule."""
    us: float | None
    """Median latency of a call in the race, in microseconds; None if it failed."""
    slowdown: Range | None
    """Its time over that of the schedule in the same rounds, with the interval; None if it failed. Above 1, the
    decision of the schedule is the better one."""
    message: str | None = None
    """Why it failed; None if it did not."""


class AblationResult(Wire):
    """The result of an ablation: each neighbour was raced with the schedule, and its results were checked."""

    neighbours: list[Neighbour]
    """The neighbours, those of one decision after another."""


class Ablation(Wire):
    """The newest ablation of a record."""

    record_id: str
    """The record whose schedule was raced with its neighbours."""
    job_id: str
    """The job that races them."""
    state: JobState
    """State of the job."""
    error: str | None
    """Why the job failed; None if it did not."""
    result: AblationResult | None
    """The result; None until the races are over."""


class Ancestor(Wire):
    """A measured trial of which a record descends by mutations."""

    record_id: str
    """Record of the trial."""
    origin: str
    """Where it came from, as `Trial.origin`."""
    median_us: float
    """Median latency of a call, in microseconds."""
    changes: list[DecisionChange]
    """What the mutation changed: from this trial to the one before it in the list, or to the record itself."""


class Lineage(Wire):
    """Where a record comes from, and what keeps it from the best of its workload."""

    ancestors: list[Ancestor]
    """Its parent, the parent's parent and so on, as far as they were measured and are stored."""
    best_id: str | None
    """Record of the certified best on the same device class; None if there is none, or if it is this record."""
    best_us: float | None
    """Latency of that best in its closing race, in microseconds; None without one."""
    against_best: list[DecisionChange]
    """Decisions that the best makes differently: from this record to the best. Empty if one of them is the baseline."""
