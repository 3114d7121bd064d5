"""Bottlenecks of a job: what limits its functions, which decision made each fast, and where the time is left."""

from __future__ import annotations

from typing import Literal

from loopwright.schemas.ablations import Neighbour
from loopwright.schemas.base import Wire
from loopwright.schemas.workloads import Library


class EstimatedDecision(Wire):
    """The decision of a schedule that explains most of the latencies of its workload's trials, by a model of them."""

    name: str
    """What is decided, as `DecisionColumn.name`."""
    value: str
    """What the schedule decides."""
    importance: float
    """Share of the gain by which the model explains the latencies with it, as `DecisionColumn.importance`."""
    trials: int
    """Trials of which the model knows the latency."""


class Bottleneck(Wire):
    """A function of a job: the time that it takes in one run of the model, and how much of it the machine demands."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    source: str | None
    """Where the model calls it, as `Task.source`."""
    record_id: str | None
    """Record of the best; None until there is one."""
    calls: int
    """Calls in one run of the model."""
    us: float
    """Best latency times ``calls``, in microseconds."""
    model_share: float | None
    """As `Task.model_share`."""
    limit: str | None
    """What limits it at the device's measured peaks: ``arithmetic``, or the smallest memory that has room for all of
    its arguments, such as ``L2`` or ``DRAM``. None if the peaks are not known, or not for its data type."""
    roof_us: float | None
    """The least time that this limit allows for the same calls, in microseconds; None without a limit."""
    left_us: float | None
    """``us - roof_us``: the time that a better program may save at most; None without a limit."""
    library: Library | None
    """Time of a vendor's library for one call, as `Task.library`."""
    decision: Neighbour | EstimatedDecision | None
    """The decision that mattered most: as an ablation of the best measured it, else as a model of the trials estimates
    it. Only for the three functions that take most time; None for others, and for the reasons of ``undecided``."""
    undecided: Literal["unscheduled", "no decisions", "unmeasured"] | None
    """Why ``decision`` is None: the best is the unscheduled program, its schedule makes no decisions, or the trials are
    too few for an estimate, and no ablation has measured it. None with a decision, and for functions that are not
    looked at."""


class Bottlenecks(Wire):
    """The functions of a job by the time that is left in them."""

    functions: list[Bottleneck]
    """Those with a latency: those with most time left first, and before them those whose limit is not known if they
    take more."""
    untimed: int
    """Functions without a latency, which no sum below has."""
    us: float | None
    """``us`` of these functions; None if there is none, and for several shapes, of which a run of the model has one."""
    left_us: float | None
    """``left_us`` of those that have a limit; None if none has, and where ``us`` is None."""
    unknown_us: float | None
    """``us`` of the functions without a limit; None where ``us`` is None."""
