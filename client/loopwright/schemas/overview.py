"""All workloads at a glance: the leaderboard, and the figures of the first page."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from loopwright.schemas.base import Wire
from loopwright.schemas.workloads import Tensor

LeaderboardSort = Literal["name", "op", "baseline", "best", "speedup", "peak", "created"]


class LeaderboardRow(Wire):
    """The certified best of a workload on a device class."""

    workload_hash: str
    name: str
    op: str
    args: list[Tensor]
    target: dict[str, Any]
    device_class: str
    device_model: str
    baseline_us: float
    best_us: float
    spread: float
    """Interquartile range over median of the race's samples of the best."""
    speedup: float
    is_baseline: bool
    """True where nothing beat the baseline."""
    peak_share: float | None
    """Floating point operations a second over the device's measured peak; None where either is unknown, and for
    workloads that do not compute in the peak's type."""
    created_at: datetime
    regressed: bool
    """Whether it is known not to hold any more, and nothing better is known."""
    record_id: str
    certificate_id: str
    job_id: str | None
    job_name: str | None


class Leaderboard(Wire):
    """Rows from ``offset`` on, and how many there are in all."""

    items: list[LeaderboardRow]
    total: int


class OpCount(Wire):
    op: str
    bests: int


class DeviceClassCount(Wire):
    device_class: str
    device_model: str
    target: dict[str, Any]
    bests: int


class LeaderboardFilters(Wire):
    """What the leaderboard can be narrowed to, the most frequent first."""

    ops: list[OpCount]
    device_classes: list[DeviceClassCount]


class Overview(Wire):
    jobs_running: int
    jobs_queued: int
    jobs_finished: int
    workers_alive: int
    workers_total: int
    workers_quarantined: int
    workloads: int
    bests: int
    trials: int
    trials_last_hour: int
    time_saved_us: float
    """One run of every tuned model: by how much all its certified tasks are faster than their baselines, each counted
    as often as the model calls it."""
    search_saved_s: float
    """Searching that tasks were spared that were answered from the database or joined another job's search."""
    recent_bests: list[LeaderboardRow]
