"""The fleet: workers, what they offer, and how they fare."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from loopwright.schemas.base import SandboxLevel, Wire


class Slot(Wire):
    """A measuring slot at work. A closing race or a check of the device has no one trial."""

    trial_id: str | None
    """The trial that is measured; None during a closing race and a check of the device."""
    job_id: str | None
    """The job that it is measured for; None during a check of the device."""
    since: datetime
    """Since when."""


class Check(Wire):
    """One timing of the reference kernel, in microseconds."""

    at: datetime
    """When it was timed."""
    us: float
    """Latency of the reference kernel, in microseconds."""


class Drift(Wire):
    """How a worker's reference kernel fares: the same program, timed now and then when the slot is free."""

    ratio: float
    """The median of the latest timings over the fastest: 1 where the machine is as fast as ever."""
    flagged: bool
    """Whether the machine is so much slower than it was that its measurements are in doubt."""
    checks: list[Check]
    """The fastest and the newest, oldest first."""


class Quarantine(Wire):
    """The worker gets no measurements."""

    since: datetime
    """Since when."""
    reason: str
    """Why, in words."""


class Drain(Wire):
    """The worker gets no new work."""

    state: Literal["draining", "drained"]
    """``draining`` while it was still measuring or building at its last heartbeat."""
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
    """Candidates that it compiles at a time."""
    sandbox: SandboxLevel | None = None
    """The walls around the process that runs programs on the device; None if an earlier version of the service
    registered the worker."""
    alive: bool
    """Whether it was seen within the last 20 s."""
    last_seen_at: datetime
    """When its last heartbeat came."""
    device_model: str
    """Model of the CPU or GPU."""
    builders_busy: int
    """Builders at work at the last heartbeat."""
    slot: Slot | None
    """What its measuring slot was doing at the last heartbeat; None where it was idle."""
    slot_use: float | None
    """Share of the time between the last two heartbeats in which the slot was in use."""
    drift: Drift | None
    """How its reference kernel fares; None before its first check."""
    quarantine: Quarantine | None
    """Why it gets no measurements; None if it gets them."""
    drain: Drain | None = None
    """Since when it gets no new work; None if it gets work."""
    labels: dict[str, str] = Field(default_factory=dict)
    """What its host was started with; jobs may ask for them."""


class TargetOffer(Wire):
    """A target that live workers offer; the one that ``auto`` takes is marked."""

    target: dict[str, Any]
    """TVM's target, as its JSON."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    workers: int
    """Live workers that offer it."""
    is_auto: bool
    """Whether it is what ``auto`` selects."""


class Peaks(Wire):
    """What a device reached at its best: kernels that TVM built, one of arithmetic in registers, one that copies."""

    dtype: str
    """Of the arithmetic."""
    flops: float
    """Floating point operations a second, on all threads."""
    bytes_per_s: float
    """Bytes read and written a second, of arrays far larger than the caches."""
    measured_at: datetime
    """When they were measured."""


class DeviceClass(Wire):
    """Machines whose timings may be compared."""

    id: str
    """Name of the class."""
    target: dict[str, Any]
    """TVM's target, as its JSON."""
    model: str
    """Vendor of the CPU with a digest of its features, or name of the GPU."""
    features: list[str]
    """Instruction sets of the CPU that programs use."""
    cores: int
    """Physical cores; for a GPU its multiprocessors."""
    threads: int
    """Threads that programs run with."""
    runtime: str
    """Versions of what runs programs: a class ends where they change."""
    peaks: Peaks | None
    """What its devices reach at most; None if it was not measured."""
    workers: int
    """Those alive now."""
    bests: int
    """Workloads with a certified best."""


class Lease(Wire):
    """A running job, and who holds it. A lease that ends without being renewed lets another controller go on."""

    job_id: str
    """Id of the job, for ``GET /jobs/{id}``."""
    job_name: str
    """Name of the job."""
    device_class: str
    """The kind of machine; timings of one class can be compared."""
    owner: str | None
    """Where the controller runs that has the job; told to admins only."""
    expires_at: datetime
    """When it ends unless it is renewed."""
    attempts: int
    """How often the job was taken up: more than once where a process died."""
