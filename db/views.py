"""Frozen values that repositories return. Times are UTC, latencies are seconds per call."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from db.states import EventType
from loopwright.codegen.kinds import (
    AnsweredFrom,
    FailureKind,
    Grade,
    JobState,
    Origin,
    Predictor,
    SandboxLevel,
    SignedBy,
    Stage,
    TaskState,
    TrialState,
)
from tuner.budget import Budget
from tuner.types import (
    Activity,
    CacheRate,
    Certificate,
    DeviceClass,
    DeviceState,
    LibraryTime,
    Operation,
    RunnerUp,
    Span,
    TensorInfo,
)


@dataclass(frozen=True, slots=True)
class Phase:
    """What a job did from a time on, in words, until its next phase or its end."""

    activity: str
    started_at: datetime


@dataclass(frozen=True, slots=True)
class Availability:
    """Whether a worker can measure now. ``waits_for`` is the program that uses its host's cores while it waits."""

    device_class_id: str
    device_model: str
    labels: dict[str, str]
    alive: bool
    quarantined: bool
    drained: bool
    waits_for: str | None


@dataclass(frozen=True, slots=True)
class JobView:
    """A job without its module.

    ``elapsed_s`` is the time it ran under all its leases together, ``model_time`` what one run of the model took as one
    program, where that was timed. ``activity`` is what it does or waits for while it runs, ``phases`` what it did since
    it was created. ``tags`` and ``description`` are its user's. ``labels`` are those of the workers that may measure
    it. Jobs of one submission for several targets have a ``group_id``.
    """

    id: str
    name: str
    state: JobState
    target_json: str
    device_class_id: str
    space_hash: str
    budget: Budget
    suggested_trials: int
    seed: int
    priority: int
    force: bool
    notes: tuple[str, ...]
    cancel_requested: bool
    activity: str | None
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    attempts: int
    elapsed_s: float
    user_name: str
    private: bool
    model_time: ModelTime | None
    group_id: str | None
    labels: dict[str, str]
    tags: tuple[str, ...]
    description: str
    phases: tuple[Phase, ...]
    has_variants: bool
    """Whether it tunes one module for several shapes, of which a run of the model has one."""


@dataclass(frozen=True, slots=True)
class ComparisonView:
    """A user's measurement of a job's model, as it was sent."""

    user_name: str
    result: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class GateView:
    """The reference of a job and the verdict, which is None until then."""

    request: dict[str, Any]
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class AblationView:
    """A trial whose neighbours a job races with it; ``result`` is in the form of the wire, None until the first race.

    ``state`` and ``error`` are those of the job.
    """

    job_id: str
    trial_id: str
    state: JobState
    error: str | None
    result: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class RecheckView:
    """A certificate that a job races again; the medians are those of the certificate.

    ``result`` is in the form of the wire, and ``signed`` what is signed of it; None until the race. ``sources`` say
    where the model of the job that found it calls the function.
    """

    certificate_id: str
    workload_hash: str
    name: str
    sources: tuple[str, ...]
    trial_id: str
    trace_json: str
    best_median: float
    baseline_median: float
    reason: str
    result: dict[str, Any] | None
    signed: SignedDocument | None


@dataclass(frozen=True, slots=True)
class DueRecheck:
    """A best that is due for a recheck on machines of the device class, with the reason.

    ``shared``: everybody sees its workload.
    """

    certificate_id: str
    device_class: DeviceClass
    reason: str
    shared: bool


@dataclass(frozen=True, slots=True)
class JobInputs:
    """The large texts of a job, and the bindings of its symbolic extents if it was tuned for several."""

    module_json: str
    space_json: str | None
    shapes: list[dict[str, int]] | None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job under a fresh lease; ``lease_token`` is the right to write to it."""

    job: JobView
    inputs: JobInputs
    lease_token: str


@dataclass(frozen=True, slots=True)
class TaskView:
    """A task and how far it is.

    ``trials`` counts finished ones (not the baseline), ``failed`` among them. ``baseline_secs`` and ``best_secs`` come
    from the certificate, before there is one from the ledger, as ``searched_secs`` always does; ``record_id`` is the
    certified trial, and ``interval`` that of the certificate's speedup. ``sources`` say where the model calls it.
    """

    id: str
    job_id: str
    position: int
    workload_hash: str
    name: str
    weight: int
    sources: tuple[str, ...]
    state: TaskState
    key: str
    answered_from: AnsweredFrom | None
    certificate_id: str | None
    record_id: str | None
    error: str | None
    started_at: datetime | None
    finished_at: datetime | None
    trials: int
    failed: int
    failures: dict[FailureKind, int]
    baseline_secs: float | None
    best_secs: float | None
    searched_secs: float | None
    device_secs: float
    library: LibraryTime | None
    interval: SpeedupInterval | None

    @property
    def certified(self) -> bool:
        return self.certificate_id is not None

    @property
    def speedup(self) -> float | None:
        """That of the certificate; before there is one, the ratio of the times in the ledger."""
        if self.interval is not None:
            return self.interval.value
        if self.baseline_secs is None or self.best_secs is None:
            return None
        return self.baseline_secs / self.best_secs


@dataclass(frozen=True, slots=True)
class TrialView:
    """A line of the ledger as listed for a job; ``number`` 0 is the baseline."""

    id: str
    workload_hash: str
    number: int
    state: TrialState
    origin: Origin
    predicted: float | None
    predicted_by: Predictor | None
    median: float | None
    failure_kind: FailureKind | None
    failure_stage: Stage | None
    failure_message: str | None
    worker: str | None
    created_at: datetime
    finished_at: datetime | None
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class WorkloadView:
    """A workload without its texts; ``records`` counts its measured trials."""

    hash: str
    family: str
    name: str
    args: tuple[TensorInfo, ...]
    operation: Operation
    tvm_version: str
    created_at: datetime
    records: int


@dataclass(frozen=True, slots=True)
class WorkloadDetail:
    summary: WorkloadView
    module_json: str
    script: str


@dataclass(frozen=True, slots=True)
class SignedDocument:
    """A document (JSON), and its signature (base64) by the key with this id."""

    document: str
    key_id: str
    signature: str


@dataclass(frozen=True, slots=True)
class SpeedupInterval:
    """A speedup with its interval of 95 %, and its grade; ``high`` is None after a single round."""

    value: float
    low: float
    high: float | None
    grade: Grade

    @classmethod
    def stored(cls, fields: dict[str, Any] | None) -> SpeedupInterval | None:
        """Return the interval of which the fields were stored."""
        return None if fields is None else cls(**(fields | {"grade": Grade(fields["grade"])}))


@dataclass(frozen=True, slots=True)
class ModelTime:
    """Seconds of one run of a model as one program; ``baseline_secs`` without schedules, if that was timed beside it.

    ``speedup`` is from both.
    """

    secs: float
    baseline_secs: float | None = None
    speedup: SpeedupInterval | None = None


@dataclass(frozen=True, slots=True)
class CertificateView:
    """A stored certificate with its place in the database.

    ``value`` is the evidence; ``rejected_trials`` are the trial ids of the rejected contenders, by candidate hash.
    ``conditions`` are TVM, kernel and driver of its newest race, ``checked_at`` is when it was last raced anew, and
    ``regressed_at`` since when it is known not to hold any more. ``signed`` is what was signed when it was issued, and
    ``verdict`` what was signed of the last recheck.
    """

    id: str
    workload_hash: str
    device_class_id: str
    space_hash: str
    trial_id: str
    budget_trials: int
    baseline_median: float
    best_median: float
    created_at: datetime
    conditions: str
    checked_at: datetime | None
    regressed_at: datetime | None
    value: Certificate
    rejected_trials: dict[str, str]
    signed: SignedDocument
    verdict: SignedDocument | None
    interval: SpeedupInterval
    runner_up: RunnerUp | None

    @property
    def speedup(self) -> float:
        return self.interval.value


@dataclass(frozen=True, slots=True)
class BestView:
    """The certified best of a workload on a device class; ``trace_json`` is None where the baseline won.

    ``sources`` say where the model of the job that found it calls the function; empty where they were not read.
    """

    certificate: CertificateView
    name: str
    target_json: str
    trace_json: str | None
    codegen_version: int
    sources: tuple[str, ...] = ()

    @property
    def is_baseline(self) -> bool:
        return self.trace_json is None


@dataclass(frozen=True, slots=True)
class RecordView:
    """A measured trial, wherever it came from; ``job_id`` is None for an imported one.

    ``sources`` say where the model of its job calls the function.
    ``sandbox`` and ``device_state`` are None for an imported one; ``device_state`` also for one of a CPU.
    """

    id: str
    workload_hash: str
    candidate_hash: str
    name: str
    target_json: str
    device_class_id: str
    trace_json: str | None
    run_secs: tuple[float, ...]
    median: float
    origin: Origin
    predicted: float | None
    parent: str | None
    worker: str | None
    sandbox: SandboxLevel | None
    device_state: DeviceState | None
    seed: int | None
    tvm_version: str
    codegen_version: int
    job_id: str | None
    sources: tuple[str, ...]
    certified: bool
    created_at: datetime


@dataclass(frozen=True, slots=True)
class ImportedCertificateView:
    """The certificate that a record was imported with, and what its signature is worth here; see `SignedBy`."""

    signed: SignedDocument
    public_key: str
    signed_by: SignedBy
    created_at: datetime


@dataclass(frozen=True, slots=True)
class RecordDetail:
    """A record with its workload, certificate and texts; ``imported`` is None for a record that came without one."""

    record: RecordView
    device_class: DeviceClass
    workload: WorkloadDetail
    certificate: CertificateView | None
    imported: ImportedCertificateView | None


@dataclass(frozen=True, slots=True)
class FeatureSample:
    """A finished trial as a cost model learns it; ``median`` in seconds, None where it failed."""

    workload_hash: str
    features: bytes
    median: float | None


@dataclass(frozen=True, slots=True)
class ImportCount:
    imported: int
    duplicates: int


@dataclass(frozen=True, slots=True)
class CheckView:
    """One timing of a worker's reference kernel."""

    secs: float
    created_at: datetime


@dataclass(frozen=True, slots=True)
class WorkerStanding:
    """What decides whether a worker may measure. ``slot_since`` is when its slot was taken, None while it is free."""

    slot_since: datetime | None
    quarantine_reason: str | None
    readmitted_at: datetime | None


@dataclass(frozen=True, slots=True)
class WorkerCount:
    """Of all workers that ever registered; those in quarantine are alive."""

    total: int
    alive: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class WorkerView:
    """A worker: its offer, health and present work.

    ``checks`` are the fastest since the owner last cleared it and the newest, oldest first. ``drained_at`` is since
    when an admin has it get no work.
    """

    id: str
    host: str
    device: str
    device_class: DeviceClass
    builders: int
    sandbox: SandboxLevel
    last_seen_at: datetime
    alive: bool
    activity: Activity
    slot_job_id: str | None
    quarantined_at: datetime | None
    quarantine_reason: str | None
    drained_at: datetime | None
    labels: dict[str, str]
    checks: tuple[CheckView, ...]


@dataclass(frozen=True, slots=True)
class OfferView:
    """A device class with the number of live workers that have it."""

    device_class: DeviceClass
    workers: int


@dataclass(frozen=True, slots=True)
class JobChanged:
    """A job entered a state; ``error`` says why it failed."""

    state: JobState
    error: str | None


@dataclass(frozen=True, slots=True)
class TaskChanged:
    """A task entered a state; the medians and the interval come from its certificate, and are None without one."""

    workload_hash: str
    state: TaskState
    baseline_secs: float | None
    best_secs: float | None
    interval: SpeedupInterval | None = None


@dataclass(frozen=True, slots=True)
class TrialFinished:
    trial: TrialView


@dataclass(frozen=True, slots=True)
class Rechecked:
    """A certified best was raced again; ``result`` is in the form of the wire."""

    workload_hash: str
    name: str
    result: dict[str, Any]


Change = JobChanged | TaskChanged | TrialFinished | Rechecked


@dataclass(frozen=True, slots=True)
class EventView:
    """An event of a job; ids increase."""

    id: int
    job_id: str
    type: EventType
    created_at: datetime
    change: Change


@dataclass(frozen=True, slots=True)
class Peaks:
    """The measured peaks of a device class: operations per second in ``dtype``, and bytes per second.

    ``caches`` are the rates within its caches, those of the smallest first; empty if they were not measured.
    """

    dtype: str
    flops: float
    bytes_per_s: float
    measured_at: datetime
    caches: tuple[CacheRate, ...] = ()


@dataclass(frozen=True, slots=True)
class DeviceClassView:
    device_class: DeviceClass
    peaks: Peaks | None
    bests: int
    workers: int
    """Those alive."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The lease of a running job: its owner and its end."""

    job_id: str
    job_name: str
    device_class_id: str
    owner: str
    expires_at: datetime
    attempts: int
