"""The timing step of a case: each engine in its own process, one working at a time, in a new order each round."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.code import ROOT
from benchmarks.quality import shared
from benchmarks.quality.cases.case import Case
from benchmarks.quality.engines import ENGINES, IN_OUR_ENVIRONMENT, OURS, STOCK
from benchmarks.quality.service import Service
from benchmarks.quality.settings import Settings
from benchmarks.quality.shared import Shared
from benchmarks.runner import conditions
from loopwright.comparing import processes
from loopwright.comparing.processes import EngineProcess
from loopwright.comparing.protocol import EngineResult


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
            process = stack.enter_context(started(name, given, settings, service.environment))
            results[name].answer = process.answer()
            if results[name].answer.variants:
                ready.append(process)
        with service.paused(), quiet(settings.lock):
            for process in ready:
                results[process.name].choice = process.choose()
            processes.rounds(ready, results, settings.rounds, seed=0)
    for number in range(1, settings.processes):
        with contextlib.ExitStack() as stack:
            again = []
            for name, result in results.items():
                if result.choice is not None:
                    start = started(name, given, settings, service.environment, only=result.choice.variant)
                    again.append(stack.enter_context(start))
            ready = [process for process in again if process.answer().variants]
            with service.paused(), quiet(settings.lock):
                processes.rounds(ready, results, settings.rounds, seed=number)
    return {
        "kind": "timed",
        "case": case.name,
        "engines": {name: asdict(result) for name, result in results.items()},
        "conditions": conditions(settings.threads),
    }


@contextlib.contextmanager
def quiet(lock: Path | None) -> Iterator[None]:
    """Keep whoever locks the same file off the machine."""
    with contextlib.ExitStack() as stack:
        if lock is not None:
            fcntl.flock(stack.enter_context(lock.open("a")), fcntl.LOCK_EX)
        yield


def started(
    name: str, shared: Shared, settings: Settings, environment: dict[str, str], *, only: str | None = None
) -> contextlib.AbstractContextManager[EngineProcess]:
    """Start the process of an engine, which prepares all of its variants, or ``only`` one."""
    specification = {
        "module": ENGINES[name].module,
        "packages": ENGINES[name].packages,
        "given": asdict(shared) | {"folder": str(shared.folder)},
        "threads": settings.threads,
        "variant": only,
    }
    python = sys.executable if name in IN_OUR_ENVIRONMENT else str(settings.rivals)
    # A user's process sets no thread counts: that is the task of Client.compile.
    threads = {} if name == OURS else settings.thread_environment
    command = [python, "-m", "benchmarks.quality.child"]
    path = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    return processes.started(name, command, specification, {**environment, **threads, "PYTHONPATH": path})
