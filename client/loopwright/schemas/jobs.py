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
    data: str = Field(min_length=1)


Until = Literal["plateau"]
"""``plateau``: the next minute is expected to gain less than 1 %."""


class Budget(Wire):
    """How much a job may spend, and what is enough: whichever is met first ends the search."""

    max_trials: int = Field(default=64, ge=1, le=1_000_000)
    max_seconds: float | None = Field(default=None, gt=0)
    max_device_seconds: float | None = Field(default=None, gt=0)
    """Seconds in measuring slots. Closing races are not counted."""
    target_latency_us: float | None = Field(default=None, gt=0)
    """What one run of the model may take, as in `ModelLatency`."""
    until: Until | None = None


Visibility = Literal["team", "private"]
"""``private``: only its owner and admins see a job, and its workloads unless others submitted them, too."""


MOST_TARGETS = 8
"""Of one submission. The service reads the module once for each of them, which takes about 3 s for the largest models
in examples/, and the SDK waits 30 s for an answer."""


class SubmitJob(Wire):
    """Body of ``POST /jobs``."""

    module: ModulePayload
    target: str | dict[str, Any] = "auto"
    targets: Annotated[list[str | dict[str, Any]], Field(min_length=1, max_length=MOST_TARGETS)] | None = None
    """In place of ``target``: a job is made for each of them, all with the same budget; the answer is a `JobGroup`."""
    name: Label | None = None
    seed: int = Field(default=0, ge=0, le=2**31 - 1)
    priority: int = Field(default=0, ge=-100, le=100)
    budget: Budget = Budget()
    space: list[Any] | None = None
    shapes: dict[str, int] | Annotated[list[dict[str, int]], Field(fail_fast=True)] | None = None
    """Values of symbolic extents, by name; a list tunes for each of them."""
    force: bool = False
    visibility: Visibility = "team"
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
            raise ValueError("a text holds half of a character (a lone surrogate), which is no Unicode") from error
        return self

    @model_validator(mode="after")
    def _has_one_or_several_targets(self) -> Self:
        if self.targets is not None and self.target != "auto":
            raise ValueError("give target or targets, not both")
        return self


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
    model_share: float | None
    """Weight x latency over the sum of the job's tasks, by the best so far; None until each task has a latency."""
    budget_share: float | None
    """Trials over those of the whole job; None before the first."""
    library: Library | None
    """What a vendor's library takes for the same; None without a certificate, and where none computes it."""


class Progress(Wire):
    """Trials finished (failed ones included), failed, and allowed in total."""

    trials: int
    failed: int
    total: int
    time_left_s: float | None
    """Seconds that the search is likely to take yet; None where the job is not searching or has no trial yet."""


class ModelLatency(Wire):
    """One run of the model: the sum over its tasks of weight times latency, by the best so far.

    What the model does beside, such as calling the functions and what was left alone, is not in it.
    """

    baseline_us: float
    best_us: float
    speedup: float
    measured_us: float | None = None
    """What one run took on the fleet, as one program with its bests; None where that was not timed."""


class Job(Wire):
    """What a user submitted, and how far it is."""

    id: str
    name: str
    state: JobState
    target: dict[str, Any]
    device_class: str
    budget: Budget
    seed: int
    priority: int
    owner: str
    visibility: Visibility
    group: str | None = None
    """What it has in common with the jobs for the other targets of its submission; None if it had one ``target``."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Of workers: only those that have all of them measure the job."""
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    error: str | None
    notes: list[str]
    suggested_trials: int = 0
    """Trials that the model deserves; 0 if the database answered all of it at the submission."""
    progress: Progress
    model: ModelLatency | None
    """None until each task has both latencies."""
    tasks: list[Task]


class JobGroup(Wire):
    """The jobs of one submission for several targets, in the order of the targets."""

    id: str
    """`Job.group` of each."""
    jobs: list[Job]


class Span(Wire):
    """Who worked on a trial, and when: a slice of a timeline. Trials that were proposed together share that slice."""

    stage: Lane
    """The lane of the timeline; other than `Trial.failure_stage`, which says where a trial failed."""
    worker: str
    started_at: datetime
    finished_at: datetime


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
    failure_stage: FailureStage | None
    failure_message: str | None
    worker: str | None
    created_at: datetime
    finished_at: datetime | None
    spans: list[Span]
    """Its way in time, as far as it has come; a stage that was lost and done again stands with its last attempt."""


class JobChanged(Wire):
    """Data of the server-sent event ``job``: the job entered a state."""

    state: JobState
    error: str | None
    at: datetime


class TaskChanged(Wire):
    """Data of the server-sent event ``task``: a task entered a state. Only a certified one has figures."""

    workload_hash: str
    state: TaskState
    baseline_us: float | None
    best_us: float | None
    speedup: float | None
    certified: bool
    at: datetime


class TrialFinished(Trial):
    """Data of the server-sent event ``trial``: a trial was measured or failed."""

    at: datetime


Event = JobChanged | TaskChanged | TrialFinished | RecheckFinished
"""Data of a server-sent event of ``GET /jobs/{id}/events``; the id of each event grows and resumes the stream."""


class Resubmit(Wire):
    """Body of ``POST /jobs/{id}/resubmit``: what is to be different; None is as it was."""

    budget: Budget | None = None
    seed: int | None = Field(default=None, ge=0, le=2**31 - 1)
    force: bool | None = None


class PreviewTask(Wire):
    """A function that would be tuned."""

    name: str
    workload_hash: str
    op: str
    args: list[Tensor]
    weight: int
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
    target: dict[str, Any]
    device_class: str
    device_model: str
    tasks: list[PreviewTask]
    suggested_trials: int = 0
    """Trials that the model deserves; 0 if the database answers all of it."""
    left_alone: list[str]
    """Functions that would not be tuned, each with the reason."""
    notes: list[str]
    """What was translated from an earlier TVM's dialect."""
