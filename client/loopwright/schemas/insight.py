"""Statistics of a workload's trials: its history, decisions, predictions and roofline."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from loopwright.codegen.kinds import Predictor
from loopwright.schemas.base import Wire
from loopwright.schemas.fleet import Peaks
from loopwright.schemas.gates import Range


class HistoryPoint(Wire):
    """A certificate in a workload's history."""

    created_at: datetime
    """When the certificate was issued."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    device_model: str
    """Name of the CPU or GPU, such as ``AMD Zen 3, 2 cores``."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    baseline_us: float
    """Latency of the unscheduled program, in microseconds."""
    best_us: float
    """Latency of the best schedule, in microseconds."""
    speedup: float
    """Speedup over the unscheduled program: the median of the ratios of the race's rounds, by which it decided.
    ``baseline_us / best_us`` differs from it where the machine changed between the rounds."""
    interval: Range | None = None
    """The speedup with its interval, as `Certificate.interval`; None from services before they gave intervals."""
    spread: float
    """Interquartile range of the race's samples of the best, divided by their median."""
    is_baseline: bool
    """Whether the unscheduled program is the best."""
    is_best: bool
    """True for the fastest on its device class."""
    record_id: str
    """Record of the best."""
    job_id: str | None
    """The job that searched; None if it is not known."""
    job_name: str | None
    """Its name; None if it is not known."""


class DecisionColumn(Wire):
    """A choice of the design space, the same over all the trials that made it."""

    name: str
    """What is decided, such as a tile size of a loop of a block."""
    kind: Literal["tile", "categorical", "location", "parallel", "vector"]
    """``tile``: extents of loops; ``categorical``: one of several values; ``location``: where a block is computed;
    ``parallel`` and ``vector``: how far loops are parallelised and vectorised."""
    log: bool
    """Whether its values are best shown on a logarithmic axis."""
    categories: list[str] | None
    """Names of the values if they are not numbers; rows then contain indices of these names."""
    importance: float | None
    """Share of the gain by which a model of the latency explains it with this choice; all columns sum to 1."""


class DecisionRow(Wire):
    """The decisions of a trial."""

    record_id: str
    """Id of the record, for ``GET /records/{id}``."""
    median_us: float
    """Median latency of a call, in microseconds."""
    origin: str
    """How the search came to it, as `Trial.origin`."""
    certified: bool
    """Whether it is the best of a certificate."""
    values: list[float | None]
    """One value per column; None if the trial's trace does not make this choice."""


class Coverage(Wire):
    """How many of the values that a decision may have were tried."""

    name: str
    """What is decided, as `DecisionColumn.name`."""
    tried: int
    """Different values in the trials."""
    possible: int
    """Values that it may have: options of a choice, divisors of a loop's extent. Rules may exclude some of them."""


class Decisions(Wire):
    """The choices of the fastest trials, as a table: for parallel coordinates."""

    device_class: str | None
    """The device class of the trials; None if there are none."""
    columns: list[DecisionColumn]
    """The decisions."""
    rows: list[DecisionRow]
    """The fastest first."""
    coverage: list[Coverage] = Field(default_factory=list)
    """What these trials tried of each decision of which the values are known, those included in which they agree."""


class PredictionPair(Wire):
    """A model's score (higher is faster, without a unit) and the measured latency."""

    record_id: str
    """Id of the record, for ``GET /records/{id}``."""
    predicted: float
    """The predicted score: higher is faster, without a unit."""
    median_us: float
    """Median latency of a call, in microseconds."""


class PredictionRound(Wire):
    """The trials that were proposed together and selected by one model."""

    number: int
    """Number of the round, from 1 for the oldest; trials that two models selected together are two rounds."""
    model: Predictor | None = None
    """The model: scores of different models cannot be compared. None for trials of services before they kept it."""
    job_id: str
    """Id of the job, for ``GET /jobs/{id}``."""
    created_at: datetime
    """When the round was proposed."""
    pairs: list[PredictionPair]
    """Its trials."""
    rank_correlation: float | None
    """Spearman's rank correlation of score and speed: 1 if the order is right; None with fewer than 3 pairs."""


class Predictions(Wire):
    """Predicted scores beside measured latencies, round by round."""

    device_class: str | None
    """The device class of the trials; None if there are none."""
    rounds: list[PredictionRound]
    """The rounds, the oldest first."""
    rank_correlation: float | None
    """Over the rounds, weighted by their pairs."""


class RooflinePoint(Wire):
    """A program in the roofline."""

    name: Literal["baseline", "best"]
    """Which program it is."""
    us: float
    """Its latency, in microseconds."""
    flops: float
    """Floating point operations per second."""
    peak_share: float | None
    """``flops`` over the device's measured peak; None if that is not known or is one of another data type."""


class Roofline(Wire):
    """How close a workload comes to the limits of the machine."""

    device_class: str | None
    """The device class; None if the workload was not measured."""
    flop: float | None
    """Floating point operations of one call, by TVM's estimate; None if there is none."""
    dtype: str | None
    """Data type of most computed values. The peaks are a limit only for the same type."""
    bytes: int
    """Smallest number of bytes moved: each argument once."""
    intensity: float | None
    """``flop / bytes``."""
    peaks: Peaks | None
    """Measured peaks of the device; None if they were not measured."""
    limit: str | None = None
    """What limits it at these peaks, as `Bottleneck.limit`."""
    roof_us: float | None = None
    """The least time of a call that this limit allows, in microseconds; None without a limit."""
    points: list[RooflinePoint]
    """The baseline and the best."""
