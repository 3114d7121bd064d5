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
    """The result of an engine: either a time or a failure."""

    name: Annotated[str, Field(max_length=50)]
    """Name on the command line: ``loopwright``, ``torch``, ``compile``, ``ort``, ``openvino``, ``tvm``."""
    title: Annotated[str, Field(max_length=50)]
    """Name of the engine in tables."""
    versions: dict[str, Said]
    """Versions of the engine's distributions."""
    setting: Said | None
    """The fastest of the settings that were tried."""
    note: Said
    """Notes on the time, such as features that the engine lacks; may be empty."""
    us: Seconds | None
    """Median latency of a call, microseconds."""
    run_secs: Annotated[list[Annotated[list[Seconds], Field(max_length=1000)]], Field(max_length=100)]
    """Seconds a call, by process and round; engines' samples of the same round stand at the same place."""
    ratio: Interval | None
    """Latency divided by Loopwright's in the same round; None for Loopwright, and if one of them has no time."""
    error: Annotated[float, Field(ge=0)] | None
    """Largest difference from the reference's outputs, over their largest magnitude."""
    compile_seconds: Annotated[float, Field(ge=0)] | None
    """Seconds to compile the model; None if it was not compiled."""
    peak_mb: Annotated[float, Field(ge=0)] | None
    """Peak memory of the engine's process, in MB; None if unknown."""
    failure: Said | None
    """Why the engine has no time."""
    install: Said | None
    """How to install the engine, if it is missing."""


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
    """Engine whose outputs are the reference."""
    engines: Annotated[list[ComparedEngine], Field(min_length=1, max_length=16)]
    """The result of each engine; the first is Loopwright."""


class StoredComparison(Comparison):
    """The latest comparison that was stored with a job: a user's measurement, which no certificate covers."""

    user: str
    """Who stored it."""
    created_at: datetime
    """When it was stored."""
