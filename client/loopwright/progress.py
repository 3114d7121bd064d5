"""A job's progress: a bar for its trials, and a line for each task with what was gained."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from loopwright import schemas
from loopwright.tables import TASKS
from loopwright.units import latency, plural, ratio


@contextlib.contextmanager
def telling(enabled: bool) -> Iterator[Callable[[str], None]]:
    """A function that shows what is done, one thing at a time, on standard error; nothing if not ``enabled``."""
    console = Console(stderr=True)
    if not enabled:
        yield lambda text: None
    elif console.is_terminal:
        with console.status("") as status:
            yield lambda text: status.update(Text(text))
    else:
        yield lambda text: console.print(text, markup=False, highlight=False)


class ProgressView:
    """Draws while it is entered; `show` takes the job as it is now. Draws nothing when not ``enabled``."""

    def __init__(self, enabled: bool, console: Console | None = None) -> None:
        self._bar = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[count]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
        )
        self._job = self._bar.add_task("", count="", note="")
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

    def show(self, job: schemas.Job) -> None:
        failed = f", {job.progress.failed} failed" if job.progress.failed else ""
        self._tasks = job.tasks
        finished = job.state in schemas.FINISHED
        done, total = job.progress.trials, job.progress.total
        self._bar.update(
            self._job,
            description=job.name,
            # A finished job fills its bar, also where the database's answer or "good enough" made trials needless.
            completed=1 if finished else done,
            total=1 if finished else total,
            count=plural(done, "trial") if finished else f"{done}/{total}",
            note=f"{job.state}{failed}",
        )
        if finished:
            self._bar.stop_task(self._job)
        if self._cell is not None:
            text = TASKS.html(job.tasks, f"{job.name}: {job.state}, {done} of {plural(total, 'trial')}{failed}")
            self._cell.update({"text/html": text}, raw=True)

    def _render(self) -> RenderableType:
        table = Table.grid(padding=(0, 2, 0, 2))
        table.add_column(no_wrap=True, overflow="ellipsis")
        table.add_column(no_wrap=True, justify="right")
        table.add_column(no_wrap=True)
        for task in self._tasks:
            table.add_row(Text(task.name), plural(task.trials, "trial"), _gain(task))
        return Group(self._bar, table)


def _gain(task: schemas.Task) -> str:
    if task.best_us is None:
        return task.state
    speedup = f" ({ratio(task.speedup)})" if task.speedup is not None else ""
    origin = ", from the database" if task.answered_from == "database" else ""
    return f"{latency(task.best_us)}{speedup}{', certified' if task.certified else ''}{origin}"
