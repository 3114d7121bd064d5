"""Tunes, times and reports every case. An interrupted run continues with the steps that have no result yet."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks.code import ROOT
from benchmarks.quality import settings
from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Kind
from benchmarks.quality.service import Service, running
from benchmarks.quality.settings import Settings
from benchmarks.quality.stock import tuned as stock_tuned
from benchmarks.quality.timing import timed
from benchmarks.quality.tuning import tuned
from benchmarks.runner import Raw
from benchmarks.services import scratch

SMOKE = ("--only", "softmax-odd", "--trials", "8", "--processes", "1", "--rounds", "2", "--again")
STEPS: dict[str, tuple[str, Callable[[Case, Settings, Service], dict[str, Any]]]] = {
    "tune": ("tuned", tuned),
    "stock": ("stock", stock_tuned),
    "time": ("timed", timed),
}
"""Step -> ``kind`` of its lines, and what takes it; in this order for each case."""


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="CASE", help="these cases alone")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="the cases of this kind alone")
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS), help="these steps alone")
    parser.add_argument("--again", action="store_true", help="repeat steps that have a result")
    settings.add_arguments(parser)


def run(options: argparse.Namespace, raw: Raw) -> str | None:
    asked = settings.read(options)
    cases = [
        case
        for case in CASES.values()
        if (not options.only or case.name in options.only) and (not options.kind or case.kind == options.kind)
    ]
    # Suspended processes of the service must be resumed, and it must be ended, whatever ends the run.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    # All engines and the service inherit the confinement.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.threads])
    export(cases, asked)
    known = {} if options.again else raw.latest("kind", "case")
    failed = []
    with scratch() as cache, running(asked) as service:
        # A cache of this run's own: what an earlier run compiled would make compilation look fast.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(cache)
        for case in cases:
            for step in STEPS:
                if step not in options.steps or (step == "stock" and not case.with_stock):
                    continue
                if (STEPS[step][0], case.name) not in known and not done(step, case, asked, service, raw):
                    failed.append(f"{step} {case.name}")
    return f"without a result: {', '.join(failed)}" if failed else None


def done(step: str, case: Case, asked: Settings, service: Service, raw: Raw) -> bool:
    """Take one step of a case, and append its line; return whether it succeeded."""
    started = time.monotonic()
    try:
        raw.append(STEPS[step][1](case, asked, service))
    except Exception:
        traceback.print_exc()
        return False
    print(f"{step} {case.name}: {time.monotonic() - started:.0f} s", flush=True)
    return True


def export(cases: list[Case], asked: Settings) -> None:
    """Export the cases that have not been exported."""
    missing = [case.name for case in cases if not (asked.shared / case.name / "reference.npy").exists()]
    if missing:
        command = [str(asked.rivals), "-m", "benchmarks.quality.export", str(asked.shared), *missing]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        subprocess.run(command, cwd=ROOT, env=environment, check=True)
