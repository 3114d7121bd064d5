"""Jobs: what is submitted, how far it is, and each line of its ledger."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticSerializationError

from loopwright.codegen import worker_labels
from loopwright.codegen.math_mode import MathMode
from loopwright.schemas.base import (
    AnsweredFrom,
    FailureKind,
    FailureStage,
    JobState,
    Label,
    LabelWord,
    Lane,
    TaskState,
    TrialState,
    Wire,
)
from loopwright.schemas.gates import Gate
from loopwright.schemas.rechecks import RecheckFinished
from loopwright.schemas.workloads import Best, Library, Tensor


class ModulePayload(Wire):
    """A module as text. Its format is told, never guessed."""

    format: Literal["tvm-json", "tvmscript"]
    """``tvm-json``: JSON as ``tvm.ir.save_json`` writes it. ``tvmscript``: Python source, which is parsed and not
    run."""
    data: str = Field(min_length=1)
    """The module as text."""


Until = Literal["plateau"]
"""``plateau``: the next minute is expected to gain less than 1 %."""


class Budget(Wire):
    """How much a job may spend, and what is enough: whichever is met first ends the search."""

    max_trials: int = Field(default=64, ge=1, le=1_000_000)
    """Candidates to measure at most, for all tasks together."""
    max_seconds: float | None = Field(default=None, gt=0)
    """Seconds to search at most; None: no limit."""
    max_device_seconds: float | None = Field(default=None, gt=0)
    """Seconds in measuring slots. Closing races are not counted."""
    target_latency_us: float | None = Field(default=None, gt=0)
    """What one run of the model may take, as in `ModelLatency`."""
    until: Until | None = None
    """``plateau`` ends the search when the next minute is expected to gain less than 1 %, and each task had its first
    batch; None: only the limits end it."""


Visibility = Literal["team", "private"]
"""``private``: only its owner and admins see a job, and its workloads unless others submitted them, too."""


MOST_TARGETS = 8
"""Of one submission. The service reads the module once for each of them, which takes about 3 s for the largest models
in examples/, and the SDK waits 30 s for an answer."""


class SubmitJob(Wire):
    """Body of ``POST /jobs``."""

    module: ModulePayload
    """The module to tune."""
    target: str | dict[str, Any] = "auto"
    """``auto`` (what the fleet offers first), a TVM target string or tag, or its JSON."""
    targets: Annotated[list[str | dict[str, Any]], Field(min_length=1, max_length=MOST_TARGETS)] | None = None
    """In place of ``target``: a job is made for each of them, all with the same budget; the answer is a `JobGroup`."""
    name: Label | None = None
    """What to call the job; None: a name after the module."""
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    """Seed of the search."""
    priority: int = Field(default=0, ge=-100, le=100)
    """Jobs of a higher priority go first. Only admins may give one over 0."""
    budget: Budget = Budget()
    """What may be spent for each target."""
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
    """What the model is compared with once its tasks are done."""
    labels: dict[LabelWord, LabelWord] = Field(default_factory=dict, max_length=worker_labels.MOST)
    """Of workers: only those that have all of them measure the job."""

    @model_validator(mode="after")
    def _is_unicode(self) -> Self:
        """Refuse what JSON can hold and neither UTF-8 nor a database can: halves of characters."""
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
    weight: int
    """How often the model calls it."""
    state: TaskState
    """``joined``: another job searches for the same workload, and its answer is taken. The others are those of a
    job."""
    trials: int
    """Trials that finished, with those that failed."""
    baseline_us: float | None
    """Latency of the unscheduled program, in microseconds; None until it is measured."""
    best_us: float | None
    """Best latency so far, in microseconds; None until one is measured."""
    speedup: float | None
    """``baseline_us / best_us``; None until both are known."""
    certified: bool
    """Whether the best has a certificate."""
    answered_from: AnsweredFrom | None
    """Where the answer is from: a ``search`` of this job, the ``database``, or another job that it ``joined``; None
    until there is one."""
    record_id: str | None
    """Record of the best; None until there is one."""
    failures: dict[FailureKind, int]
    """Failed trials, by kind of failure."""
    error: str | None
    """Why the task failed; None if it did not."""
    model_share: float | None
    """Weight x latency over the sum of the job's tasks, by the best so far; None until each task has a latency."""
    budget_share: float | None
    """Trials over those of the whole job; None before the first."""
    library: Library | None
    """What a vendor's library takes for the same; None without a certificate, and where none computes it."""


class Progress(Wire):
    """Trials finished (failed ones included), failed, and allowed in total."""

    trials: int
    """Trials that finished, with those that failed."""
    failed: int
    """Trials that failed."""
    total: int
    """Trials that may be made at most."""
    time_left_s: float | None
    """Seconds that the search is likely to take yet; None where the job is not searching or has no trial yet."""


class ModelLatency(Wire):
    """One run of the model: the sum over its tasks of weight times latency, by the best so far.

    What the model does beside, such as calling the functions and what was left alone, is not in it.
    """

    baseline_us: float
    """One run of the unscheduled model, in microseconds."""
    best_us: float
    """One run with the best schedules so far, in microseconds."""
    speedup: float
    """``baseline_us / best_us``."""
    measured_us: float | None = None
    """What one run took on the fleet, as one program with its bests; None where that was not timed."""


class Job(Wire):
    """What a user submitted, and how far it is."""

    id: str
    """Id of the job."""
    name: str
    """Name of the job."""
    state: JobState
    """``queued``, ``running``, or how it ended: ``succeeded``, ``failed``, ``cancelled``."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    budget: Budget
    """What may be spent."""
    seed: int
    """Seed of the search."""
    priority: int
    """Jobs of a higher priority go first."""
    owner: str
    """Who submitted it."""
    visibility: Visibility
    """Who sees it: the ``team``, or only its owner and admins (``private``)."""
    group: str | None = None
    """What it has in common with the jobs for the other targets of its submission; None if it had one ``target``."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Of workers: only those that have all of them measure the job."""
    created_at: datetime
    """When it was submitted."""
    started_at: datetime | None
    """When a controller took it up first; None until then."""
    finished_at: datetime | None
    """When it ended; None until then."""
    error: str | None
    """Why it failed; None if it did not."""
    notes: list[str]
    """What a user should know, such as functions that were not tuned and which limit ended the search."""
    suggested_trials: int = 0
    """Trials that the model deserves; 0 if the database answered all of it at the submission."""
    progress: Progress
    """How far it is."""
    model: ModelLatency | None
    """None until each task has both latencies."""
    tasks: list[Task]
    """Its workloads."""


class JobGroup(Wire):
    """The jobs of one submission for several targets, in the order of the targets."""

    id: str
    """`Job.group` of each."""
    jobs: list[Job]
    """The jobs."""


class Span(Wire):
    """Who worked on a trial, and when: a slice of a timeline. Trials that were proposed together share that slice."""

    stage: Lane
    """The lane of the timeline; other than `Trial.failure_stage`, which says where a trial failed."""
    worker: str
    """Who did it: a worker's id, or the controller's process for ``propose``."""
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
    """Where it came from: baseline, random, mutation, crossover, transfer (from a related workload), import."""
    predicted: float | None
    """Score that the cost model predicted: higher is faster, without a unit; None without a prediction."""
    median_us: float | None
    """Median latency of a call, in microseconds; None unless it was measured."""
    failure_kind: FailureKind | None
    """Why it has no latency; None unless it failed."""
    failure_stage: FailureStage | None
    """Where it failed; None unless it failed."""
    failure_message: str | None
    """The reason in words; None unless it failed."""
    worker: str | None
    """Worker that measured it; None if none did."""
    created_at: datetime
    """When it was proposed."""
    finished_at: datetime | None
    """When its outcome was stored; None until then."""
    spans: list[Span]
    """Its way in time, as far as it has come; a stage that was lost and done again stands with its last attempt."""


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
    """``baseline_us / best_us``; None unless it is certified."""
    certified: bool
    """Whether the best has a certificate."""
    at: datetime
    """When it happened."""


class TrialFinished(Trial):
    """Data of the server-sent event ``trial``: a trial was measured or failed."""

    at: datetime
    """When it happened."""


Event = JobChanged | TaskChanged | TrialFinished | RecheckFinished
"""Data of a server-sent event of ``GET /jobs/{id}/events``; the id of each event grows and resumes the stream."""


class Resubmit(Wire):
    """Body of ``POST /jobs/{id}/resubmit``: what is to be different; None is as it was."""

    budget: Budget | None = None
    """The new budget; None: that of the job."""
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    """The new seed; None: that of the job."""
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
    args: list[Tensor]
    """Buffer arguments of the function, in their order."""
    weight: int
    """How often the model calls it."""
    math: MathMode = "fp32"
    """How it may multiply float32."""
    flop: float | None
    """Floating point operations of one call; None where TVM cannot say."""
    best: Best | None
    """The certified best that is known already for this target."""
    answered: bool
    """True where the job would be answered by it, without a search."""


class Preview(Wire):
    """What a submission would become; nothing is stored."""

    name: str
    """Name that the job would have."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    device_model: str
    """Model of the CPU or GPU."""
    tasks: list[PreviewTask]
    """The functions that would be tuned."""
    suggested_trials: int = 0
    """Trials that the model deserves; 0 if the database answers all of it."""
    left_alone: list[str]
    """Functions that would not be tuned, each with the reason."""
    notes: list[str]
    """What was translated from an earlier TVM's dialect."""
