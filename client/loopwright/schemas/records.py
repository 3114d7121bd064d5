"""Records: measured trials, one by one, and their way in."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from loopwright.codegen.math_mode import MathMode
from loopwright.schemas.base import AppliedRule, DeviceState, SandboxLevel, Wire
from loopwright.schemas.workloads import Certificate


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
    sandbox: SandboxLevel | None = None
    """The walls around the process that measured it; None for imported records, and for those that an earlier version
    of the service measured."""
    created_at: datetime


class Reproduce(Wire):
    """Lines that show the record, and that search anew with its job's module, target, space, seed and budget."""

    cli: list[str]
    sdk: list[str]


class RecordDetail(Record):
    trace: list[Any] | None
    rule: AppliedRule | None = None
    """The rule of the built-in space that made the trace; None if TVM's rules or a user's space did."""
    packs_weight: bool = False
    """Whether a weight is packed once, when a program is compiled with its values. No time of a call contains that."""
    math: MathMode = "fp32"
    """How the trace multiplies float32; ``tf32`` only where the workload permits it."""
    run_secs: list[float]
    device: dict[str, Any]
    """The device class in full: target, CPU features or GPU model, cores, threads, versions."""
    origin: str
    predicted: float | None
    parent: str | None
    worker: str | None
    device_state: DeviceState | None = None
    """Of the GPU that measured it, after the samples; None for CPUs and imported records, and if the driver told
    nothing or an earlier version of the service measured it."""
    seed: int | None
    tvm_version: str
    codegen_version: int = 1
    """The version of ``loopwright.codegen`` that applying the trace needs."""
    certificate: Certificate | None
    script_before: str
    script_after: str
    trace_python: str | None
    """The trace as code: a function body that schedules ``sch``; None for the baseline."""
    job_name: str | None
    reproduce: Reproduce | None
    """None for imported records: nobody knows how they were found."""


class ImportReport(Wire):
    """What ``POST /records/import`` kept, and each line that it could not, with the reason."""

    workloads: int
    imported: int
    duplicates: int
    errors: list[str]


class Assembly(Wire):
    """What the scheduled program became."""

    language: Literal["asm", "cuda"]
    text: str
