"""Logs and traces of runs: each log line of a run names its job, and a run is a span."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from db.views import ClaimedJob
from service.logs.ids import about
from service.traces.runs import run_span

Run = TypeVar("Run", bound=Callable[..., Any])


def observed(run: Run) -> Run:
    """Decorate a method that runs the claimed job which is its first argument. Its object has a ``_db``."""

    @functools.wraps(run)
    def observed_run(runner: Any, claimed: ClaimedJob, *args: Any, **kwargs: Any) -> Any:
        with about(job=claimed.job.id), run_span(runner._db, claimed.job):
            return run(runner, claimed, *args, **kwargs)

    return cast(Run, observed_run)
