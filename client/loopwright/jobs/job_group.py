"""The jobs of one submission for several targets, followed from here."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from loopwright import schemas
from loopwright.errors import WaitTimedOut
from loopwright.jobs import targets
from loopwright.jobs.job import POLL, Job
from loopwright.results.tables import TARGETS
from loopwright.session.transport import Transport

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


class JobGroup(Mapping[str, Job]):
    """A mapping from targets to jobs, in the order of the targets: each job has a state, tasks and a result of its own.

    The keys are the targets as they were given, as JSON with sorted keys if they were no strings. ``group[target]``
    takes a target of any kind. For a group that was looked up by its id, the keys are the targets of its jobs as JSON.
    """

    def __init__(self, transport: Transport, info: schemas.JobGroup, given: Sequence[Any] | None = None) -> None:
        self._transport = transport
        self.id: str = info.id
        """The id of the group."""
        keys = [job.target for job in info.jobs] if given is None else given
        self._jobs = {targets.as_text(key): Job(transport, job) for key, job in zip(keys, info.jobs, strict=True)}

    @property
    def jobs(self) -> list[Job]:
        """The jobs, in the order of the targets."""
        return list(self._jobs.values())

    @property
    def info(self) -> schemas.JobGroup:
        """All that the service tells of the jobs."""
        return schemas.JobGroup(id=self.id, jobs=[job.info for job in self.jobs])

    @property
    def finished(self) -> bool:
        """Whether all jobs have ended, in whichever way."""
        return all(job.finished for job in self.jobs)

    @property
    def succeeded(self) -> bool:
        """Whether all jobs succeeded."""
        return all(job.state == "succeeded" for job in self.jobs)

    def __getitem__(self, target: Any) -> Job:
        key = targets.as_text(target)
        if key not in self._jobs:
            raise KeyError(f"no job of group {self.id} is for {key}; its targets are {', '.join(self._jobs)}")
        return self._jobs[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __len__(self) -> int:
        return len(self._jobs)

    def refresh(self) -> JobGroup:
        """Look at all jobs again; returns the group itself."""
        found = {info.id: info for info in self._transport.pages(schemas.Job, "/api/v1/jobs", group=self.id)}
        for job in self.jobs:
            job.info = found[job.id]
        return self

    def cancel(self) -> JobGroup:
        """Stop the jobs that are not finished. What was measured stays."""
        for job in self.jobs:
            job.cancel()
        return self

    def wait(self, progress: bool = True, timeout: float | None = None, console: Console | None = None) -> JobGroup:
        """Wait until all jobs are finished, and return the group; the ``state`` of each job says how it ended.

        Args:
            progress: draw a progress bar for each target, on standard error unless ``console`` is given.
            timeout: seconds to wait at most; None: without a limit.
            console: where to draw them.

        Raises:
            WaitTimedOut: the time is over; the jobs go on.
            CouldNotReach: the service has been away for longer than retries bridge.
        """
        from loopwright.jobs.progress import ProgressView

        deadline = None if timeout is None else time.monotonic() + timeout
        with ProgressView(enabled=progress, console=console, titles=self._names()) as view:
            while True:
                self.refresh()
                view.show(*(job.info for job in self.jobs))
                if self.finished:
                    return self
                left = POLL if deadline is None else deadline - time.monotonic()
                if left <= 0:
                    going_on = ", ".join(f"{job.id} ({job.state})" for job in self.jobs if not job.finished)
                    raise WaitTimedOut(f"after {timeout:g} s these jobs are not finished: {going_on}")
                time.sleep(min(POLL, left))

    def rows(self) -> list[tuple[str, schemas.Job]]:
        """Return the jobs with short names of their targets, as `loopwright.results.tables.TARGETS` shows them."""
        return list(zip(self._names(), (job.info for job in self.jobs), strict=True))

    def _names(self) -> list[str]:
        return targets.short_names([job.info.target for job in self.jobs])

    def _repr_html_(self) -> str:
        return TARGETS.html(self.rows(), self.jobs[0].name)

    def __rich__(self) -> Table:
        return TARGETS.rich(self.rows())

    def __repr__(self) -> str:
        states = ", ".join(f"{name}: {job.state}" for name, job in self.rows())
        return f"<JobGroup {self.id} {self.jobs[0].name!r} {states}>"
