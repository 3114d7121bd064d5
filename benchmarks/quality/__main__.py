"""Tunes, times and reports every case. An interrupted run continues with the steps that have no result yet.

.venv/bin/python -m benchmarks.quality --rivals PYTHON [--only CASE ...] [--steps tune time] [--again]

Raw results are appended to benchmarks/results/quality/cells.jsonl. `python -m benchmarks.quality.report --pack` packs
them and writes the report.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from typing import Any

from benchmarks.quality import cells, settings
from benchmarks.quality.cases import CASES
from benchmarks.quality.cases.case import Case, Kind
from benchmarks.quality.service import Service, running
from benchmarks.quality.settings import Settings
from benchmarks.quality.stock import tuned as stock_tuned
from benchmarks.quality.timing import timed
from benchmarks.quality.tuning import tuned
from benchmarks.results import ROOT

STEPS: dict[str, Callable[[Case, Settings, Service], dict[str, Any]]] = {
    "tune": tuned,
    "stock": stock_tuned,
    "time": timed,
}
"""In this order for each case."""
_KIND_OF = {"tune": cells.TUNED, "stock": cells.STOCK, "time": cells.TIMED}


def parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quality")
    parser.add_argument("--only", nargs="+", choices=list(CASES), metavar="CASE", help="these cases alone")
    parser.add_argument("--kind", choices=[kind.value for kind in Kind], help="the cases of this kind alone")
    parser.add_argument("--steps", nargs="+", choices=list(STEPS), default=list(STEPS), help="these steps alone")
    parser.add_argument("--again", action="store_true", help="repeat steps that have a result")
    settings.add_arguments(parser)
    return parser


def main() -> None:
    options = parser().parse_args()
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
    with tempfile.TemporaryDirectory(prefix="loopwright-bench-") as scratch:
        # A cache of this run's own: what an earlier run compiled would make compilation look fast.
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch
        failed = run(cases, options.steps, asked, again=options.again)
    if failed:
        sys.exit(f"without a result: {', '.join(failed)}")


def run(cases: list[Case], steps: list[str], asked: Settings, *, again: bool) -> list[str]:
    """Take the steps of the cases that have no result, or all of them ``again``; return those that failed."""
    known = {} if again else cells.latest(cells.lines(asked.cells))
    failed = []
    with running(asked) as service:
        for case in cases:
            for step in STEPS:
                if step not in steps or (step == "stock" and not case.with_stock):
                    continue
                if (_KIND_OF[step], case.name) not in known and not done(step, case, asked, service):
                    failed.append(f"{step} {case.name}")
    return failed


def done(step: str, case: Case, asked: Settings, service: Service) -> bool:
    """Take one step of a case, and append its line; return whether it succeeded."""
    started = time.monotonic()
    try:
        cells.append(asked.cells, STEPS[step](case, asked, service))
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


if __name__ == "__main__":
    main()
