"""Reads at fixed rates from API processes over each database, with and without half-open connections beside.

Exits with status 1 if a requirement was missed.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import psutil

from benchmarks.leaderboard.seed import seed
from benchmarks.load import followers, generator, parts, player
from benchmarks.load.report import missed
from benchmarks.runner import Raw, conditions
from benchmarks.services import DATABASES, api, scratch
from db import Database
from db.access.views import Quota
from db.results.best_schedules import BestScheduleQuery
from db.states import Scope
from loopwright.codegen.kinds import TokenKind

USERS = 16
"""Each follows some of the streams, of which a token may have 20."""
WORKLOADS = 5_000
READ_WORKLOADS = 500
WARM_SECONDS = 5.0
_OPEN_FILES = 4_096

SMOKE = ("--seconds", "3", "--lower-rates", "10", "--rate", "20", "--jobs", "4", "--streams", "8", "--half-open", "6",
         "--databases", "SQLite")  # fmt: skip


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=60.0, help="of each load")
    parser.add_argument("--rate", type=float, default=300.0, help="reads a second")
    parser.add_argument("--lower-rates", type=float, nargs="*", default=[50.0, 150.0], help="tried before")
    parser.add_argument("--processes", type=int, default=2, help="of the API")
    parser.add_argument("--jobs", type=int, default=20, help="that are running")
    parser.add_argument("--trials", type=float, default=1.0, help="a second, of each job")
    parser.add_argument("--streams", type=int, default=200, help="of events")
    parser.add_argument("--half-open", type=int, default=500, help="connections beside the lowest rate")
    parser.add_argument("--databases", nargs="+", choices=DATABASES, default=list(DATABASES))
    parser.add_argument("--port", type=int, default=8096)


def run(options: argparse.Namespace, raw: Raw) -> str | None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (_OPEN_FILES, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    figures: dict[str, Any] = {
        "conditions": conditions(),
        **{
            name: getattr(options, name)
            for name in ("seconds", "rate", "processes", "jobs", "trials", "streams", "half_open")
        },
        "users": USERS,
        "workloads": WORKLOADS,
        "databases": {},
    }
    with scratch() as folder:
        for name in options.databases:
            with DATABASES[name](folder) as url:
                figures["databases"][name] = loads(url, options, folder)
    raw.replace(figures)
    return "\n".join(missed(figures)) or None


def loads(url: str, options: argparse.Namespace, folder: Path) -> list[dict[str, Any]]:
    """Load an API process at each rate, and at the lowest once more beside half-open connections."""
    seed(url, WORKLOADS)
    with contextlib.closing(Database(url)) as database:
        device_class = max(database.devices.overview(0.0), key=lambda view: view.bests).device_class.id
        rows, _ = database.best_schedules.page(BestScheduleQuery(device_class_id=device_class), limit=READ_WORKLOADS)
        users = [database.users.create(f"user{number}", Scope.SUBMIT, Quota()).name for number in range(USERS)]
        tokens = [database.tokens.create(user, TokenKind.TOKEN, "load", Scope.SUBMIT, None)[1] for user in users]
    played = player.Plan(url, device_class, users, options.jobs, options.trials)
    with (
        parts.running("benchmarks.load.player", played) as jobs,
        api(url, options.port, folder, options.processes) as http,
    ):
        plan = generator.Plan(
            url=str(http.base_url),
            tokens=tokens,
            jobs=json.loads(jobs.first)["jobs"],
            workloads=[row.workload_hash for row in rows],
            rate=options.rate,
            warm_seconds=WARM_SECONDS,
            seconds=options.seconds,
            seed=0,
        )
        lowest, *others = sorted({*options.lower_rates, options.rate})
        tried = [(lowest, 0), (lowest, options.half_open), *((rate, 0) for rate in others)]
        return [load(http, replace(plan, rate=rate), options.streams, half_open) for rate, half_open in tried]


def load(http: httpx.Client, plan: generator.Plan, streams: int, half_open: int) -> dict[str, Any]:
    """Return what the reads, the streams and the half-open connections met with."""
    follow = followers.Plan(plan.url, plan.tokens, plan.jobs, streams)
    halves = ("benchmarks.load.half_open", http.base_url.host, http.base_url.port or 80, plan.tokens[0], half_open)
    with parts.running("benchmarks.load.followers", follow) as streaming, parts.running(*halves) as holding:
        started, before, jobs = time.monotonic(), _api_seconds(), _player_seconds()
        reads = parts.run("benchmarks.load.generator", plan)
        seconds, after = time.monotonic() - started, _api_seconds()
        found = streaming.end()
        return {
            "rate": plan.rate,
            "reads": reads,
            "api_cpu_share": (after - before) / seconds,
            "cpu_shares": {
                "generator": reads["cpu_seconds"] / seconds,
                "streams": found["cpu_seconds"] / seconds,
                "jobs": (_player_seconds() - jobs) / seconds,
            },
            "streams": found,
            "half_open": {"connections": half_open, **holding.end()},
        }


def _api_seconds() -> float:
    """Return how long the API's processes have used a core, all together."""
    return _seconds("service")


def _player_seconds() -> float:
    return _seconds("benchmarks.load.player")


def _seconds(module: str) -> float:
    processes = (child for child in psutil.Process().children() if module in child.cmdline())
    return sum(sum(process.cpu_times()[:2]) for process in processes)
