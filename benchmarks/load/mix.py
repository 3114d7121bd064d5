"""What users read, and how often: the pages of the dashboard as it asks for them, and the calls of the SDK."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

FUNCTIONS = 10
"""Of a model that is looked up."""
_COLUMNS = ("created", "name", "op", "baseline", "best", "speedup", "peak")


@dataclass(frozen=True, slots=True)
class Known:
    """What there is to read: ids of running jobs, and of workloads that have a best."""

    jobs: Sequence[str]
    workloads: Sequence[str]


@dataclass(frozen=True, slots=True)
class Read:
    """A request; without ``body`` a GET, with it a POST that changes nothing. ``path`` is below ``/api/v1``."""

    path: str
    params: dict[str, str | int]
    body: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Kind:
    """``weight``: how many of a hundred reads are of this kind."""

    name: str
    weight: int
    make: Callable[[random.Random, Known], Read]


def _leaderboard(draw: random.Random, _: Known) -> Read:
    query: dict[str, str | int] = {"limit": 100, "offset": 100 * draw.choice((0, 0, 0, 1, 5))}
    if draw.random() < 0.5:
        query["sort"] = draw.choice(_COLUMNS)
    return Read("/best-schedules", query)


def _lookup(draw: random.Random, known: Known) -> Read:
    hashes = [*draw.choices(known.workloads, k=FUNCTIONS - 1), f"{draw.getrandbits(128):032x}"]
    return Read("/workloads/lookup", {}, {"functions": hashes, "target": "auto"})


def _of_job(suffix: str, **params: int) -> Callable[[random.Random, Known], Read]:
    return lambda draw, known: Read(f"/jobs/{draw.choice(known.jobs)}{suffix}", dict(params))


def _of_workload(suffix: str, **params: int) -> Callable[[random.Random, Known], Read]:
    return lambda draw, known: Read(f"/workloads/{draw.choice(known.workloads)}{suffix}", dict(params))


def _about_workload(path: str, **params: str | int) -> Callable[[random.Random, Known], Read]:
    return lambda draw, known: Read(path, {"workload_hash": draw.choice(known.workloads), **params})


def _list(path: str, **params: int) -> Callable[[random.Random, Known], Read]:
    return lambda draw, known: Read(path, dict(params))


MIX = (
    Kind("job", 22, _of_job("")),
    Kind("bests of a model", 14, _lookup),
    Kind("jobs", 10, _list("/jobs", page_size=50)),
    Kind("overview", 10, _list("/overview")),
    Kind("leaderboard", 10, _leaderboard),
    Kind("trials of a job", 6, _of_job("/trials", page_size=500)),
    Kind("workers", 5, _list("/workers")),
    Kind("leases", 4, _list("/leases")),
    Kind("targets", 4, _list("/targets")),
    Kind("workload", 4, _of_workload("")),
    Kind("records of a workload", 4, _about_workload("/records", sort="latency", page_size=100)),
    Kind("history of a workload", 2, _of_workload("/history", page_size=500)),
    Kind("bests of a workload", 2, _about_workload("/bests")),
    Kind("me", 3, _list("/me")),
)
"""Weights by how often an open page of the dashboard asks again (overview, jobs, a job and the fleet every few seconds,
the others when they are opened), with one compilation or script for every few open pages."""
