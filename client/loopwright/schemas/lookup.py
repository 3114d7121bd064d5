"""Looking up the bests of a model's functions in one request."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from loopwright.schemas.base import Wire, WorkloadHash
from loopwright.schemas.jobs import ModulePayload
from loopwright.schemas.workloads import Best

MAX_LOOKUP = 10_000
"""Functions in one request at most."""


class LoweredFunction(Wire):
    """A function for which the service computes the digest: TVM's JSON of a module with this one PrimFunc."""

    format: Literal["tvm-json"]
    """The only format of a single function."""
    data: str = Field(min_length=1)
    """The module as text."""


class Lookup(Wire):
    """Body of ``POST /workloads/lookup``."""

    functions: Annotated[list[WorkloadHash | LoweredFunction], Field(max_length=MAX_LOOKUP, fail_fast=True)]
    """Workload hashes, or functions as they are tuned (lowered, with static shapes)."""
    target: str | dict[str, Any] = "auto"
    """``auto``, a TVM target string or tag, or its JSON."""
    device_class: str | None = None
    """Only bests of this device class; without it, the fastest of all device classes with the target."""
    modules: bool = False
    """Whether hits carry the unscheduled workload."""
    imported: bool = False
    """Whether the answer has schedules that were imported for workloads without a certified best."""


class LookupHit(Wire):
    """A workload with a certified best."""

    workload_hash: str
    """Digest of the function in its normalised form, which names the workload: 32 hexadecimal digits."""
    best: Best
    """Its certified best."""
    module: ModulePayload | None
    """The unscheduled workload, if the request asked for modules."""


class ImportedSchedule(Wire):
    """A schedule that another deployment certified for the same target, and that nobody has raced here: check it."""

    workload_hash: str
    """Digest of its function in its normalised form."""
    record_id: str
    """The imported record, whose ``imported_certificate`` says who certified it, and where."""
    trace: list[Any]
    """The schedule as TVM's JSON: ``[instructions, decisions]``."""
    codegen_version: int
    """What applying the trace needs: a client whose ``loopwright.codegen`` has a smaller version cannot."""


class LookupAnswer(Wire):
    """Each workload is in ``hits`` or in ``misses``, once, however often the request names it."""

    target: dict[str, Any]
    """What the target of the request is on the fleet; for ``auto``, what the service would tune for."""
    functions: list[str]
    """The workload hash of each function of the request, in the order of the request."""
    hits: list[LookupHit]
    """Workloads with a certified best."""
    misses: list[str]
    """Workload hashes for which no certified best is known."""
    imported: list[ImportedSchedule] = Field(default_factory=list)
    """Of some of the misses, if the request asked for it: the fastest schedule that was imported with a certificate for
    the same target."""


class RecordsLookup(Wire):
    """Body of ``POST /workloads/lookup/records``."""

    functions: Annotated[list[WorkloadHash], Field(max_length=MAX_LOOKUP, fail_fast=True)]
    """Workload hashes."""
    target: str | dict[str, Any] = "auto"
    """``auto``, a TVM target string or tag, or its JSON."""
    imported: bool = False
    """Whether the answer has records that were imported for workloads without a certified best."""


class RecordsAnswer(Wire):
    """Which records a full lookup would answer with."""

    target: dict[str, Any]
    """What the target of the request is on the fleet; for ``auto``, what the service would tune for."""
    records: dict[str, str]
    """The record of each workload that is known, by its hash."""
