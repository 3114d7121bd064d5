"""Runs of jobs as they are seen from outside: each line of the log names the job."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from db.views import ClaimedJob
from service.logs.ids import about
from service.logs.lines import set_up
from service.settings import read_settings

Run = TypeVar("Run", bound=Callable[..., Any])


def observed(run: Run) -> Run:
    """Decorate a method that runs the claimed job which is its first argument."""

    @functools.wraps(run)
    def observed_run(runner: Any, claimed: ClaimedJob, *args: Any, **kwargs: Any) -> Any:
        _set_up_process()
        with about(job=claimed.job.id):
            return run(runner, claimed, *args, **kwargs)

    return cast(Run, observed_run)


@functools.cache
def _set_up_process() -> None:
    """Set up the process of a runner once. Its settings are those of the Ray node that started it."""
    set_up(read_settings({}).log_format)
