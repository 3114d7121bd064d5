"""A job's timeline as Trace Event JSON, which Perfetto and chrome://tracing open, some trials at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from db.views import JobView, TrialView
from loopwright.codegen.kinds import Lane
from service.units import micros
from tuner.types import Span

TIMELINE: dict[str, Any] = {
    "description": "The timeline.",
    "content": {"application/json": {"schema": {"type": "object", "additionalProperties": True}}},
}
"""What the OpenAPI schema says of the answer."""

_PROCESSES = {Lane.PROPOSE: 1, Lane.BUILD: 2, Lane.MEASURE: 3}


def chrome_trace(job: JobView, trials: Iterable[TrialView]) -> Iterator[str]:
    """Yield the document, with a process per lane, a thread per worker and a slice per span.

    Times are microseconds since the job began. ``trials`` are sorted by task and number.
    """
    yield '{"traceEvents":['
    separator = ""
    for event in _events(job, trials):
        yield separator + json.dumps(event, separators=(",", ":"))
        separator = ","
    closing = {"displayTimeUnit": "ms", "otherData": {"job": job.id, "name": job.name}}
    yield "]," + json.dumps(closing)[1:]


def _events(job: JobView, trials: Iterable[TrialView]) -> Iterator[dict[str, Any]]:
    origin = (job.started_at or job.created_at).timestamp()
    threads: dict[tuple[Lane, str], int] = {}
    for lane, pid in _PROCESSES.items():
        yield _name("process_name", pid, 0, lane.value)
    together: list[TrialView] = []
    for trial in trials:
        if together and _proposed(trial) != _proposed(together[0]):
            yield from _proposal(together, origin, threads)
            together = []
        together.append(trial)
        for span in trial.spans:
            if span.lane is not Lane.PROPOSE:
                yield from _slice(span, f"trial {trial.number}", [trial], origin, threads)
    if together:
        yield from _proposal(together, origin, threads)


def _proposed(trial: TrialView) -> Span | None:
    return next((span for span in trial.spans if span.lane is Lane.PROPOSE), None)


def _proposal(trials: list[TrialView], origin: float, threads: dict[tuple[Lane, str], int]) -> Iterator[dict[str, Any]]:
    """Yield the one slice of trials that were proposed together."""
    span = _proposed(trials[0])
    if span is not None:
        yield from _slice(span, "propose", trials, origin, threads)


def _slice(
    span: Span, name: str, trials: list[TrialView], origin: float, threads: dict[tuple[Lane, str], int]
) -> Iterator[dict[str, Any]]:
    thread = span.lane, span.worker
    if thread not in threads:
        threads[thread] = len(threads) + 1
        yield _name("thread_name", _PROCESSES[span.lane], threads[thread], span.worker)
    yield {
        "ph": "X",
        "name": name,
        "cat": span.lane.value,
        "pid": _PROCESSES[span.lane],
        "tid": threads[thread],
        "ts": micros(span.start - origin),
        "dur": micros(span.end - span.start),
        "args": {"workload": trials[0].workload_hash, "trials": [_told(trial) for trial in trials]},
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
