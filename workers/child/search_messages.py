"""Questions to a search behind walls. Its answers come from a process that has met what users sent."""

from __future__ import annotations

from dataclasses import dataclass

from tuner.codec import Base64
from tuner.types import TaskSpec, Trial

StoredSample = tuple[str, Base64, float | None]
"""Of a cost model: its group, features as stored, and latency in seconds, None if it failed."""


@dataclass(frozen=True, slots=True)
class Read:
    """See `tuner.ports.Search.read`."""

    task: int
    spec: TaskSpec


@dataclass(frozen=True, slots=True)
class Open:
    """See `tuner.ports.Search.open`."""

    task: int
    history: tuple[Trial, ...]


@dataclass(frozen=True, slots=True)
class Propose:
    """See `tuner.ports.Search.propose`. ``observed`` are finished trials of any tasks, each with its task's number."""

    task: int
    count: int
    observed: tuple[tuple[int, Trial], ...]


Question = Read | Open | Propose
