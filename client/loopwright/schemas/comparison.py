"""A model beside other engines, as a user measured it on one machine."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from loopwright.schemas.base import Wire

Said = Annotated[str, Field(max_length=500)]
Seconds = Annotated[float, Field(gt=0, lt=1e6, allow_inf_nan=False)]


class Interval(Wire):
    """An estimate with its 95 % interval."""

    value: Seconds
    """The estimate."""
    low: Seconds
    """Lower end of the interval."""
    high: Seconds
    """Upper end of the interval."""


class ComparedEngine(Wire):
    """What an engine did. It has either a time or a failure."""

    name: Annotated[str, Field(max_length=50)]
    """As users type it: ``loopwright``, ``torch``, ``compile``, ``ort``, ``openvino``, ``tvm``."""
    title: Annotated[str, Field(max_length=50)]
    """Its name in tables."""
    versions: dict[str, Said]
    """Of its distributions."""
    setting: Said | None
    """The fastest of the settings that were tried."""
    note: Said
    """What a reader of the time has to know, such as what the engine was not able to do; empty if there is nothing."""
    us: Seconds | None
    """Median latency of a call, microseconds."""
    run_secs: Annotated[list[Annotated[list[Seconds], Field(max_length=1000)]], Field(max_length=100)]
    """Seconds a call, by process and round; engines' samples of the same round stand at the same place."""
    ratio: Interval | None
    """Its latency over Loopwright's in the same round; None for Loopwright, and where one of them has no time."""
    error: Annotated[float, Field(ge=0)] | None
    """Largest difference from the reference's outputs, over their largest magnitude."""
    compile_seconds: Annotated[float, Field(ge=0)] | None
    """Seconds to compile the model; None if it did not come to that."""
    peak_mb: Annotated[float, Field(ge=0)] | None
    """Most memory of its process, in MB; None if it is not known."""
    failure: Said | None
    """Why it has no time."""
    install: Said | None
    """How to install it, where that is why."""


class Comparison(Wire):
    """Body of ``PUT /jobs/{id}/comparison``, and what `Client.compare` returns. The first engine is Loopwright."""

    machine: Said
    """Model of the CPU."""
    threads: Annotated[int, Field(ge=1)]
    """Threads that each engine used."""
    precision: Annotated[str, Field(max_length=10)]
    """Type of the model's values, such as ``f32``."""
    tolerance: Annotated[float, Field(ge=0)]
    """An engine whose error is larger counts as failed."""
    reference: Said
    """Whose outputs those of the engines were compared with."""
    engines: Annotated[list[ComparedEngine], Field(min_length=1, max_length=16)]
    """What each engine did; the first is Loopwright."""


class StoredComparison(Comparison):
    """The latest comparison that was stored with a job: what a user measured, which no certificate vouches for."""

    user: str
    """Who stored it."""
    created_at: datetime
    """When it was stored."""
