"""A span for each run of a job, with one for each of its tasks that were tuned in it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from db import Database
from db.views import JobView
from service.traces.tracer import tracer

_NANOSECONDS = 10**9

log = logging.getLogger("loopwright.traces")


@contextmanager
def run_span(database: Database, job: JobView) -> Iterator[None]:
    """Record the block as a span, if this process traces anything."""
    current = tracer()
    if current is None:
        yield
        return
    attributes = {"loopwright.job_id": job.id, "loopwright.attempt": job.attempts, "loopwright.user": job.user_name}
    with current.start_as_current_span("job", attributes=attributes) as span:
        yield
        try:
            _add_tasks(current, database, job.id, span.start_time)
        except Exception:
            # The database is away, say. The run is over, and what came of it is worth more than its trace.
            log.exception("the trace of job %s lacks its tasks", job.id)


def _add_tasks(current: Any, database: Database, job_id: str, since: int) -> None:
    """Add a span for each task that began after `since`, in nanoseconds since 1970, and has ended."""
    for task in database.tasks.of_job(job_id):
        if task.started_at is None or task.finished_at is None or _nanoseconds(task.started_at) < since:
            continue
        facts = {
            "loopwright.workload_hash": task.workload_hash,
            "loopwright.function": task.name,
            "loopwright.state": task.state.value,
            "loopwright.trials": task.trials,
        }
        child = current.start_span("task", attributes=facts, start_time=_nanoseconds(task.started_at))
        child.end(_nanoseconds(task.finished_at))


def _nanoseconds(time: datetime) -> int:
    return int(time.timestamp() * _NANOSECONDS)
