"""The list of best schedules, and the figures of the overview."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from loopwright.schemas.base import Wire
from loopwright.schemas.gates import Range
from loopwright.schemas.workloads import Tensor

BestScheduleSort = Literal["name", "op", "baseline", "best", "speedup", "peak", "created"]


class BestSchedule(Wire):
    """The certified best of a workload on a device class."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    op: str
    """What the function computes, from the structure of its blocks: ``matmul``, ``conv2d``, ``softmax`` …"""
    args: list[Tensor]
    """Buffer arguments of the function, in their order."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    device_model: str
    """Name of the CPU or GPU, such as ``AMD Zen 3, 2 cores``."""
    baseline_us: float
    """Latency of the unscheduled program, in microseconds."""
    best_us: float
    """Latency of the best schedule, in microseconds."""
    spread: float
    """Interquartile range of the race's samples of the best, divided by their median."""
    speedup: float
    """Speedup over the unscheduled program: the median of the ratios of the race's rounds, by which it decided.
    ``baseline_us / best_us`` differs from it where the machine changed between the rounds."""
    interval: Range | None = None
    """The speedup with its interval, as `Certificate.interval`; None from services before they gave intervals."""
    is_baseline: bool
    """Whether the unscheduled program is the best."""
    peak_share: float | None
    """Floating point operations a second over the device's measured peak; None where either is unknown, and for
    workloads that do not compute in the peak's type."""
    created_at: datetime
    """When the certificate was issued."""
    regressed: bool
    """Whether the best no longer holds, and no better certificate is known."""
    record_id: str
    """Record of the best."""
    certificate_id: str
    """Id of the certificate."""
    job_id: str | None
    """The job that found it; None if it is not known."""
    job_name: str | None
    """Its name; None if it is not known."""
    source: str | None = None
    """Where the model of that job calls the function, as `Task.source`."""


class BestSchedules(Wire):
    """Rows from ``offset`` on, and the total number of rows."""

    items: list[BestSchedule]
    """The rows."""
    total: int
    """Rows that match the filters."""


class OpCount(Wire):
    """The number of bests of an operation."""

    op: str
    """What the function computes, from the structure of its blocks: ``matmul``, ``conv2d``, ``softmax`` …"""
    bests: int
    """Bests of such functions."""


class DeviceClassCount(Wire):
    """The number of bests of a device class."""

    device_class: str
    """The kind of machine; timings of one class can be compared."""
    device_model: str
    """Name of the CPU or GPU, such as ``AMD Zen 3, 2 cores``."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    bests: int
    """Bests of the device class."""


class BestScheduleFilters(Wire):
    """Values by which the list of best schedules can be filtered, the most frequent first."""

    ops: list[OpCount]
    """What functions compute."""
    device_classes: list[DeviceClassCount]
    """Device classes that have bests."""


class Overview(Wire):
    """The figures of the dashboard's first page."""

    jobs_running: int
    """Jobs that are running."""
    jobs_queued: int
    """Jobs that wait."""
    jobs_finished: int
    """Jobs that ended."""
    workers_alive: int
    """Workers that were seen within the last 20 s."""
    workers_total: int
    """Workers that ever joined."""
    workers_quarantined: int
    """Live workers in quarantine."""
    workloads: int
    """Workloads in the database."""
    bests: int
    """Certified bests, one for each workload and device class."""
    trials: int
    """Trials that ended."""
    trials_last_hour: int
    """Trials that ended within the last hour."""
    time_saved_us: float
    """One run of every tuned model: by how much all its certified tasks are faster than their baselines, each counted
    as often as the model calls it."""
    search_saved_s: float
    """Searching that tasks were spared that were answered from the database or joined another job's search."""
    recent_bests: list[BestSchedule]
    """Of the newest 100 bests the ten that save most time a call, the largest saving first."""
