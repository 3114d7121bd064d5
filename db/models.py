"""The tables. Nothing outside db/ sees these classes; repositories answer with the values of `db.views`."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any, ClassVar

from sqlalchemy import (
    JSON,
    BigInteger,
    CheckConstraint,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    UniqueConstraint,
    text,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

from db.engine.columns import CompressedText, CompressedTrace, EnumText, SafeText, UtcDateTime
from db.states import EventType, LeaseLoss, Scope
from loopwright.codegen.kinds import (
    AnsweredFrom,
    FailureKind,
    JobState,
    Origin,
    Predictor,
    SandboxLevel,
    Stage,
    TaskState,
    TokenKind,
    TrialState,
)

_ENUMS = (
    AnsweredFrom,
    EventType,
    FailureKind,
    JobState,
    LeaseLoss,
    Origin,
    Predictor,
    SandboxLevel,
    Scope,
    Stage,
    TaskState,
    TokenKind,
    TrialState,
)

OWNER = "owner"
"""Name of the user whose token is in the data directory; the first migration makes it."""


NO_LABELS = "{}"


def _where(condition: str) -> dict[str, Any]:
    """Return the options of an index of the rows that a condition is true of."""
    return {"sqlite_where": text(condition), "postgresql_where": text(condition)}


# Statements spell these conditions out (`db.conditions`): with parameters, no such index would be used.
_ASKED = _where(f"state = 'queued' AND labels_json <> '{NO_LABELS}'")
_UNFINISHED = "state IN ('queued', 'running')"
_FINISHED = _where("finished_at IS NOT NULL")


def _state_of(states: type[StrEnum]) -> CheckConstraint:
    return CheckConstraint(f"state IN ({', '.join(repr(state.value) for state in states)})", name="state")


class Base(DeclarativeBase):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {
        str: SafeText,
        float: Double,
        datetime: UtcDateTime,
        list[Any]: JSON,
        dict[str, Any]: JSON,
        **{kind: EnumText(kind) for kind in _ENUMS},
    }


class User(Base):
    """A user. The limits of use are those of `db.access.usage.Quota`; None: no limit."""

    __tablename__ = "users"

    name: Mapped[str] = mapped_column(primary_key=True)
    role: Mapped[Scope]
    """What the user's tokens may do at most."""
    active_jobs: Mapped[int | None]
    daily_trials: Mapped[int | None]
    daily_device_seconds: Mapped[float | None]
    daily_bytes: Mapped[int | None] = mapped_column(BigInteger)
    created_at: Mapped[datetime]
    disabled_at: Mapped[datetime | None]


class Token(Base):
    """A secret that its bearer shows; only its digest is stored."""

    __tablename__ = "tokens"

    id: Mapped[str] = mapped_column(primary_key=True)
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"))
    kind: Mapped[TokenKind]
    name: Mapped[str]
    scope: Mapped[Scope]
    digest: Mapped[str] = mapped_column(unique=True)
    created_at: Mapped[datetime]
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    used_at: Mapped[datetime | None]
    """When it was last seen, to some minutes."""
    made_by: Mapped[str | None]
    """The id of the token with which it was made, also through a session or a code."""
    ceiling: Mapped[datetime | None]
    """Of a session or a code: the end of the token that it stands for."""

    __table_args__ = (Index(None, "user_name", "created_at"), Index(None, "expires_at"), Index(None, "made_by"))


class Usage(Base):
    """A user's use on a day (UTC): jobs and bytes submitted, trials finished, seconds in measuring slots.

    Trials that have just ended are in `TrialTally`.
    """

    __tablename__ = "usage"

    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"), primary_key=True)
    day: Mapped[str] = mapped_column(primary_key=True)
    """As in 2030-01-31."""
    jobs: Mapped[int]
    trials: Mapped[int]
    device_seconds: Mapped[float]
    bytes: Mapped[int] = mapped_column(BigInteger)


class AuditEntry(Base):
    """A requested change, and whether it was refused."""

    __tablename__ = "audit"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    created_at: Mapped[datetime] = mapped_column(index=True)
    user_name: Mapped[str]
    token_id: Mapped[str]
    action: Mapped[str]
    object: Mapped[str]
    status: Mapped[int]
    """HTTP's, of the answer."""
    address: Mapped[str]
    """Where the request came from."""

    __table_args__ = ({"sqlite_autoincrement": True},)


class TrialTally(Base):
    """What the trials of a task came to on a day (UTC), where it is not added to `Usage` and `TrialCount` yet.

    Who has the lock of the task's job writes it, so that trials of two jobs never wait for each other. `db.tallies`
    adds it to the rows that all jobs share.
    """

    __tablename__ = "trial_tallies"

    task_id: Mapped[str] = mapped_column(ForeignKey("tasks.id"), primary_key=True)
    day: Mapped[str] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(primary_key=True)
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"))
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"))
    tvm_version: Mapped[str]
    trials: Mapped[int]
    samples: Mapped[int]
    device_seconds: Mapped[float]

    __table_args__ = (Index(None, "user_name", "day"),)


class JobCount(Base):
    """How many jobs of a user are in a state, and sums over them; renewed with each change of a job's state."""

    __tablename__ = "job_counts"

    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"), primary_key=True)
    private: Mapped[bool] = mapped_column(primary_key=True)
    state: Mapped[JobState] = mapped_column(primary_key=True)
    jobs: Mapped[int] = mapped_column(BigInteger)
    promised_trials: Mapped[int] = mapped_column(BigInteger)
    """The budgets of jobs that have not ended."""
    trials: Mapped[int] = mapped_column(BigInteger)
    """Those of jobs that have ended. This and what follows stays when old jobs are deleted."""
    saved_secs: Mapped[float]
    search_saved_secs: Mapped[float]


class ChangeCount(Base):
    """How many transactions have changed what answers show of a topic, in several rows (`db.engine.changes`)."""

    __tablename__ = "changes"

    topic: Mapped[str] = mapped_column(primary_key=True)
    shard: Mapped[int] = mapped_column(primary_key=True)
    changes: Mapped[int] = mapped_column(BigInteger)


class Workload(Base):
    """One schedulable function. ``module_json`` is bound to ``tvm_version``; both are renewed together."""

    __tablename__ = "workloads"

    hash: Mapped[str] = mapped_column(primary_key=True)
    family: Mapped[str]
    """What it shares with workloads that differ in their shapes only."""
    name: Mapped[str]
    module_json: Mapped[str] = mapped_column("module", CompressedText, key="module_json", deferred=True)
    script: Mapped[str] = mapped_column("source", CompressedText, key="script", deferred=True)
    args: Mapped[list[Any]]
    """``[[shape, dtype], …]``, one pair a buffer."""
    op: Mapped[str]
    """What it computes."""
    compute_dtype: Mapped[str]
    flop: Mapped[float | None]
    """Floating point operations of one call."""
    tvm_version: Mapped[str]
    shared: Mapped[bool]
    """Whether everybody sees it: any job that is not private, or an import, has it. Else `WorkloadHolder` has who."""
    created_at: Mapped[datetime]

    log_size: Mapped[float | None]
    """The sum of the logarithms of all extents in `args`. None: an earlier release has written the row."""

    __table_args__ = (
        Index(None, "created_at", "hash"),
        Index(None, "family", "log_size"),
        # Looked into for each row that a user reads.
        Index("ix_workloads_private", "hash", **_where("shared IS FALSE")),
    )


class WorkloadHolder(Base):
    """A user who submitted a workload in a private job."""

    __tablename__ = "workload_holders"

    workload_hash: Mapped[str] = mapped_column(ForeignKey("workloads.hash"), primary_key=True)
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"), primary_key=True)


class Target(Base):
    __tablename__ = "targets"

    id: Mapped[str] = mapped_column(primary_key=True)
    json: Mapped[str]
    kind: Mapped[str]


class DeviceClass(Base):
    """Machines whose timings may be compared; ``id`` is the digest of all of it."""

    __tablename__ = "device_classes"

    id: Mapped[str] = mapped_column(primary_key=True)
    target_id: Mapped[str] = mapped_column(ForeignKey("targets.id"), index=True)
    model: Mapped[str]
    features: Mapped[list[Any]]
    cores: Mapped[int]
    threads: Mapped[int]
    runtime: Mapped[str]
    peak_dtype: Mapped[str | None]
    peak_flops: Mapped[float | None]
    """Floating point operations a second in `peak_dtype`, measured; with the two that follow, or none of them."""
    peak_bytes: Mapped[float | None]
    peaks_measured_at: Mapped[datetime | None]
    caches: Mapped[list[Any]] = mapped_column(server_default="[]")
    """Of each, its name, bytes and measured rate, the smallest first; see `tuner.types.CacheRate`."""


class Worker(Base):
    """``slot_*`` and ``builders_busy`` are what it was doing when it was last seen; ``slot_use`` is in [0, 1]."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(primary_key=True)
    host: Mapped[str]
    device: Mapped[str]
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"))
    builders: Mapped[int]
    sandbox: Mapped[SandboxLevel]
    """The level of the walls around its programs."""
    last_seen_at: Mapped[datetime]
    builders_busy: Mapped[int]
    slot_since: Mapped[datetime | None]
    slot_trial_id: Mapped[str | None]
    slot_use: Mapped[float | None]
    waits_for: Mapped[str | None]
    """The program that uses the host's cores while the slot waits for them."""
    quarantined_at: Mapped[datetime | None]
    quarantine_reason: Mapped[str | None]
    readmitted_at: Mapped[datetime | None]
    """When the owner last cleared it: what was held against it before counts no more."""
    drained_at: Mapped[datetime | None]
    """Since when it gets no work, because an admin said so."""
    leaving: Mapped[bool]
    """Whether its host said, when it was last seen, that it shuts down."""
    labels: Mapped[dict[str, Any]]
    leased_to: Mapped[str | None] = mapped_column(ForeignKey("controllers.owner", ondelete="SET NULL"))
    """The controller that alone gives it work, where several share the fleet (`db.device_leases`)."""


class Controller(Base):
    """A controller whose jobs want devices, while its lease lasts."""

    __tablename__ = "controllers"

    owner: Mapped[str] = mapped_column(primary_key=True)
    demands: Mapped[list[Any]]
    """`db.inputs.Demand` of its jobs, as of the last renewal."""
    expires_at: Mapped[datetime]


class Check(Base):
    """One timing of a worker's reference kernel, in seconds."""

    __tablename__ = "checks"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    worker_id: Mapped[str] = mapped_column(ForeignKey("workers.id"))
    secs: Mapped[float]
    created_at: Mapped[datetime]

    __table_args__ = (Index(None, "worker_id", "created_at"),)


class Job(Base):
    __tablename__ = "jobs"

    id: Mapped[str] = mapped_column(primary_key=True)
    name: Mapped[str]
    state: Mapped[JobState]
    module_json: Mapped[str] = mapped_column("module", CompressedText, key="module_json", deferred=True)
    space_json: Mapped[str | None] = mapped_column(deferred=True)
    space_hash: Mapped[str]
    shapes: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """Bindings of symbolic extents, where the module was tuned for several; a single one is bound in the module."""
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"))
    target_json: Mapped[str]
    budget: Mapped[dict[str, Any]]
    """A `tuner.budget.Budget`."""
    suggested_trials: Mapped[int]
    """Trials that the model deserves, as its user was told; 0 if none were needed."""
    seed: Mapped[int]
    priority: Mapped[int]
    force: Mapped[bool]
    notes: Mapped[list[Any]]
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"))
    private: Mapped[bool]
    """Whether only its user and admins see it."""
    labels_json: Mapped[str]
    """Of workers, with sorted keys: those that measure the job have all of them."""
    idempotency_key: Mapped[str | None]
    """Of a group, the first job has it."""
    request_digest: Mapped[str | None]
    group_id: Mapped[str | None]
    """What the jobs of one submission for several targets have in common; none for a job of its own."""
    group_position: Mapped[int | None]
    """Of its target in the submission, from 0."""
    cancel_requested: Mapped[bool]
    activity: Mapped[str | None]
    """What a running job does or waits for, in words."""
    phases: Mapped[list[Any]] = mapped_column(server_default="[]")
    """What it did since it was created: ``[[words, seconds since 1970], …]``, each until the next begins."""
    tags: Mapped[str] = mapped_column(server_default="")
    """In order, each between line feeds, so that a part of the text is one of them."""
    description: Mapped[str] = mapped_column(server_default="")
    error: Mapped[str | None]
    created_at: Mapped[datetime]
    queued_at: Mapped[datetime]
    """When it took its place in the queue: when it was created, or had its last turn, and others waited."""
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    lease_owner: Mapped[str | None]
    lease_token: Mapped[str | None]
    lease_expires_at: Mapped[datetime | None]
    attempts: Mapped[int]
    elapsed_s: Mapped[float]
    model_secs: Mapped[float | None]
    """What one run of the tuned model took as one program, where it was timed."""
    model_baseline_secs: Mapped[float | None]
    """The same of the model without schedules, with the two beside each other."""
    model_speedup: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Its value, low, high and grade, from both; see `db.views.SpeedupInterval`."""
    saved_secs: Mapped[float] = mapped_column(server_default="0")
    """Once it has succeeded: by how much one run of the model is faster than with the baselines."""
    search_saved_secs: Mapped[float] = mapped_column(server_default="0")
    """Once it has succeeded: searching that it was spared by answers from the database and other jobs' searches."""
    trials: Mapped[int] = mapped_column(server_default="0")
    """Once it has ended: how many its tasks have."""
    is_answered: Mapped[bool | None]
    """Whether the database had certificates for its open tasks when a controller last looked (`Jobs.note_answers`)."""
    swept_at: Mapped[datetime | None]
    """When it was last looked through for what is old and needed by nothing (`db.retention`)."""

    __table_args__ = (
        _state_of(JobState),
        UniqueConstraint("user_name", "idempotency_key"),
        Index(
            "uq_jobs_group",
            "group_id",
            "group_position",
            unique=True,
            **_where("group_id IS NOT NULL"),
        ),
        # No index begins with the state, or SQLite would take it in place of those of a state.
        # Read at each claim: the queue, one lane after another (`db.jobs.queue`).
        Index("ix_jobs_asked_labels", "labels_json", **_ASKED),
        Index(
            "ix_jobs_queue",
            *("device_class_id", "labels_json", "priority", "user_name", "queued_at", "id"),
            **_where("state = 'queued'"),
        ),
        Index("ix_jobs_answered", "queued_at", "id", **_where("state = 'queued' AND is_answered IS TRUE")),
        Index("ix_jobs_running", "user_name", **_where("state = 'running'")),
        # Whose trials are counted in their tasks.
        Index("ix_jobs_begun", "user_name", "id", **_where("started_at IS NOT NULL AND finished_at IS NULL")),
        # Lists of jobs in some states.
        Index("ix_jobs_unfinished", "created_at", "id", "state", **_where(_UNFINISHED)),
        Index("ix_jobs_finished", "state", "created_at", "id", **_FINISHED),
        # Looked into for each row that a user reads.
        Index("ix_jobs_private", "id", "user_name", **_where("private IS TRUE")),
        # What `db.job_counts` counts anew, so that it reads no row with its module.
        Index(None, "private", "user_name", "state"),
        Index("ix_jobs_old", "swept_at", "finished_at", "id", **_FINISHED),
        Index(None, "created_at", "id"),
        Index(None, "user_name", "created_at", "id"),
    )


class Task(Base):
    """A workload within a job. ``key`` names what is tuned: workload, device class and space."""

    __tablename__ = "tasks"

    id: Mapped[str] = mapped_column(primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    position: Mapped[int]
    workload_hash: Mapped[str] = mapped_column(ForeignKey("workloads.hash"))
    name: Mapped[str]
    weight: Mapped[int]
    sources: Mapped[list[Any]] = mapped_column(server_default="[]")
    """Where the model calls it: modules of PyTorch, nodes of ONNX, lines of TVMScript."""
    key: Mapped[str] = mapped_column(index=True)
    state: Mapped[TaskState]
    answered_from: Mapped[AnsweredFrom | None]
    certificate_id: Mapped[str | None]
    """No foreign key: certificates → trials → tasks would become a circle. Only `Tasks.answer` writes it."""
    error: Mapped[str | None]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    trials: Mapped[int] = mapped_column(server_default="0")
    """How many it finished, without the baseline. This and what follows is renewed as each trial ends."""
    failures: Mapped[dict[str, Any]] = mapped_column(server_default="{}")
    """How many of them failed, by `FailureKind`."""
    baseline_secs: Mapped[float | None]
    best_secs: Mapped[float | None]
    """The fastest median, that of the baseline included."""
    device_secs: Mapped[float] = mapped_column(server_default="0")
    """How long its trials were in measuring slots."""

    __table_args__ = (
        _state_of(TaskState),
        UniqueConstraint("job_id", "position"),
        Index(
            "uq_tasks_running_key",
            "key",
            unique=True,
            **_where("state = 'running'"),
        ),
    )


class Comparison(Base):
    """The latest comparison of a job's model with other engines, as a user measured it and as it was sent."""

    __tablename__ = "comparisons"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"))
    result: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]


class Gate(Base):
    """The reference of a job's gate, and its result; both in the form of the wire."""

    __tablename__ = "gates"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    request: Mapped[dict[str, Any]]
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class Ablation(Base):
    """A measured trial whose neighbours a job races with it, and the result in the form of the wire."""

    __tablename__ = "ablations"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    trial_id: Mapped[str] = mapped_column(ForeignKey("trials.id"), index=True)
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))


class Recheck(Base):
    """A certificate that a job races again, with the reason, and the result in the form of the wire."""

    __tablename__ = "rechecks"

    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"), primary_key=True)
    certificate_id: Mapped[str] = mapped_column(ForeignKey("certificates.id"), primary_key=True)
    reason: Mapped[str]
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    document: Mapped[str | None]
    """What is signed of the result: JSON, as `db.results.evidence.verdict` writes it; None until there is a result."""
    key_id: Mapped[str | None] = mapped_column(ForeignKey("signing_keys.id"))
    signature: Mapped[str | None]
    """Of the document, in base64."""


class Trial(Base):
    """A line of the durable ledger. An imported record has no task."""

    __tablename__ = "trials"

    id: Mapped[str] = mapped_column(primary_key=True)
    task_id: Mapped[str | None] = mapped_column(ForeignKey("tasks.id"))
    workload_hash: Mapped[str] = mapped_column(ForeignKey("workloads.hash"))
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"))
    number: Mapped[int]
    origin: Mapped[Origin]
    candidate_hash: Mapped[str]
    trace_json: Mapped[str | None] = mapped_column("trace", CompressedTrace, key="trace_json")
    state: Mapped[TrialState]
    lease_token: Mapped[str | None]
    """None once it is finished."""
    run_secs: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    median: Mapped[float | None]
    failure_stage: Mapped[Stage | None]
    failure_kind: Mapped[FailureKind | None]
    failure_message: Mapped[str | None]
    predicted: Mapped[float | None]
    predicted_by: Mapped[Predictor | None]
    """The model with that score. None: an earlier release has written the row, or nothing was predicted."""
    parent: Mapped[str | None]
    worker: Mapped[str | None]
    sandbox: Mapped[SandboxLevel | None]
    """The level of the walls in which it was measured; none if it was not measured, and if it was imported."""
    device_state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Of a GPU after the samples; as `tuner.types.DeviceState` writes it."""
    seed: Mapped[int | None]
    features: Mapped[bytes | None] = mapped_column(deferred=True)
    """What the cost model sees of it; none for baselines and imported records."""
    tvm_version: Mapped[str]
    codegen_version: Mapped[int]
    """The version of `loopwright.codegen` that the trace needs."""
    created_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    spans: Mapped[list[Any] | None] = mapped_column(JSON(none_as_null=True))
    """``[[stage, worker, start, end], …]``, times in seconds since 1970."""

    __table_args__ = (
        _state_of(TrialState),
        CheckConstraint("(state = 'measured') = (median IS NOT NULL)", name="measured"),
        CheckConstraint("(state = 'failed') = (failure_kind IS NOT NULL)", name="failed"),
        UniqueConstraint("task_id", "candidate_hash"),
        UniqueConstraint("task_id", "number"),
        Index(
            "uq_trials_imported",
            "workload_hash",
            "device_class_id",
            "candidate_hash",
            unique=True,
            **_where("task_id IS NULL"),
        ),
        Index(None, "workload_hash", "device_class_id", "median"),
        # Ids, by which ties are listed, would double the indexes that follow.
        Index(None, "created_at"),
        Index(None, "device_class_id", "created_at"),
        Index(
            "ix_trials_fastest",
            "median",
            **_where("median IS NOT NULL"),
        ),
        Index(
            "ix_trials_fastest_of_class",
            "device_class_id",
            "median",
            **_where("median IS NOT NULL"),
        ),
        Index(
            "ix_trials_proposed",
            "task_id",
            **_where("state = 'proposed'"),
        ),
        Index(
            "ix_trials_lost",
            "worker",
            "finished_at",
            **_where("failure_kind = 'DEVICE_LOST'"),
        ),
    )


class LeaseLossCount(Base):
    """How many leases of jobs were ever lost, by how."""

    __tablename__ = "lease_losses"

    cause: Mapped[LeaseLoss] = mapped_column(primary_key=True)
    losses: Mapped[int] = mapped_column(BigInteger)


class TrialCount(Base):
    """How many trials have ended in all on a device class with a version of TVM, besides those in `TrialTally`.

    They stay counted when they are pruned.
    """

    __tablename__ = "trial_counts"

    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"), primary_key=True)
    tvm_version: Mapped[str] = mapped_column(primary_key=True)
    outcome: Mapped[str] = mapped_column(primary_key=True)
    """``measured``, or a `FailureKind`."""
    trials: Mapped[int] = mapped_column(BigInteger)
    samples: Mapped[int] = mapped_column(BigInteger)
    """Those of them that a cost model can learn from."""


class SigningKey(Base):
    """A key with which certificates are signed; both parts are base64."""

    __tablename__ = "signing_keys"

    id: Mapped[str] = mapped_column(primary_key=True)
    """See `loopwright.codegen.signatures.key_id`."""
    public_key: Mapped[str]
    private_key: Mapped[str | None]
    """None once it is retired."""
    created_at: Mapped[datetime]
    retired_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    """Since when nothing that it signed is believed."""


class Certificate(Base):
    """The evidence for a best.

    ``budget_trials``: how many trials the search was allowed; ``search_secs``: its share of the time that its job ran,
    by trials.
    """

    __tablename__ = "certificates"

    id: Mapped[str] = mapped_column(primary_key=True)
    workload_hash: Mapped[str] = mapped_column(ForeignKey("workloads.hash"))
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"))
    space_hash: Mapped[str]
    trial_id: Mapped[str] = mapped_column(ForeignKey("trials.id"), index=True)
    inputs: Mapped[str]
    rtol: Mapped[float]
    atol: Mapped[float]
    max_abs_error: Mapped[float]
    max_rel_error: Mapped[float]
    baseline_run_secs: Mapped[list[Any]]
    best_run_secs: Mapped[list[Any]]
    baseline_median: Mapped[float]
    best_median: Mapped[float]
    contenders: Mapped[int]
    rejected: Mapped[dict[str, Any]]
    """Candidate hash -> `tuner.types.Failure` as JSON with ``trial_id``."""
    budget_trials: Mapped[int]
    at_plateau: Mapped[bool]
    """Whether the search ended because more of it was not expected to gain much."""
    search_secs: Mapped[float]
    library: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """``name`` and ``run_secs`` of what a vendor's library took; none where there is none that computes the same."""
    sandbox: Mapped[SandboxLevel]
    """The level of the walls around the closing race."""
    device_state: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    """Of a GPU after the last round; as `tuner.types.DeviceState` writes it."""
    conditions: Mapped[str]
    """TVM, kernel and driver of the newest race that says what it says."""
    created_at: Mapped[datetime]
    checked_at: Mapped[datetime | None]
    """When it was last raced anew."""
    regressed_at: Mapped[datetime | None]
    """Since when it is known that it says too much."""
    document: Mapped[str]
    """What is signed: JSON, as `db.results.evidence` writes it."""
    key_id: Mapped[str] = mapped_column(ForeignKey("signing_keys.id"))
    signature: Mapped[str]
    """Of the document, in base64."""
    verdict_document: Mapped[str | None]
    """What is signed of the last recheck: JSON, as `db.results.evidence.verdict` writes it."""
    verdict_key_id: Mapped[str | None] = mapped_column(ForeignKey("signing_keys.id"))
    verdict_signature: Mapped[str | None]

    __table_args__ = (Index(None, "workload_hash", "device_class_id", "best_median"),)


class ImportedEvidence(Base):
    """The certificate with which a record was imported, as the deployment that measured it signed it."""

    __tablename__ = "imported_evidence"

    trial_id: Mapped[str] = mapped_column(ForeignKey("trials.id"), primary_key=True)
    document: Mapped[str]
    public_key: Mapped[str]
    """The key with which the signature agrees, in base64; anybody may have made it."""
    signature: Mapped[str]
    created_at: Mapped[datetime]
    """When it was imported."""


class Best(Base):
    """The fastest certificate of each workload and device class, with what the list of best schedules sorts by: a copy.

    `db.bests` renews a row in the transaction that changes what it stands on.
    """

    __tablename__ = "bests"

    workload_hash: Mapped[str] = mapped_column(ForeignKey("workloads.hash"), primary_key=True)
    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"), primary_key=True)
    certificate_id: Mapped[str] = mapped_column(ForeignKey("certificates.id"))
    name: Mapped[str]
    op: Mapped[str]
    text: Mapped[str]
    """What a search looks through: name and op in lower case."""
    baseline_median: Mapped[float]
    best_median: Mapped[float]
    speedup: Mapped[float]
    spread: Mapped[float]
    peak_share: Mapped[float | None]
    created_at: Mapped[datetime]

    __table_args__ = tuple(
        Index(None, column, "workload_hash", "device_class_id")
        for column in ("name", "op", "text", "baseline_median", "best_median", "speedup", "peak_share", "created_at")
    )


class CostModel(Base):
    """The base model of a device class, in XGBoost's UBJSON.

    ``samples`` of ``workloads`` is what it was trained on, of the ``available`` that there were in all.
    """

    __tablename__ = "cost_models"

    device_class_id: Mapped[str] = mapped_column(ForeignKey("device_classes.id"), primary_key=True)
    tvm_version: Mapped[str]
    model: Mapped[bytes]
    samples: Mapped[int]
    available: Mapped[int] = mapped_column(BigInteger)
    workloads: Mapped[int]
    created_at: Mapped[datetime]


class Event(Base):
    """An event of a job, in order; ids are never used again."""

    __tablename__ = "events"

    id: Mapped[int] = mapped_column(BigInteger().with_variant(Integer, "sqlite"), primary_key=True)
    job_id: Mapped[str] = mapped_column(ForeignKey("jobs.id"))
    type: Mapped[EventType]
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]

    __table_args__ = (Index(None, "job_id", "id"), {"sqlite_autoincrement": True})


class Webhook(Base):
    """An address of another system that is sent events."""

    __tablename__ = "webhooks"

    id: Mapped[str] = mapped_column(primary_key=True)
    url: Mapped[str]
    secret: Mapped[str]
    """The key of its signatures. Signing needs it whole, so that it is stored as it is."""
    events: Mapped[list[Any]]
    """The `db.states.WebhookEvent` that it is sent."""
    user_name: Mapped[str] = mapped_column(ForeignKey("users.name"))
    """Who made it."""
    created_at: Mapped[datetime]


class Delivery(Base):
    """One message for one webhook."""

    __tablename__ = "deliveries"

    id: Mapped[str] = mapped_column(primary_key=True)
    webhook_id: Mapped[str] = mapped_column(ForeignKey("webhooks.id", ondelete="CASCADE"))
    event: Mapped[str]
    """A `db.states.WebhookEvent`, or ``test``."""
    body: Mapped[str]
    """The JSON that is sent, to the byte."""
    created_at: Mapped[datetime] = mapped_column(index=True)
    attempts: Mapped[int]
    next_at: Mapped[datetime | None] = mapped_column(index=True)
    """When it is sent next; none once it is delivered or given up."""
    delivered_at: Mapped[datetime | None]
    last_error: Mapped[str | None]
    """Why the latest attempt that failed did."""

    __table_args__ = (Index(None, "webhook_id", "created_at", "id"),)
