"""A submitted job, followed from here."""

from __future__ import annotations

import contextlib
import json
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Unpack, cast

from loopwright import schemas
from loopwright.errors import (
    CouldNotReach,
    LoopwrightError,
    NotFound,
    ServiceError,
    ServiceUnavailable,
    TooManyRequests,
    Unauthorized,
    WaitTimedOut,
)
from loopwright.extras import require_tvm
from loopwright.jobs.submit_options import BudgetOptions
from loopwright.model import Tune
from loopwright.results import tables
from loopwright.results.units import plural
from loopwright.session import config
from loopwright.session.transport import ATTEMPTS, Transport, body, parse, retry_delay

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from loopwright.jobs.job_diff import JobDiff
    from loopwright.results.best import Best
    from loopwright.results.comparison import Comparison

SILENCE = 45.0
"""Seconds without a byte after which an event stream is taken for dead (the service sends comments more often)."""
REFRESH = 0.5
"""Shortest time between two looks at the job while events pour in, seconds."""
POLL = 0.5
"""Time between two looks at the job where its events cannot be had, seconds."""


@dataclass(frozen=True, slots=True)
class JobEvent:
    """Something that happened to a job. ``id`` grows; ``data`` is as the event's type in `loopwright.schemas.Event`."""

    id: int
    """Number of the event, which grows; `Job.events` goes on after it."""
    type: Literal["job", "task", "trial", "recheck"]
    """What changed."""
    data: dict[str, Any]
    """The event, with the fields of REST's ``JobChanged``, ``TaskChanged``, ``TrialFinished`` or
    ``RecheckFinished``."""


class Job:
    """A job as of the last look at it; `refresh` looks again, `wait` looks until it is finished."""

    def __init__(self, transport: Transport, info: schemas.Job) -> None:
        self._transport = transport
        self.info: schemas.Job = info
        """All that the service tells of the job."""

    @property
    def id(self) -> str:
        """The id of the job."""
        return self.info.id

    @property
    def name(self) -> str:
        """The name of the job."""
        return self.info.name

    @property
    def url(self) -> str:
        """The address of its page in the dashboard."""
        return f"{self._transport.endpoint.url.rstrip('/')}{self.page}"

    @property
    def page(self) -> str:
        """The path of its page in the dashboard."""
        return f"/jobs/{self.id}"

    @property
    def tags(self) -> list[str]:
        """The words that its user gave it, sorted."""
        return self.info.tags

    @property
    def description(self) -> str:
        """What it is for, in its user's words."""
        return self.info.description

    @property
    def state(self) -> schemas.JobState:
        """``queued``, ``running``, ``succeeded``, ``partly``, ``failed`` or ``cancelled``, as of the last look."""
        return self.info.state

    @property
    def tasks(self) -> list[schemas.Task]:
        """The workloads of the job with their bests so far, sorted by name; those of several shapes, shape by shape.

        This order stays the same while the job runs. Tables sort the tasks by their share of the model's time instead.
        """
        return self.info.tasks

    @property
    def progress(self) -> schemas.Progress:
        """Trials that finished, failed, and may be made in total."""
        return self.info.progress

    @property
    def model(self) -> schemas.ModelLatency | None:
        """One run of the whole model, before and after tuning, as the sum of its parts; None until all are known."""
        return self.info.model

    @property
    def best(self) -> Best | None:
        """The certified best of its function that is known now, or None.

        Raises:
            ValueError: the job has no function or several; `bests` returns theirs.
        """
        if len(self.tasks) != 1:
            raise ValueError(f"job {self.id} has {plural(len(self.tasks), 'function')}; use bests()")
        return next(iter(self.bests()), None)

    def bests(self) -> list[Best]:
        """Return the certified bests of its functions that are known now, in the order of `tasks`.

        A later job may have found a faster one than this job. Functions without a certified best are left out.
        """
        from loopwright.results.best import Best

        found = []
        for task in self.tasks:
            path, target = f"/api/v1/workloads/{task.workload_hash}/best", json.dumps(self.info.target)
            with contextlib.suppress(NotFound):
                found.append(self._transport.get(Best, path, target=target))
        return found

    @property
    def error(self) -> str | None:
        """Why the job failed, or None."""
        return self.info.error

    @property
    def finished(self) -> bool:
        """Whether the job has ended, in whichever way."""
        return self.info.state in schemas.FINISHED

    def refresh(self) -> Job:
        """Look again; returns the job itself."""
        self.info = self._transport.get(schemas.Job, self._path())
        return self

    def describe(self, *, tags: Sequence[str] | None = None, description: str | None = None) -> Job:
        """Replace what you say of the job.

        Args:
            tags: up to 16 words, by which `Client.jobs` narrows the list; None: as they are.
            description: text; None: as it is.

        Returns:
            The job itself.

        Raises:
            Forbidden: it is another user's job.
            ValueError: there are too many tags, or a text is too long.
        """
        changes = body(schemas.DescribeJob, tags=None if tags is None else list(tags), description=description)
        answer = self._transport.request("PATCH", self._path(), json=changes, repeatable=True)
        self.info = parse(schemas.Job, answer)
        return self

    def diff(self, other: Job) -> JobDiff:
        """Return this job and another one side by side, function by function.

        Args:
            other: the second job, which is on the right.
        """
        from loopwright.jobs.job_diff import JobDiff

        return JobDiff(self.info, other.info)

    def cancel(self) -> Job:
        """Stop the job. What was measured stays; cancelling a cancelled job does nothing."""
        self.info = parse(schemas.Job, self._transport.request("POST", self._path("/cancel"), repeatable=True))
        return self

    def resubmit(
        self,
        *,
        seed: int | None = None,
        force: bool | None = None,
        **budget: Unpack[BudgetOptions],
    ) -> Job:
        """Submit the module, target and space of this job again.

        Args:
            seed: seed of the search; None: as in this job.
            force: search even if the database knows the answer; None: as in this job.
            budget: the fields of the job's budget that change, such as ``max_trials=256``; see `schemas.Budget`.

        Returns:
            The new job.

        Raises:
            Conflict: the job is a recheck or an ablation, and has no module.
            ValueError: the budget is out of bounds.
        """
        changes = body(schemas.Resubmit, budget=dict(self.info.budget) | dict(budget), seed=seed, force=force)
        headers = {"Idempotency-Key": uuid.uuid4().hex}
        answer = self._transport.request(
            "POST", self._path("/resubmit"), json=changes, headers=headers, repeatable=True
        )
        return Job(self._transport, parse(schemas.Job, answer))

    def trials(self) -> tables.Listing[schemas.Trial]:
        """Return the job's trials, by task and number; number 0 of each task is the baseline.

        They are fetched as they are read; ``to_pandas()`` makes a frame of them.
        """
        pages = self._transport.pages(schemas.Trial, self._path("/trials"), page_size=200)
        return tables.Listing(pages, tables.TRIALS)

    def comparison(self) -> Comparison | None:
        """Return the stored comparison of the model with other engines (`Client.compare`), or None."""
        answer = self._transport.request("GET", self._path("/comparison"))
        if answer.json() is None:
            return None
        from loopwright.results.comparison import Comparison

        stored = parse(schemas.StoredComparison, answer)
        return Comparison.model_validate(stored.model_dump(exclude={"user", "created_at"}))

    def bottlenecks(self) -> schemas.Bottlenecks:
        """Return what limits each function, how much time is left above that limit, and which decisions mattered."""
        return self._transport.get(schemas.Bottlenecks, self._path("/bottlenecks"))

    def gate(self) -> schemas.GateState | None:
        """Return the reference of the comparison by `Client.check`, and its result; None if the job has no gate."""
        answer = self._transport.request("GET", self._path("/gate"))
        return None if answer.json() is None else parse(schemas.GateState, answer)

    def rechecks(self) -> list[schemas.Recheck]:
        """Return the bests that the job races again (`Client.recheck`), with the results; empty for other jobs.

        Raises:
            WrongCertificate: a result is not what the service signed.
        """
        from loopwright.results import evidence

        found = list(self._transport.pages(schemas.Recheck, self._path("/rechecks")))
        if any(each.result is not None for each in found):
            keys = evidence.by_id(self._transport.pages(schemas.SigningKey, "/api/v1/keys"))
            for each in found:
                evidence.check_recheck(each, keys)
        return found

    def module(self, shapes: dict[str, int] | None = None, *, tune: Tune | None = None) -> Any:
        """Return the submitted module with the best schedules applied by the service, as an IRModule (needs TVM).

        Weights stayed with who submitted it: they are parameters.

        Args:
            shapes: which shapes, of a job for several.
            tune: ``"instant"`` also schedules functions that have no certified best yet, on this machine and as
                `Client.compile` does: so the module is fast from the beginning of the job.

        Raises:
            Conflict: the job is a recheck or an ablation, and has no module.
            ValueError: the budget is out of bounds.
            InvalidRequest: the shapes do not fit the module.
        """
        query = {} if shapes is None else {"shapes": json.dumps(shapes)}
        require_tvm()
        from loopwright.codegen.serialization import module_from_json

        answer = self._transport.request("GET", self._path("/module"), params=query)
        mod = module_from_json(parse(schemas.ModulePayload, answer).data)
        if tune is None:
            return mod
        from loopwright.applying import instant
        from loopwright.applying.assembling import functions_in
        from loopwright.codegen.target import target_from

        functions = functions_in(config.functions_folder())
        return instant.completed(mod, target_from(self.info.target), answer.json()["missed"], functions)

    def events(self, after: int | None = None) -> Iterator[JobEvent]:
        """Yield what happens to the job until it is finished.

        A broken stream is resumed after the last event seen, so that none is lost or comes twice.

        Args:
            after: id of the event after which to begin; None: from the beginning of the job.

        Raises:
            CouldNotReach: the stream broke and could not be resumed.
            ServiceError: the service refused it.
        """
        fruitless = 0
        while True:
            try:
                for event in self._transport.stream(self._path("/events"), after, SILENCE):
                    if event.id is None or event.type not in ("job", "task", "trial", "recheck"):
                        continue
                    # Only an event proves that the stream works: a proxy may accept and drop connections for ever.
                    fruitless, after = 0, int(event.id)
                    kind = cast('Literal["job", "task", "trial", "recheck"]', event.type)
                    happened = JobEvent(after, kind, json.loads(event.data))
                    yield happened
                    if _ends(happened):
                        return
                trouble: LoopwrightError = CouldNotReach(
                    f"the event stream of job {self.id} keeps ending before the job does"
                )
            except (CouldNotReach, ServiceUnavailable, TooManyRequests) as error:
                trouble = error
            fruitless += 1
            if fruitless >= ATTEMPTS:
                raise trouble
            time.sleep(retry_delay(fruitless))

    def wait(self, progress: bool = True, timeout: float | None = None, console: Console | None = None) -> Job:
        """Wait until the job is finished, and return it; ``state`` says how it ended.

        Args:
            progress: draw progress bars, on standard error unless ``console`` is given.
            timeout: seconds to wait at most; None: without a limit.
            console: where to draw them.

        Raises:
            WaitTimedOut: the time is over; the job goes on.
            CouldNotReach: the service has been away for longer than retries bridge.
        """
        from loopwright.jobs.progress import ProgressView

        deadline = None if timeout is None else time.monotonic() + timeout
        with ProgressView(enabled=progress, console=console) as view:
            self.refresh()
            view.show(self.info)
            for _ in () if self.finished else self._ticks(deadline):
                self.refresh()
                view.show(self.info)
                if self.finished:
                    break
                if deadline is not None and time.monotonic() >= deadline:
                    raise WaitTimedOut(
                        f"job {self.id} is still {self.state} after {timeout:g} s; wait again, or cancel it"
                    )
        return self

    def _ticks(self, deadline: float | None) -> Iterator[None]:
        """Yield whenever the job should be refreshed: after its events, or periodically if the service sends none.

        With a deadline it is always periodic, since a stream without events would outlast the deadline.
        """
        looked = time.monotonic()
        try:
            for event in self.events() if deadline is None else ():
                if _ends(event) or time.monotonic() - looked >= REFRESH:
                    yield
                    looked = time.monotonic()
        except Unauthorized:
            raise
        except (CouldNotReach, ServiceError):
            pass  # a proxy may let requests through, but no streams: go by the clock
        while True:
            yield
            time.sleep(POLL if deadline is None else max(0.0, min(POLL, deadline - time.monotonic())))

    def _path(self, suffix: str = "") -> str:
        return f"/api/v1/jobs/{self.info.id}{suffix}"

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a column for each field, latencies in microseconds (needs pandas)."""
        return tables.to_pandas(self.tasks)

    def _repr_html_(self) -> str:
        done = f"{self.progress.trials} of {self.progress.total} trials"
        shown, folded = tables.by_share(self.tasks)
        more = tables.in_one_line(folded) if folded else ""
        caption = "; ".join(filter(None, (f"{self.name}: {self.state}, {done}", tables.of_model(self.model), more)))
        return tables.TASKS.html(shown, caption)

    def __rich__(self) -> Table:
        shown, folded = tables.by_share(self.tasks)
        table = tables.TASKS.rich(shown)
        lines = (tables.of_model(self.model), tables.in_one_line(folded) if folded else "")
        table.caption = "\n".join(filter(None, lines)) or None
        return table

    def __repr__(self) -> str:
        return f"<Job {self.id} {self.name!r} {self.state}>"


def _ends(event: JobEvent) -> bool:
    return event.type == "job" and event.data.get("state") in schemas.FINISHED
