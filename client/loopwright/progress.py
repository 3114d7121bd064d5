"""A job's progress as bars: one for its trials, and a line for each task with what was gained."""

from __future__ import annotations

from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from loopwright import schemas


class ProgressView:
    """Draws while it is entered; `show` takes the job as it is now. Draws nothing when not ``enabled``."""

    def __init__(self, enabled: bool, console: Console | None = None) -> None:
        self._progress = Progress(
            SpinnerColumn(finished_text=" "),
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}", markup=False),
            console=console or Console(stderr=True),
            disable=not enabled,
        )
        self._rows: dict[str, TaskID] = {}

    def __enter__(self) -> ProgressView:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def show(self, job: schemas.Job) -> None:
        failed = f", {job.progress.failed} failed" if job.progress.failed else ""
        self._row("", job.name, job.progress.trials, job.progress.total, f"{job.state}{failed}", job.state)
        for task in job.tasks:
            self._row(task.workload_hash, f"  {task.name}", task.trials, None, _gain(task), task.state)

    def _row(self, key: str, name: str, completed: int, total: int | None, note: str, state: str) -> None:
        if key not in self._rows:
            self._rows[key] = self._progress.add_task(name, total=total, note=note)
        # A finished search may have spent less than it was allowed: its bar is full all the same.
        full = max(completed, 1) if state in schemas.FINISHED else total
        done = full if state in schemas.FINISHED and full is not None else completed
        self._progress.update(self._rows[key], completed=done, total=full, note=note)


def _gain(task: schemas.Task) -> str:
    if task.best_us is None:
        return task.state
    speedup = f" ({task.speedup:.1f}x)" if task.speedup is not None else ""
    return f"{task.best_us:.1f} µs{speedup}{', certified' if task.certified else ''}"
