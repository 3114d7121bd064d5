"""The fleet: workers, their offers and their health."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from loopwright.codegen.kinds import SandboxLevel
from loopwright.schemas.base import Wire


class Slot(Wire):
    """The work of a measuring slot. Closing races and device checks have no single trial."""

    trial_id: str | None
    """The trial that is measured; None during a closing race or a device check."""
    job_id: str | None
    """The job of the measurement; None during a device check."""
    since: datetime
    """Since when."""


class Check(Wire):
    """One timing of the reference kernel, in microseconds."""

    at: datetime
    """When it was timed."""
    us: float
    """Latency of the reference kernel, in microseconds."""


class Drift(Wire):
    """The drift of a worker: timings of the same reference kernel, taken regularly when the slot is free."""

    ratio: float
    """Median of the latest timings divided by the fastest timing: 1 if the machine is as fast as ever."""
    flagged: bool
    """Whether the machine has become so slow that its measurements are not reliable."""
    checks: list[Check]
    """The fastest and the newest timings, the oldest first."""


class Quarantine(Wire):
    """Quarantine: the worker gets no measurements."""

    since: datetime
    """Since when."""
    reason: str
    """The reason of the quarantine."""


class Drain(Wire):
    """Drain: the worker gets no new work."""

    state: Literal["draining", "drained"]
    """``draining`` if the worker was measuring or building at its last heartbeat, else ``drained``."""
    since: datetime | None
    """When an admin drained it; None if only its host leaves."""
    leaving: bool
    """Whether its host is shutting down."""


class Worker(Wire):
    """A machine's offer: builders, and a measuring slot on one device."""

    id: str
    """``HOST/DEVICE``."""
    host: str
    """Name of the machine."""
    device: str
    """Name of the device on the machine, such as ``cpu`` or ``cuda:0``."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    threads: int
    """Threads that programs run with."""
    builders: int
    """Number of candidates that the worker compiles at a time."""
    sandbox: SandboxLevel
    """The sandbox of the process that runs programs on the device."""
    alive: bool
    """Whether it was seen within the last 20 s."""
    last_seen_at: datetime
    """When its last heartbeat came."""
    device_model: str
    """Name of the CPU or GPU, such as ``AMD Zen 3, 2 cores``."""
    builders_busy: int
    """Builders at work at the last heartbeat."""
    slot: Slot | None
    """What its measuring slot was doing at the last heartbeat; None where it was idle."""
    slot_use: float | None
    """Share of the time between the last two heartbeats in which the slot was in use."""
    drift: Drift | None
    """Timings of the reference kernel; None before the first check."""
    quarantine: Quarantine | None
    """The worker's quarantine; None if it gets measurements."""
    drain: Drain | None = None
    """The worker's drain; None if it gets work."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Labels of the worker's host; jobs can require labels."""


class TargetOffer(Wire):
    """A target that live workers offer."""

    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    workers: int
    """Live workers that offer it."""
    is_auto: bool
    """Whether it is what ``auto`` selects."""


class CachePeak(Wire):
    """The measured rate within a cache of a device."""

    name: str
    """Its level, such as ``L2``."""
    bytes: int
    """Size of all of its instances that the threads use."""
    bytes_per_s: float
    """Bytes read and written per second by all threads, with arrays that fill half of it."""


class Peaks(Wire):
    """Measured peaks of a device, by kernels that TVM built: arithmetic in registers, and copies."""

    dtype: str
    """Data type of the arithmetic."""
    flops: float
    """Floating point operations per second, on all threads."""
    bytes_per_s: float
    """Bytes read and written per second, with arrays far larger than the caches."""
    measured_at: datetime
    """When they were measured."""
    caches: list[CachePeak] = Field(default_factory=list)
    """The same within each cache, those of the smallest first; empty if they were not measured."""


class DeviceClass(Wire):
    """Machines whose timings may be compared."""

    id: str
    """Name of the class."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    name: str = ""
    """Name of the machines for people, such as ``AMD Zen 3, 2 cores``; empty from services before they had it."""
    model: str
    """Vendor of the CPU with a digest of its features, or name of the GPU; it tells classes apart."""
    features: list[str]
    """Instruction sets of the CPU that programs use."""
    cores: int
    """Physical cores; for a GPU its multiprocessors."""
    threads: int
    """Threads that programs run with."""
    runtime: str
    """Versions of the software that runs programs. Other versions form another class."""
    peaks: Peaks | None
    """Measured peaks of the devices; None if they were not measured."""
    workers: int
    """Number of live workers."""
    bests: int
    """Number of workloads with a certified best."""


class Lease(Wire):
    """The lease of a running job. If a lease expires, another controller continues the job."""

    job_id: str
    """Id of the job, for ``GET /jobs/{id}``."""
    job_name: str
    """Name of the job."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    owner: str | None
    """Host of the controller that runs the job; shown to admins only."""
    expires_at: datetime
    """Expiry of the lease, unless it is renewed."""
    attempts: int
    """How often the job was claimed: more than once if a process died."""
