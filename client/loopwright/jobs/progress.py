"""The progress of jobs: a bar for the trials of each, and for a job alone a line for each task with what was gained."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loopwright import schemas
from loopwright.results.tables import TARGETS, TASKS, called, model_speedup
from loopwright.results.units import latency, plural, ratio


@contextlib.contextmanager
def telling(enabled: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows the current step on standard error, or does nothing unless ``enabled``."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda text: None
    elif console.is_terminal:
        with console.status("") as status:
            yield lambda text: status.update(Text(text))
    else:
        yield lambda text: console.print(text, markup=False, highlight=False, soft_wrap=True)


class ProgressView:
    """Draws while it is entered; `show` takes the jobs as they are now. Draws nothing when not ``enabled``."""

    def __init__(self, enabled: bool, console: Console | None = None, titles: Sequence[str] | None = None) -> None:
        """``titles``: of the bars, one for each job that is shown; None for one job, whose name is the title."""
        self._bar = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        self._titles = titles
        self._jobs = [self._bar.add_task("", count="", note="") for _ in (titles or [""])]
        self._tasks: list[schemas.Task] = []
        console = console or Console(stderr=True)
        self._live: Live | None = None
        self._cell: Any = None
        if enabled and console.is_jupyter:
            # rich needs ipywidgets for this; a cell's output that is replaced needs nothing.
            self._cell = importlib.import_module("IPython.display").display({}, raw=True, display_id=True)
        elif enabled:
            self._live = Live(console=console, get_renderable=self._render, refresh_per_second=8)

    def __enter__(self) -> ProgressView:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()
            if not self._live.console.is_terminal:  # rich leaves the last line open there
                self._live.console.line()

    def show(self, *jobs: schemas.Job) -> None:
        titles = [job.name for job in jobs] if self._titles is None else self._titles
        self._tasks = jobs[0].tasks if len(jobs) == 1 else []
        for bar, title, job in zip(self._jobs, titles, jobs, strict=True):
            finished = job.state in schemas.FINISHED
            done, total = job.progress.trials, job.progress.total
            self._bar.update(
                bar,
                description=title,
                # A finished job fills its bar, also where the database's answer or "good enough" made trials needless.
                completed=1 if finished else done,
                total=1 if finished else total,
                count=plural(done, "trial") if finished else f"{done}/{total}",
                note=_note(job) if len(jobs) == 1 else f"{_note(job)}{_model_gain(job)}",
            )
            if finished:
                self._bar.stop_task(bar)
        if self._cell is not None:
            self._cell.update({"text/html": _html(titles, jobs)}, raw=True)

    def _render(self) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 2))
        # Where space is short, names are cut, and figures are not.
        table.add_column()
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True)
        for task in self._tasks:
            name = Text(called(task), no_wrap=True, overflow="ellipsis")
            table.add_row(name, plural(task.trials, "trial"), _gain(task))
        return Group(self._bar, table)


def _html(titles: Sequence[str], jobs: Sequence[schemas.Job]) -> str:
    if len(jobs) > 1:
        return TARGETS.html(list(zip(titles, jobs, strict=True)), jobs[0].name)
    [job] = jobs
    done = f"{job.progress.trials} of {plural(job.progress.total, 'trial')}{_failed(job)}"
    return TASKS.html(job.tasks, f"{job.name}: {job.state}, {done}")


def _note(job: schemas.Job) -> str:
    return f"{job.activity or job.state}{_failed(job)}"


def _failed(job: schemas.Job) -> str:
    return f", {job.progress.failed} failed" if job.progress.failed else ""


def _model_gain(job: schemas.Job) -> str:
    return "" if job.model is None else f", {latency(job.model.latency_us)} ({model_speedup(job)})"


def _gain(task: schemas.Task) -> str:
    if task.best_us is None:
        return task.state
    speedup = f" ({ratio(task.speedup, task.interval)})" if task.speedup is not None else ""
    origin = ", from the database" if task.answered_from == "database" else ""
    return f"{latency(task.best_us)}{speedup}{', certified' if task.certified else ''}{origin}"
