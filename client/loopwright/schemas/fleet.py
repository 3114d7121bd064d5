"""The fleet: workers, what they offer, and how they fare."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from loopwright.schemas.base import SandboxLevel, Wire


class Slot(Wire):
    """A measuring slot at work. A closing race or a check of the device has no one trial."""

    trial_id: str | None
    job_id: str | None
    since: datetime


class Check(Wire):
    """One timing of the reference kernel, in microseconds."""

    at: datetime
    us: float


class Drift(Wire):
    """How a worker's reference kernel fares: the same program, timed now and then when the slot is free."""

    ratio: float
    """The median of the latest timings over the fastest: 1 where the machine is as fast as ever."""
    flagged: bool
    checks: list[Check]
    """The fastest and the newest, oldest first."""


class Quarantine(Wire):
    """The worker gets no measurements."""

    since: datetime
    reason: str


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
    host: str
    device: str
    target: dict[str, Any]
    device_class: str
    threads: int
    builders: int
    sandbox: SandboxLevel | None = None
    """The walls around the process that runs programs on the device; None if an earlier version of the service
    registered the worker."""
    alive: bool
    last_seen_at: datetime
    device_model: str
    builders_busy: int
    """Builders at work at the last heartbeat."""
    slot: Slot | None
    """What its measuring slot was doing at the last heartbeat; None where it was idle."""
    slot_use: float | None
    """Share of the time between the last two heartbeats in which the slot was in use."""
    drift: Drift | None
    quarantine: Quarantine | None
    drain: Drain | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    """What its host was started with; jobs may ask for them."""


class TargetOffer(Wire):
    """A target that live workers offer; the one that ``auto`` takes is marked."""

    target: dict[str, Any]
    device_class: str
    workers: int
    is_auto: bool


class Peaks(Wire):
    """What a device reached at its best: kernels that TVM built, one of arithmetic in registers, one that copies."""

    dtype: str
    """Of the arithmetic."""
    flops: float
    """Floating point operations a second, on all threads."""
    bytes_per_s: float
    """Bytes read and written a second, of arrays far larger than the caches."""
    measured_at: datetime


class DeviceClass(Wire):
    """Machines whose timings may be compared."""

    id: str
    target: dict[str, Any]
    model: str
    features: list[str]
    cores: int
    threads: int
    runtime: str
    peaks: Peaks | None
    workers: int
    """Those alive now."""
    bests: int
    """Workloads with a certified best."""


class Lease(Wire):
    """A running job, and who holds it. A lease that ends without being renewed lets another controller go on."""

    job_id: str
    job_name: str
    device_class: str
    owner: str | None
    """Where the controller runs that has the job; told to admins only."""
    expires_at: datetime
    attempts: int
    """How often the job was taken up: more than once where a process died."""
