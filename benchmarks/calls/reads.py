"""Reads of an API process while jobs write: what each costs if something was written since the read before it."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.calls.meter import own_seconds
from benchmarks.leaderboard.seed import seed
from benchmarks.load import parts, player
from benchmarks.services import api
from db import Database
from db.access.views import Quota
from db.results.best_schedules import BestScheduleQuery
from db.states import Scope
from loopwright.codegen.kinds import TokenKind

WORKLOADS = 5_000
JOBS = 20
OUTCOMES = 20.0
"""A second, in transactions of their own."""
_DIFFERENT = 5
"""Jobs and workloads that are read again and again."""
_PAUSE_SECONDS = 0.1


def measured(url: str, folder: Path, port: int, reads: int) -> dict[str, float]:
    """Return the mean milliseconds of processor time of the API process for each kind of read, in so many reads.

    A read comes a tenth of a second after the one before it. What the process uses without reads does not count, nor do
    its children, which read modules.
    """
    seed(url, WORKLOADS)
    with contextlib.closing(Database(url)) as database:
        device_class = max(database.devices.overview(0.0), key=lambda view: view.bests).device_class.id
        rows, _ = database.best_schedules.page(BestScheduleQuery(device_class_id=device_class), limit=2 * _DIFFERENT)
        user = database.users.create("user", Scope.SUBMIT, Quota()).name
        token = database.tokens.create(user, TokenKind.TOKEN, "calls", Scope.SUBMIT, None)[1]
    played = player.Plan(url, device_class, [user], JOBS, OUTCOMES / JOBS)
    with parts.running("benchmarks.load.player", played) as playing, api(url, port, folder) as http:
        http.headers["Authorization"] = f"Bearer {token}"
        [process] = (child for child in psutil.Process().children() if "service" in child.cmdline())
        jobs = json.loads(playing.first)["jobs"]
        kinds = _kinds(jobs[:_DIFFERENT], [row.workload_hash for row in rows])
        for paths, body in kinds.values():
            _read(http, next(paths), body)
        idle = _idle(process, reads)
        return {
            name: max(0.0, _cost(http, process, paths, body, reads) - idle) for name, (paths, body) in kinds.items()
        }


def _kinds(jobs: list[str], workloads: list[str]) -> dict[str, tuple[Iterator[str], dict[str, Any] | None]]:
    """Return the paths of each kind of read, one after another, and what is sent with them."""
    lookup = {"functions": workloads, "target": "auto"}
    some = workloads[:_DIFFERENT]
    listed = {
        "job": [f"/jobs/{job}" for job in jobs],
        "jobs, a page of 50": ["/jobs?page_size=50"],
        "trials of a job, a page of 500": [f"/jobs/{job}/trials?page_size=500" for job in jobs],
        "overview": ["/overview"],
        "leaderboard, a page of 100": ["/best-schedules?limit=100"],
        "workload": [f"/workloads/{workload}" for workload in some],
        "records of a workload": [
            f"/records?workload_hash={workload}&sort=latency" for workload in workloads[:_DIFFERENT]
        ],
        "workers": ["/workers"],
        "targets": ["/targets"],
        "me": ["/me"],
    }
    found: dict[str, tuple[Iterator[str], dict[str, Any] | None]]
    found = {name: (itertools.cycle(paths), None) for name, paths in listed.items()}
    return {**found, "bests of a model of 10 functions": (itertools.repeat("/workloads/lookup"), lookup)}


def _read(http: httpx.Client, path: str, body: dict[str, Any] | None) -> None:
    method = "GET" if body is None else "POST"
    http.request(method, f"/api/v1{path}", json=body).raise_for_status()


def _cost(
    http: httpx.Client, process: psutil.Process, paths: Iterator[str], body: dict[str, Any] | None, reads: int
) -> float:
    before = own_seconds(process.pid)
    for path in itertools.islice(paths, reads):
        _read(http, path, body)
        time.sleep(_PAUSE_SECONDS)
    return 1e3 * (own_seconds(process.pid) - before) / reads


def _idle(process: psutil.Process, reads: int) -> float:
    before = own_seconds(process.pid)
    time.sleep(reads * _PAUSE_SECONDS)
    return 1e3 * (own_seconds(process.pid) - before) / reads
