"""What a workload's trials tell: its history, its decisions, how well the model knew, how near the peak it is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from loopwright.schemas.base import Wire
from loopwright.schemas.fleet import Peaks


class HistoryPoint(Wire):
    """A certificate: what a search ended with."""

    created_at: datetime
    device_class: str
    device_model: str
    target: dict[str, Any]
    baseline_us: float
    best_us: float
    speedup: float
    spread: float
    """Interquartile range over median of the race's samples of the best."""
    is_baseline: bool
    is_best: bool
    """True for the fastest on its device class."""
    record_id: str
    job_id: str | None
    job_name: str | None


class DecisionColumn(Wire):
    """A choice of the design space, the same over all the trials that made it."""

    name: str
    kind: Literal["tile", "categorical", "location", "parallel", "vector"]
    log: bool
    """True where its values are best shown on a logarithmic axis."""
    categories: list[str] | None
    """Where its values are not numbers: their names; a row then holds an index into them."""
    importance: float | None
    """Share of the gain by which a model of the latency explains it with this choice; all columns sum to 1."""


class DecisionRow(Wire):
    record_id: str
    median_us: float
    origin: str
    certified: bool
    values: list[float | None]
    """One a column; None where the trial's trace makes no such choice."""


class Decisions(Wire):
    """The choices of the fastest trials, as a table: for parallel coordinates."""

    device_class: str | None
    columns: list[DecisionColumn]
    rows: list[DecisionRow]
    """The fastest first."""


class PredictionPair(Wire):
    """What the cost model said (higher is faster, no unit) and what was measured."""

    record_id: str
    predicted: float
    median_us: float


class PredictionRound(Wire):
    """The trials that were proposed together."""

    number: int
    job_id: str
    created_at: datetime
    pairs: list[PredictionPair]
    rank_correlation: float | None
    """Spearman's, of prediction and speed: 1 where the model put all in their right order; None below 3 pairs."""


class Predictions(Wire):
    device_class: str | None
    rounds: list[PredictionRound]
    rank_correlation: float | None
    """Over the rounds, weighted by their pairs."""


class RooflinePoint(Wire):
    name: Literal["baseline", "best"]
    us: float
    flops: float
    """Floating point operations a second."""
    peak_share: float | None


class Roofline(Wire):
    """How near the machine's limits a workload runs."""

    device_class: str | None
    flop: float | None
    dtype: str | None
    """Of the values that it computes most of; where it is not the peaks', they are no limit to it."""
    bytes: int
    """Moved at least: each argument once."""
    intensity: float | None
    """``flop / bytes``."""
    peaks: Peaks | None
    points: list[RooflinePoint]
