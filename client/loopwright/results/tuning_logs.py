"""Logs of AutoTVM and of Ansor (`auto_scheduler`), tuners of earlier TVM versions: what they measured.

Their schedules cannot be replayed. AutoTVM's are values for a template, Ansor's are transform steps, and TVM has
neither templates nor steps any more. The latencies are a reference for a new search, and no records: they have no
trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from loopwright.codegen.versions import TVM_VERSION
from loopwright.results.archive import MEMBERS

NOT_IMPORTED = (
    "Nothing was sent to the service. The schedules of AutoTVM and auto_scheduler cannot be replayed on TVM "
    f"{TVM_VERSION}, which has neither AutoTVM's templates nor Ansor's transform steps. Keep the latencies as a "
    "reference. To tune the same operators again, submit the model that they come from: loopwright job submit MODEL"
)


@dataclass(frozen=True, slots=True)
class LoggedTask:
    """``best_us`` is the least median of a trial's runs, in microseconds; None if all ``trials`` failed."""

    tuner: str
    name: str
    target: str
    best_us: float | None
    trials: int
    failed: int


@dataclass(frozen=True, slots=True)
class _Trial:
    """``secs`` is None for a failed one."""

    task: tuple[str, str, str]
    secs: float | None


def logged_tasks(path: Path) -> list[LoggedTask]:
    """Return the tasks of a log, or of all logs in a directory, in order of their first trials.

    There are none in other files, and in a directory with TVM's pair of JSON files, which can be imported.
    """
    files = [path]
    if path.is_dir():
        files = [] if all((path / name).exists() for name in MEMBERS) else sorted(path.iterdir())
    trials: dict[tuple[str, str, str], list[float | None]] = {}
    for file in filter(Path.is_file, files):
        for trial in _trials(file):
            trials.setdefault(trial.task, []).append(trial.secs)
    tasks = []
    for (tuner, name, target), times in trials.items():
        known = [secs for secs in times if secs is not None]
        best_us = min(known) * 1e6 if known else None
        tasks.append(LoggedTask(tuner, name, target, best_us, len(times), len(times) - len(known)))
    return tasks


def _trials(file: Path) -> Iterator[_Trial]:
    """Yield the trials of a log, and nothing of another file. Lines that are damaged are passed over."""
    with file.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith('{"'):
                try:
                    yield _trial(json.loads(line))
                except (ValueError, LookupError, TypeError):
                    continue


def _trial(entry: dict[str, Any]) -> _Trial:
    """Return a line of a log. Raises ValueError, LookupError or TypeError if it is none."""
    if "input" in entry:
        tuner, (target, name, arguments, _), result = "AutoTVM", entry["input"], entry["result"]
    else:
        tuner, (workload, target, *_), result = "auto_scheduler", entry["i"][0], entry["r"]
        name, *arguments = json.loads(workload)
    costs, error_code, *_ = result
    task = (tuner, f"{name}({', '.join(map(_argument, arguments))})", str(target).strip())
    return _Trial(task, None if error_code else float(median(costs)))


def _argument(value: Any) -> str:
    """Return an argument of a task: ``1x3x224x224 float32`` for a tensor, others as JSON."""
    match value:
        case ["TENSOR", [*shape], str(dtype)]:
            return f"{'x'.join(map(str, shape))} {dtype}"
        case _:
            return json.dumps(value)
