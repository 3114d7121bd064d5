"""The timing step of a case: each engine in its own process, one working at a time, in a new order each round."""

from __future__ import annotations

import contextlib
import fcntl
import random
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.quality import cells, processes, shared
from benchmarks.quality.cases.case import Case
from benchmarks.quality.conditions import conditions
from benchmarks.quality.engines import STOCK
from benchmarks.quality.processes import EngineProcess
from benchmarks.quality.protocol import EngineResult
from benchmarks.quality.service import Service
from benchmarks.quality.settings import Settings
from workers import host_lock


def timed(case: Case, settings: Settings, service: Service) -> dict[str, Any]:
    """Return the line of a timed case, with the `EngineResult` of each engine.

    The first processes compile all variants of their engine, one engine after another so that each has all cores, and
    choose the fastest. The later processes compile that one.
    """
    given = shared.of(case, settings.shared)
    names = [name for name in settings.engines if name != STOCK or given.stock_database.exists()]
    results = {name: EngineResult() for name in names}
    with contextlib.ExitStack() as stack:
        ready = []
        for name in names:
            process = stack.enter_context(processes.started(name, given, settings, service.environment))
            results[name].answer = process.answer()
            if results[name].answer.variants:
                ready.append(process)
        with service.paused(), quiet(settings.lock):
            for process in ready:
                results[process.name].choice = process.choose()
            rounds(ready, results, settings.rounds, seed=0)
    for number in range(1, settings.processes):
        with contextlib.ExitStack() as stack:
            again = []
            for name, result in results.items():
                if result.choice is not None:
                    start = processes.started(name, given, settings, service.environment, only=result.choice.variant)
                    again.append(stack.enter_context(start))
            ready = [process for process in again if process.answer().variants]
            with service.paused(), quiet(settings.lock):
                rounds(ready, results, settings.rounds, seed=number)
    return {
        "kind": cells.TIMED,
        "case": case.name,
        "engines": {name: asdict(result) for name, result in results.items()},
        "conditions": conditions(settings.threads),
    }


def rounds(ready: list[EngineProcess], results: dict[str, EngineResult], count: int, *, seed: int) -> None:
    """Add ``count`` samples of each process to its engine's result, in an order that changes from round to round."""
    order = random.Random(seed)
    for process in ready:
        results[process.name].samples.append([])
    for _ in range(count):
        for process in order.sample(ready, len(ready)):
            taken = process.sample()
            results[process.name].samples[-1].append(taken.seconds)
            results[process.name].peak_mb = taken.peak_mb


@contextlib.contextmanager
def quiet(lock: Path | None) -> Iterator[None]:
    """Keep builds of Loopwright's workers, and whoever locks the same file, off the machine."""
    with contextlib.ExitStack() as stack:
        if lock is not None:
            fcntl.flock(stack.enter_context(lock.open("a")), fcntl.LOCK_EX)
        stack.enter_context(host_lock.quiet())
        yield
