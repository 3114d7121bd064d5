"""Workloads, and their certificates."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from loopwright.codegen.kinds import FailureKind, Grade, SandboxLevel
from loopwright.codegen.math_mode import MathMode
from loopwright.schemas.base import AppliedRule, DeviceState, Wire
from loopwright.schemas.evidence import RunnerUp, SignedDocument
from loopwright.schemas.gates import Range


class Library(Wire):
    """The time of a vendor's library for the operation of a workload, taken in the rounds of a closing race."""

    name: str
    """Name of the library, with versions."""
    us: float
    """Median latency of a call, in microseconds."""
    run_secs: list[float]
    """The samples, in seconds per call."""


class Tensor(Wire):
    """A buffer argument of a workload."""

    shape: list[int]
    """Extents of its axes."""
    dtype: str
    """Data type of its elements, such as ``float32``."""


class Workload(Wire):
    """One schedulable function, named by the digest of its normalised form."""

    hash: str
    """Digest of the function in its normalised form: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    op: str
    """What it computes, from the structure of its blocks: ``matmul``, ``conv2d``, ``softmax`` …"""
    math: MathMode = "fp32"
    """How float32 may be multiplied, which is a part of its hash."""
    flop: float | None
    """Floating point operations of one call, by TVM's estimate; None if TVM cannot tell."""
    args: list[Tensor]
    """Buffer arguments of the function, in their order."""
    tvm_version: str
    """Version of TVM that it was submitted with."""
    created_at: datetime
    """When it was first submitted or imported."""
    records: int
    """Number of its measured trials in the database."""


class RejectedContender(Wire):
    """A candidate that took part in a closing race and may not be published."""

    candidate: str
    """Digest of its trace."""
    record_id: str | None
    """Its record; None if the record is not known."""
    stage: str
    """Where it failed: ``build``, ``run`` or ``certify``."""
    kind: FailureKind
    """Why it may not be published."""
    message: str
    """Message of the failure."""


class Certificate(Wire):
    """The evidence that a best schedule computes what the unscheduled program computes, and how much faster it is."""

    id: str
    """Id of the certificate."""
    created_at: datetime
    """When it was issued."""
    inputs: str
    """In words: how the random inputs were drawn, and how many sets of them."""
    rtol: float
    """Tolerance of each element, as a share of the reference's element; 0 means exact."""
    atol: float
    """Additional tolerance for sums that cancel, as a share of the reference's largest magnitude."""
    max_abs_error: float
    """Largest difference from the results of the unscheduled program."""
    max_rel_error: float
    """Largest difference, divided by the reference's largest magnitude."""
    rounds: int
    """Interleaved rounds of the closing race."""
    baseline_run_secs: list[float]
    """Samples of the unscheduled program, in seconds per call, one for each round."""
    best_run_secs: list[float]
    """Samples of the best, in seconds per call, one for each round."""
    baseline_us: float
    """Latency of the unscheduled program, in microseconds."""
    best_us: float
    """Latency of the best schedule, in microseconds."""
    speedup: float
    """Speedup over the unscheduled program: the median of the ratios of the race's rounds, by which it decided.
    ``baseline_us / best_us`` differs from it where the machine changed between the rounds."""
    interval: Range | None = None
    """The speedup with its interval, from the ratios of the rounds; None from services before they gave intervals."""
    grade: Grade | None = None
    """How sure the speedup is; None from services before they gave grades."""
    contenders: int
    """Candidates in the closing race."""
    runner_up: RunnerUp | None = None
    """The fastest other program of the closing race, and by how much it lost; None if no other ran in all rounds, and
    from services before they gave it."""
    rejected: list[RejectedContender]
    """Contenders of the closing race that failed or computed a wrong result."""
    library: Library | None
    """Time of a vendor's library in the same rounds; None if no library computes the same operation."""
    sandbox: SandboxLevel
    """The sandbox of the closing race."""
    device_state: DeviceState | None = None
    """Of the GPU of the closing race, after the last round; None for CPUs, and if the driver told nothing."""
    conditions: str
    """TVM, kernel and driver of the newest race of this best."""
    checked_at: datetime | None = None
    """Time of the last recheck; None: never."""
    regressed_at: datetime | None = None
    """Time since which it is known to no longer hold: slower than stated, or wrong; None if it holds."""
    signed: SignedDocument | None = None
    """The evidence as the service signed it when it issued the certificate; None from services before they signed."""
    verdict: SignedDocument | None = None
    """The last recheck as the service signed it, which `RecheckEvidence` describes; None if there was none."""


class Best(Wire):
    """The certified best schedule of a workload on a device class."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    name: str
    """Name of the function."""
    source: str | None = None
    """Where the model of the job that found it calls the function, as `Task.source`; None where that is not known, and
    in answers to lookups of models."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    record_id: str
    """Record of the schedule."""
    baseline_us: float
    """Latency of the unscheduled program, in microseconds."""
    best_us: float
    """Latency of the best schedule, in microseconds."""
    speedup: float
    """Speedup over the unscheduled program: the median of the ratios of the race's rounds, by which it decided.
    ``baseline_us / best_us`` differs from it where the machine changed between the rounds."""
    is_baseline: bool
    """Whether the unscheduled program is the best."""
    trace: list[Any] | None
    """TVM's ``[instructions, decisions]``; None for the baseline."""
    rule: AppliedRule | None = None
    """The rule of the built-in space that made the trace; None if TVM's rules or a user's space did."""
    packs_weight: bool = False
    """Whether a weight is packed once, when a program is compiled with its values. No time of a call contains that."""
    math: MathMode = "fp32"
    """How the trace multiplies float32; ``tf32`` only where the workload permits it."""
    codegen_version: int = 1
    """The version of ``loopwright.codegen`` that applying it needs."""
    certificate: Certificate
    """The evidence."""
    created_at: datetime
    """When it was certified."""


class WorkloadDetail(Workload):
    """A workload with its program and its certified bests."""

    source: str | None = None
    """Where the model in which its newest best was found calls it, as `Task.source`; None without such a best."""
    script: str
    """Its TVMScript, unscheduled."""
    bests: list[Best]
    """Its certified bests, one for each device class."""
