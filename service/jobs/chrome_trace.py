"""A job's timeline as Trace Event JSON, which Perfetto and chrome://tracing open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from db.views import JobView, TrialView
from service.units import micros
from tuner.types import Lane

_PROCESSES = {Lane.PROPOSE: 1, Lane.BUILD: 2, Lane.MEASURE: 3}


def chrome_trace(job: JobView, trials: Sequence[TrialView]) -> dict[str, Any]:
    """One process a lane, one thread a worker, one slice a span; times in microseconds since the first span."""
    spans = [(trial, span) for trial in trials for span in trial.spans]
    origin = min((span.start for _, span in spans), default=0.0)
    threads = {key: number for number, key in enumerate(sorted({(span.lane, span.worker) for _, span in spans}), 1)}
    names = [_name("process_name", pid, 0, lane.value) for lane, pid in _PROCESSES.items()]
    names += [_name("thread_name", _PROCESSES[lane], tid, worker) for (lane, worker), tid in threads.items()]
    slices: dict[tuple[Any, ...], dict[str, Any]] = {}
    for trial, span in spans:
        # Trials that were proposed together share one slice.
        key = (span.lane, span.worker, span.start, None if span.lane is Lane.PROPOSE else trial.id)
        found = slices.setdefault(
            key,
            {
                "ph": "X",
                "name": "propose" if span.lane is Lane.PROPOSE else f"trial {trial.number}",
                "cat": span.lane.value,
                "pid": _PROCESSES[span.lane],
                "tid": threads[span.lane, span.worker],
                "ts": micros(span.start - origin),
                "dur": micros(span.end - span.start),
                "args": {"workload": trial.workload_hash, "trials": []},
            },
        )
        found["args"]["trials"].append(_told(trial))
    return {
        "traceEvents": [*names, *slices.values()],
        "displayTimeUnit": "ms",
        "otherData": {"job": job.id, "name": job.name},
    }


def _told(trial: TrialView) -> dict[str, Any]:
    return {
        "id": trial.id,
        "number": trial.number,
        "origin": trial.origin,
        "median_us": micros(trial.median),
        "failure": trial.failure_kind,
    }


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}
