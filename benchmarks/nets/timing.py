"""Times of a net in all engines, idle and beside other work, and on the fleet; fresh processes that load it."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from benchmarks.busy import busy
from benchmarks.code import ROOT
from benchmarks.nets import fresh
from benchmarks.nets.fleet import FleetClock
from benchmarks.quality.engines import ENGINES, OURS
from benchmarks.quality.service import Service
from loopwright.comparing import processes
from loopwright.comparing.files import Files
from loopwright.comparing.processes import EngineProcess
from loopwright.comparing.protocol import EngineResult

PROCESSES = 2
"""Of each engine, one after another."""
OTHERS = 2
"""Processes that compute without end, for the times under load."""
STARTS = 3
"""Fresh processes of each engine."""
_CACHED = replace(ENGINES[OURS], module="benchmarks.nets.cached")


def timed(
    files: Files, names: Sequence[str], rounds: int, threads: int, service: Service, fleet: Sequence[FleetClock]
) -> dict[str, Any]:
    """Return the `EngineResult` of each engine, ``idle`` and ``loaded``: with `OTHERS` beside it.

    Both have the same processes, and the setting that is the fastest on the idle machine. The clocks of the ``fleet``
    have their turns in the rounds of the idle machine.
    """
    clocks = {clock.name: EngineResult() for clock in fleet}
    idle = {name: EngineResult() for name in names}
    loaded = {name: EngineResult() for name in names}
    for number in range(PROCESSES):
        with contextlib.ExitStack() as stack:
            ready = []
            for name in names:
                if number and idle[name].choice is None:
                    continue
                process = stack.enter_context(_started(name, files, threads, service.environment, idle[name]))
                answer = process.answer()
                if not number:
                    idle[name].answer = answer
                if answer.variants:
                    ready.append(process)
            with service.paused():
                if not number:
                    for process in ready:
                        idle[process.name].choice = process.choose()
                        loaded[process.name] = replace(idle[process.name], samples=[])
                processes.rounds([*ready, *fleet], idle | clocks, rounds, seed=2 * number)
                with busy(OTHERS):
                    processes.rounds(ready, loaded, rounds, seed=2 * number + 1)
    return {
        "idle": {name: asdict(result) for name, result in idle.items()},
        "loaded": {name: asdict(result) for name, result in loaded.items()},
        "fleet": {name: asdict(result) for name, result in clocks.items()},
    }


def starts(files: Files, threads: int, service: Service) -> dict[str, list[dict[str, float]]]:
    """Return the seconds and MiB of fresh processes that load the net, in turn; ours has it in its cache."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in fresh.ENGINES}
    for _ in range(STARTS):
        for name, lines in found.items():
            command = [sys.executable, "-m", "benchmarks.nets.fresh", name, str(files.folder)]
            environment = _environment(name, threads, service.environment)
            environment.pop("PYTHONDONTWRITEBYTECODE", None)  # a package that is installed has its bytecode
            done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
            lines.append(json.loads(done.stdout.splitlines()[-1]))
    return found


def _started(
    name: str, files: Files, threads: int, environment: Mapping[str, str], result: EngineResult
) -> contextlib.AbstractContextManager[EngineProcess]:
    """Start the process of an engine, which prepares the setting that was chosen, or all of its settings."""
    engine = _CACHED if name == OURS else ENGINES[name]
    specification = {
        "module": engine.module,
        "packages": engine.packages,
        "case": str(files.folder),
        "threads": threads,
        "variant": result.choice.variant if result.choice else None,
    }
    command = [sys.executable, "-m", "loopwright.comparing.child"]
    return processes.started(name, command, specification, _environment(name, threads, environment))


def _environment(name: str, threads: int, service: Mapping[str, str]) -> dict[str, str]:
    # A user's process sets no numbers of threads: that is the task of Client.compile.
    numbers = {} if name == OURS else {each: str(threads) for each in ("OMP_NUM_THREADS", "MKL_NUM_THREADS")}
    path = os.pathsep.join([str(ROOT / "client"), str(ROOT)])
    return {**os.environ, **service, **numbers, "PYTHONPATH": path}
