"""The wire, defined once: what the REST interface takes and answers.

The service answers with these models and the SDK reads them; nothing else describes the wire.
Latencies named ``*_us`` are microseconds (the median of the raw samples); raw samples named
``run_secs`` are seconds. Times are UTC.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
TaskState = Literal["queued", "running", "joined", "succeeded", "failed", "cancelled"]
TrialState = Literal["proposed", "leased", "built", "measured", "failed"]
FailureKind = Literal["COMPILE", "TIMEOUT", "CRASH", "WRONG_RESULT", "DEVICE_LOST"]
AnsweredFrom = Literal["search", "database", "joined"]

FINISHED: frozenset[str] = frozenset({"succeeded", "failed", "cancelled"})
"""States that a job or a task never leaves."""


class Wire(BaseModel):
    """Base of every wire model: unknown fields of a request are an error, not silence."""

    model_config = ConfigDict(extra="forbid")


class ModulePayload(Wire):
    """A module as text. Its format is told, never guessed."""

    format: Literal["tvm-json", "tvmscript"]
    data: str = Field(min_length=1)


class Budget(Wire):
    """How much a job may spend: whichever limit is met first ends the search."""

    max_trials: int = Field(default=64, ge=1, le=1_000_000)
    max_seconds: float | None = Field(default=None, gt=0)


class SubmitJob(Wire):
    """Body of ``POST /jobs``."""

    module: ModulePayload
    target: str | dict[str, Any] = "auto"
    name: str | None = Field(default=None, max_length=200)
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    priority: int = Field(default=0, ge=-100, le=100)
    budget: Budget = Budget()
    space: list[Any] | None = None
    shapes: dict[str, int] | list[dict[str, int]] | None = None
    """Values of symbolic extents, by name; a list tunes for each of them."""
    force: bool = False


class Task(Wire):
    """One workload within a job. ``weight`` counts how often the model calls it."""

    workload_hash: str
    name: str
    weight: int
    state: TaskState
    trials: int
    baseline_us: float | None
    best_us: float | None
    speedup: float | None
    certified: bool
    answered_from: AnsweredFrom | None
    record_id: str | None
    failures: dict[FailureKind, int]
    error: str | None


class Progress(Wire):
    """Trials finished (failed ones included), failed, and allowed in total."""

    trials: int
    failed: int
    total: int


class Job(Wire):
    """What a user submitted, and how far it is."""

    id: str
    name: str
    state: JobState
    target: dict[str, Any]
    budget: Budget
    seed: int
    priority: int
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    notes: list[str]
    progress: Progress
    tasks: list[Task]


class Event(Wire):
    """One server-sent event; ``id`` grows within a job and resumes a stream.

    ``type`` is ``job`` (data: ``state``, ``error``), ``task`` (data: ``workload_hash``, ``state``,
    ``baseline_us``, ``best_us``, ``speedup``, ``certified``) or ``trial`` (data: the fields of `Trial`).
    """

    id: int
    type: Literal["job", "task", "trial"]
    created_at: datetime
    data: dict[str, Any]


class Trial(Wire):
    """One line of the durable ledger, as listed for a job."""

    id: str
    workload_hash: str
    number: int
    """Order within the task, from 1; 0 is the baseline."""
    state: TrialState
    origin: str
    """Where it came from: baseline, random, mutation, crossover, transfer (from a related workload), import."""
    predicted: float | None
    median_us: float | None
    failure_kind: FailureKind | None
    failure_stage: str | None
    failure_message: str | None
    worker: str | None
    created_at: datetime
    finished_at: datetime | None


class Tensor(Wire):
    """A buffer argument of a workload."""

    shape: list[int]
    dtype: str


class Workload(Wire):
    """One schedulable function, named by the digest of its normalised form."""

    hash: str
    name: str
    args: list[Tensor]
    tvm_version: str
    created_at: datetime
    records: int
    """Measured trials the database holds of it."""


class WorkloadDetail(Workload):
    script: str
    """Its TVMScript, unscheduled."""
    bests: list[Best]


class Certificate(Wire):
    """The evidence that a best schedule computes what the unscheduled program computes, and how much faster it is."""

    id: str
    created_at: datetime
    inputs: str
    """In words: how the random inputs were drawn, and how many sets of them."""
    rtol: float
    """Share of each reference element that the result may differ by; 0 means exact."""
    atol: float
    """The same of the reference's largest magnitude, allowed on top for sums that cancel."""
    max_abs_error: float
    max_rel_error: float
    """Largest difference over the reference's largest magnitude."""
    rounds: int
    """Interleaved rounds of the closing race."""
    baseline_run_secs: list[float]
    best_run_secs: list[float]
    baseline_us: float
    best_us: float
    speedup: float
    contenders: int


class Best(Wire):
    """The certified best schedule of a workload on a device class."""

    workload_hash: str
    name: str
    target: dict[str, Any]
    device_class: str
    record_id: str
    baseline_us: float
    best_us: float
    speedup: float
    is_baseline: bool
    """True where nothing beat the baseline: the unscheduled program is the best."""
    trace: list[Any] | None
    """TVM's ``[instructions, decisions]``; None for the baseline."""
    certificate: Certificate
    created_at: datetime


class Record(Wire):
    """A measured trial."""

    id: str
    workload_hash: str
    name: str
    target: dict[str, Any]
    device_class: str
    median_us: float
    certified: bool
    is_baseline: bool
    job_id: str | None
    created_at: datetime


class RecordDetail(Record):
    trace: list[Any] | None
    run_secs: list[float]
    device: dict[str, Any]
    """The device class in full: target, CPU features or GPU model, cores, threads, versions."""
    origin: str
    predicted: float | None
    parent: str | None
    worker: str | None
    seed: int | None
    tvm_version: str
    certificate: Certificate | None
    script_before: str
    script_after: str


class Worker(Wire):
    """A machine's offer: builders, and a measuring slot on one device."""

    id: str
    host: str
    device: str
    target: dict[str, Any]
    device_class: str
    threads: int
    builders: int
    alive: bool
    last_seen_at: datetime


class TargetOffer(Wire):
    """A target that live workers offer; the one that ``auto`` takes is marked."""

    target: dict[str, Any]
    device_class: str
    workers: int
    is_auto: bool


class ImportReport(Wire):
    """What ``POST /records/import`` kept, and each line that it could not, with the reason."""

    workloads: int
    imported: int
    duplicates: int
    errors: list[str]


class Version(Wire):
    loopwright: str
    tvm: str
    api: str


class Problem(BaseModel):
    """An error as RFC 9457 has it."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str


Item = TypeVar("Item")


class Page(Wire, Generic[Item]):
    """One page of a list; ``next_page_token`` is None on the last one."""

    items: list[Item]
    next_page_token: str | None


WorkloadDetail.model_rebuild()
