"""Several controllers on one PostgreSQL server share simulated devices while a long queue waits."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

import sqlalchemy

from benchmarks.calls.meter import cpu_seconds, server
from benchmarks.code import ROOT
from benchmarks.controllers.made_up import TRIALS, queue
from benchmarks.runner import Raw, conditions
from benchmarks.services import postgresql, scratch
from benchmarks.spread import percentile
from db.engine.connections import create_engine

SMOKE = (
    *("--controllers", "2", "--devices", "4", "20", "--jobs", "200"),
    *("--seconds", "5", "--settle", "15", "--measurement", "1"),
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--controllers", type=int, default=10)
    parser.add_argument("--devices", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--jobs", type=int, default=100_000, help="in the queue at first")
    parser.add_argument("--measurement", type=float, default=8.0, help="seconds of a simulated measurement")
    parser.add_argument("--seconds", type=float, default=60.0, help="for each number of devices")
    parser.add_argument("--settle", type=float, default=30.0, help="before each, which does not count")


def run(options: argparse.Namespace, raw: Raw) -> None:
    figures: dict[str, Any] = {
        **{name: getattr(options, name) for name in ("controllers", "jobs", "measurement", "seconds")},
        "trials": TRIALS,
        "conditions": conditions(),
        "steps": [],
    }
    with scratch() as folder, postgresql(folder) as url:
        queue(url, options.jobs)
        backends = server(url)
        with ExitStack() as running:
            numbers = range(options.controllers)
            fleet = [running.enter_context(_Controller(url, number, options)) for number in numbers]
            for devices in options.devices:
                for each in fleet:
                    each.ask(devices)
                time.sleep(options.settle)
                before, began = [each.ask() for each in fleet], time.monotonic()
                database = cpu_seconds(backends)
                time.sleep(options.seconds)
                after, passed = [each.ask() for each in fleet], time.monotonic() - began
                step = _step(devices, passed, before, after)
                step["database_cores"] = (cpu_seconds(backends) - database) / passed
                figures["steps"].append({**step, **_state(url)})
                raw.replace(figures)
    raw.replace(figures)


def _step(
    devices: int, seconds: float, before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    calls: dict[str, list[float]] = defaultdict(list)
    for figures in after:
        for name, taken in figures["calls"].items():
            calls[name] += taken
    return {
        "devices": devices,
        "trials_per_s": sum(each["trials"] for each in after) / seconds,
        "busy": sum(each["device_seconds"] for each in after) / (seconds * devices),
        "controller_cores": sum(now["cpu"] - then["cpu"] for now, then in zip(after, before, strict=True)) / seconds,
        "calls": {
            name: {
                "per_s": len(taken) / seconds,
                "p50_ms": 1e3 * percentile(taken, 50),
                "p99_ms": 1e3 * percentile(taken, 99),
                "max_ms": 1e3 * max(taken),
            }
            for name, taken in sorted(calls.items())
        },
    }


class _Controller:
    def __init__(self, url: str, number: int, options: argparse.Namespace) -> None:
        module = [sys.executable, "-m", "benchmarks.controllers.process", url, f"controller-{number}"]
        command = [*module, str(options.devices[0]), str(options.measurement)]
        self._process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> _Controller:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def ask(self, devices: int | None = None) -> dict[str, Any]:
        """Return the figures since the last question, and have so many devices from now on."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print("" if devices is None else devices, file=self._process.stdin, flush=True)
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found


def _state(url: str) -> dict[str, int]:
    """Return how many leases of jobs were lost so far, how many jobs run, and how many wait."""
    asked = {
        "leases_lost": "SELECT coalesce(sum(losses), 0) FROM lease_losses",
        "running": "SELECT count(*) FROM jobs WHERE state = 'running'",
        "queued": "SELECT count(*) FROM jobs WHERE state = 'queued'",
    }
    engine = create_engine(url)
    try:
        with engine.connect() as connection:
            return {name: int(connection.execute(sqlalchemy.text(query)).scalar_one()) for name, query in asked.items()}
    finally:
        engine.dispose()
