"""Jobs: submissions, progress and trials."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticSerializationError

from loopwright.codegen import worker_labels
from loopwright.codegen.kinds import (
    AnsweredFrom,
    FailureKind,
    JobState,
    Lane,
    Predictor,
    Stage,
    TaskState,
    TrialState,
)
from loopwright.codegen.math_mode import MathMode
from loopwright.schemas.base import Label, LabelWord, Tags, Wire
from loopwright.schemas.gates import Gate, Range
from loopwright.schemas.rechecks import RecheckFinished
from loopwright.schemas.workloads import Best, Library, Tensor


class ModulePayload(Wire):
    """A module as text, in an explicit format."""

    format: Literal["tvm-json", "tvmscript"]
    """``tvm-json``: JSON as ``tvm.ir.save_json`` writes it. ``tvmscript``: Python source, which is parsed and not
    run."""
    data: str = Field(min_length=1)
    """The module as text."""


Until = Literal["plateau"]
"""``plateau``: the next minute is expected to gain less than 1 %."""


class Budget(Wire):
    """The limits and goals of a search, which ends at the first one that it reaches."""

    max_trials: int = Field(default=64, ge=1, le=1_000_000)
    """Maximum number of candidates to measure, for all tasks together."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds that the job may take, its closing races included; None: no limit."""
    max_device_seconds: float | None = Field(default=None, gt=0)
    """Maximum seconds in measuring slots, without closing races; None: no limit."""
    target_latency_us: float | None = Field(default=None, gt=0)
    """Latency of one run of the model that is low enough, as in `ModelLatency`; None: no goal."""
    until: Until | None = None
    """``plateau`` ends the search when the next minute is expected to gain less than 1 %, and each task had its first
    batch; None: only the limits end it."""


Visibility = Literal["team", "private"]
"""``private``: only its owner and admins see a job, and its workloads unless others submitted them, too."""


LONGEST_DESCRIPTION = 4_000
"""Characters."""
Description = Annotated[str, Field(max_length=LONGEST_DESCRIPTION)]
JobSort = Literal["created", "name", "gain"]
"""What lists of jobs are sorted by; ``gain`` is the time that one run of the tuned model saves, 0 until the job has
succeeded."""

MOST_TARGETS = 8
"""Of one submission. The service reads the module once for each of them, which takes about 3 s for the largest models
in examples/, and the SDK waits 30 s for an answer."""


class SubmitJob(Wire):
    """Body of ``POST /jobs``."""

    module: ModulePayload
    """The module to tune."""
    target: str | dict[str, Any] = "auto"
    """``auto`` (the first target that the fleet offers), a TVM target string or tag, or its JSON."""
    targets: Annotated[list[str | dict[str, Any]], Field(min_length=1, max_length=MOST_TARGETS)] | None = None
    """Instead of ``target``: one job is created for each, all with the same budget, and the answer is a `JobGroup`."""
    name: Label | None = None
    """Name of the job; None: a name derived from the module."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the search."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Jobs with a higher priority run first. Only admins may give one above 0."""
    budget: Budget = Budget()
    """Budget for each target."""
    seconds_per_function: float | None = Field(default=None, gt=0)
    """Raises ``budget.max_seconds`` to so many seconds for each function that no earlier search answers; None: it stays
    as it is, also for models of many functions."""
    space: list[Any] | None = None
    """The design space as a list of traces ``[instructions, decisions]``, the format of ``sch.trace.as_json()``; None:
    the built-in design space."""
    shapes: dict[str, int] | Annotated[list[dict[str, int]], Field(fail_fast=True)] | None = None
    """Values of symbolic extents, by name; a list tunes for each of them."""
    force: bool = False
    """Whether to search even if the database knows the answer."""
    visibility: Visibility = "team"
    """Who sees the job: the ``team``, or only its owner and admins (``private``)."""
    exact_math: bool = False
    """Whether exp, tanh and the like are those of the C library, instead of polynomials with an error of a few units in
    the last place. Such functions are workloads of their own."""
    math: MathMode = "fp32"
    """With ``tf32``, products and convolutions of float32 may round their factors to TF32, on GPUs that have it. Such
    functions are workloads of their own."""

    gate: Gate | None = None
    """Reference with which the model is compared when its tasks are finished."""
    labels: dict[LabelWord, LabelWord] = Field(default_factory=dict, max_length=worker_labels.MOST)
    """Only workers with all of these labels measure the job."""
    tags: Tags = Field(default_factory=list)
    """Words by which lists of jobs can be narrowed, such as ``nightly``."""
    description: Description = ""
    """What the job is for, in the user's words."""

    @model_validator(mode="after")
    def _is_unicode(self) -> Self:
        """Refuse lone surrogates, which JSON can contain, but neither UTF-8 nor a database."""
        try:
            # The other texts were checked as fields.
            self.model_dump_json(include={"target", "targets", "space", "gate"})
        except PydanticSerializationError as error:
            raise ValueError("a text contains a lone surrogate, which is not valid Unicode; remove it") from error
        return self

    @model_validator(mode="after")
    def _has_one_or_several_targets(self) -> Self:
        if self.targets is not None and self.target != "auto":
            raise ValueError("give target or targets, not both")
        return self


class Task(Wire):
    """One workload within a job. ``weight`` counts how often the model calls it."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    source: str | None = None
    """Where the model calls it, in short: a module of PyTorch, a node of ONNX, a line of TVMScript, such as
    ``layers.{0..11}.fc1``; None if the module does not tell."""
    sources: list[str] = Field(default_factory=list)
    """All of these places."""
    weight: int
    """How often the model calls it."""
    state: TaskState
    """``joined``: another job searches for the same workload, and this task uses its result. The others are as for
    jobs."""
    trials: int
    """Trials that finished, with those that failed."""
    baseline_us: float | None
    """Latency of the unscheduled program, in microseconds; None until it is measured."""
    best_us: float | None
    """Best latency so far, in microseconds; None until one is measured."""
    speedup: float | None
    """As `Certificate.speedup`; before there is one, ``baseline_us / best_us``, and None until both are known."""
    interval: Range | None = None
    """The speedup with its interval, as `Certificate.interval`; None until the task is certified."""
    certified: bool
    """Whether the best has a certificate."""
    answered_from: AnsweredFrom | None
    """Source of the result: a ``search`` of this job, the ``database``, or another job's search (``joined``); None
    without a result."""
    record_id: str | None
    """Record of the best; None until there is one."""
    failures: dict[FailureKind, int]
    """Failed trials, by kind of failure."""
    error: str | None
    """Why the task failed; None if it did not."""
    finished_at: datetime | None = None
    """When it ended, with its certificate if it succeeded; None until then."""
    model_share: float | None
    """Weight times best latency so far, divided by the sum over the job's tasks; None until each has a latency, and in
    a job for several shapes."""
    budget_share: float | None
    """Trials divided by the trials of the whole job; None before the first trial."""
    library: Library | None
    """Time of a vendor's library for the same operation; None without a certificate or without such a library."""


class Progress(Wire):
    """Trials finished (failed ones included), failed, and allowed in total."""

    trials: int
    """Trials that finished, with those that failed."""
    failed: int
    """Trials that failed."""
    total: int
    """Maximum number of trials."""
    time_left_s: float | None
    """Estimated remaining seconds of the search; None if the job is not searching or has no trial yet."""


class ModelLatency(Wire):
    """One run of the model, before and after tuning.

    ``baseline_us`` and ``best_us`` are sums over its tasks of weight times latency. What the model does beside, such as
    calling the functions and what was left alone, is not in them.
    """

    baseline_us: float
    """The functions of one run without a schedule, in microseconds."""
    best_us: float
    """The functions of one run with the best schedules so far, in microseconds."""
    searched_us: float | None = None
    """The functions of one run with the fastest trials of the search, before the closing races; None if a function was
    not searched. The fastest of many trials is faster than the same program in a race."""
    measured_us: float | None = None
    """Measured time of one run on the fleet, as one program with its bests; None if it was not timed."""
    baseline_measured_us: float | None = None
    """Measured time of one run without schedules, as one program beside ``measured_us``; None if it was not timed."""
    latency_us: float
    """What one run takes, as far as it is known: ``measured_us``, or ``best_us`` where that is None."""
    speedup: float
    """That of the certificate, if the model is one function; for several, the median of the ratios of the rounds in
    which the two measured times were taken. Where those are missing, ``baseline_us / latency_us``, which is low."""
    interval: Range | None = None
    """The speedup with its interval; None if the untuned model was not timed."""

    @property
    def untuned_us(self) -> float:
        """What one run takes without schedules, as far as it is known: ``baseline_measured_us``, or ``baseline_us``."""
        return self.baseline_us if self.baseline_measured_us is None else self.baseline_measured_us


class Phase(Wire):
    """What a job did or waited for in a part of its time."""

    activity: str
    """In words, such as ``in the queue``, ``searching`` or ``closing races``."""
    started_at: datetime
    """When it began."""
    finished_at: datetime | None
    """When the next phase began, or the job ended; None until then."""


class Job(Wire):
    """A job with its progress and tasks."""

    id: str
    """Id of the job."""
    name: str
    """Name of the job."""
    state: JobState
    """``queued``, ``running``, or how it ended: ``succeeded``, ``partly``, ``failed``, ``cancelled``."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    budget: Budget
    """Budget of the job."""
    seed: int
    """Seed of the search."""
    priority: int
    """Jobs with a higher priority run first."""
    owner: str
    """Who submitted it."""
    visibility: Visibility
    """Who sees it: the ``team``, or only its owner and admins (``private``)."""
    group: str | None = None
    """Id of the group of jobs of one submission for several targets; None if the submission had one ``target``."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Only workers with all of these labels measure the job."""
    created_at: datetime
    """When it was submitted."""
    started_at: datetime | None
    """When a controller first claimed the job; None until then."""
    finished_at: datetime | None
    """When it ended; None until then."""
    error: str | None
    """Why it failed, or succeeded only ``partly``; else None."""
    activity: str | None = None
    """What a job does or waits for, in words, such as ``closing race, 3 of 15``; None once it has ended."""
    phases: list[Phase] = Field(default_factory=list)
    """What it did since it was submitted; empty for jobs of services before they kept it."""
    tags: list[str] = Field(default_factory=list)
    """Words that its user gave it, sorted."""
    description: str = ""
    """What it is for, in its user's words."""
    device_s: float = 0.0
    """Seconds that its trials were in measuring slots; closing races are not counted."""
    notes: list[str]
    """Notes for the user, such as functions that are not tuned, and the limit that ended the search."""
    suggested_trials: int = 0
    """Suggested number of trials; 0 if the database answered all tasks at the submission."""
    progress: Progress
    """Progress of the job."""
    model: ModelLatency | None
    """None until each task has both latencies, and for several shapes, of which a run of the model has one."""
    tasks: list[Task]
    """Tasks of the job."""


class JobGroup(Wire):
    """The jobs of one submission for several targets, in the order of the targets."""

    id: str
    """Id of the group, `Job.group` of each job."""
    jobs: list[Job]
    """The jobs."""


class Span(Wire):
    """Work on a trial: a slice of a timeline. Trials that were proposed together share the slice of their proposal."""

    stage: Lane
    """The lane of the timeline, which differs from the stage of a failure (`Trial.failure_stage`)."""
    worker: str
    """The worker's id, or for ``propose`` the controller's process."""
    started_at: datetime
    """When it began."""
    finished_at: datetime
    """When it ended."""


class Trial(Wire):
    """One line of the durable ledger, as listed for a job."""

    id: str
    """Id of the trial; that of its record, if it was measured."""
    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    number: int
    """Order within the task, from 1; 0 is the baseline."""
    state: TrialState
    """``proposed`` until there is an outcome: ``measured`` or ``failed``."""
    origin: str
    """Origin of the candidate: baseline, seed (a rule's proposal), random, mutation, transfer (from a known
    schedule of this or a related workload), import."""
    predicted: float | None
    """Score that a model predicted to rank candidates: higher is faster, without a unit; None without a prediction."""
    predicted_by: Predictor | None = None
    """The model, ``ranking`` (XGBoost) or ``gaussian_process``: scores of one model can be compared. None without a
    prediction, and for trials of services before they kept it."""
    median_us: float | None
    """Median latency of a call, in microseconds; None unless it was measured."""
    failure_kind: FailureKind | None
    """Why it has no latency; None unless it failed."""
    failure_stage: Stage | None
    """Where it failed; None unless it failed."""
    failure_message: str | None
    """Message of the failure; None unless the trial failed."""
    worker: str | None
    """Worker that measured it; None if none did."""
    created_at: datetime
    """When it was proposed."""
    finished_at: datetime | None
    """When its outcome was stored; None until then."""
    spans: list[Span]
    """Timeline of the trial so far. A stage that was repeated is listed with its last attempt."""


class JobChanged(Wire):
    """Data of the server-sent event ``job``: the job entered a state."""

    state: JobState
    """The state that the job entered."""
    error: str | None
    """Why the job failed; None if it did not."""
    at: datetime
    """When it happened."""


class TaskChanged(Wire):
    """Data of the server-sent event ``task``: a task entered a state. Only a certified one has figures."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    state: TaskState
    """The state that the task entered."""
    baseline_us: float | None
    """Latency of the unscheduled program, in microseconds; None unless it is certified."""
    best_us: float | None
    """Latency of the best, in microseconds; None unless it is certified."""
    speedup: float | None
    """As `Certificate.speedup`; None unless it is certified."""
    interval: Range | None = None
    """The speedup with its interval, as `Certificate.interval`; None unless it is certified."""
    certified: bool
    """Whether the best has a certificate."""
    at: datetime
    """When it happened."""


class TrialFinished(Trial):
    """Data of the server-sent event ``trial``: a trial was measured or failed."""

    at: datetime
    """When it happened."""


Event = JobChanged | TaskChanged | TrialFinished | RecheckFinished
"""Data of a server-sent event of ``GET /jobs/{id}/events``; ids of events increase, and can resume the stream."""


class DescribeJob(Wire):
    """Body of ``PATCH /jobs/{id}``: what its user says of a job; None: unchanged."""

    tags: Tags | None = None
    """The new tags, in place of all that it has."""
    description: Description | None = None
    """The new description."""


class Resubmit(Wire):
    """Body of ``POST /jobs/{id}/resubmit``: fields that differ from the earlier job; None: unchanged."""

    budget: Budget | None = None
    """The new budget; None: the budget of the job."""
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """The new seed; None: the seed of the job."""
    force: bool | None = None
    """Whether to search even if the database knows the answer; None: as the job did."""


class PreviewTask(Wire):
    """A function that would be tuned."""

    name: str
    """Name of the function."""
    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    op: str
    """What the function computes, from the structure of its blocks: ``matmul``, ``conv2d``, ``softmax`` …"""
    source: str | None = None
    """Where the model calls it, as `Task.source`."""
    args: list[Tensor]
    """Buffer arguments of the function, in their order."""
    weight: int
    """How often the model calls it."""
    math: MathMode = "fp32"
    """How it may multiply float32."""
    flop: float | None
    """Floating point operations of one call; None if TVM cannot tell."""
    best: Best | None
    """The certified best that is known already for this target."""
    answered: bool
    """Whether this best would answer the task, without a search."""


class Preview(Wire):
    """The preview of a submission, which is not stored."""

    name: str
    """Name that the job would have."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    device_model: str
    """Name of the CPU or GPU, such as ``AMD Zen 3, 2 cores``."""
    tasks: list[PreviewTask]
    """The functions that would be tuned."""
    suggested_trials: int = 0
    """Suggested number of trials; 0 if the database answers all tasks."""
    left_alone: list[str]
    """Functions that would not be tuned, each with the reason."""
    notes: list[str]
    """Translations from the dialect of an earlier TVM."""
