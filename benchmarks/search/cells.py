"""Runs the arms of a cell: a cell is a workload with a seed, on one machine, with the code of one moment."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.search.run_record import Run, load


def run_missing(runs: Sequence[Run], folder: Path, execute: Callable[[Run], object], until: float) -> bool:
    """Execute the runs that have no record in ``folder``; records of another machine or other code are deleted first.

    Returns False if `time.monotonic` reached ``until`` before all had been executed. A run that fails has no record.
    """
    for run in runs:
        path = folder / run.file_name
        if path.exists() and (load(path).machine, load(path).code) != (run.machine, run.code):
            path.unlink()
    for run in runs:
        if not (folder / run.file_name).exists():
            if time.monotonic() > until:
                return False
            execute(run)
    return True


def load_all(runs: Sequence[Run], folder: Path) -> list[Run] | None:
    """Return the records of all runs; None if any is missing."""
    paths = [folder / run.file_name for run in runs]
    return [load(path) for path in paths] if all(path.exists() for path in paths) else None
