"""Tasks, targets, bests, records and comparisons as tables: columns for terminals, notebooks and pandas alike."""

from __future__ import annotations

import html as markup
import importlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeVar

from loopwright import schemas
from loopwright.results.units import latency, plural, ratio

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table

SHOWN = 50
"""Rows of a list that are shown where nobody asked for all."""
TRIVIAL = 0.01
"""Of a model's time, below which a task is not shown by itself; in models of more than `FEW` tasks."""
FEW = 5
_LETTER = re.compile(r"[^\W\d_]")
ALIKE = 1.005
"""Latencies whose ratio is smaller are shown as 1.00x."""

Row = Sequence[str]


class Function(Protocol):
    """A function of a model: its name, and where the model calls it, if that is known."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str | None: ...


Item = TypeVar("Item", bound="BaseModel")
Shown = TypeVar("Shown", contravariant=True)


@dataclass(frozen=True, slots=True)
class Column:
    """``folds``: where space is short, its cells go on in the next line; those of other columns never break."""

    title: str
    is_number: bool = False
    folds: bool = False


@dataclass(frozen=True, slots=True)
class Layout(Generic[Shown]):
    """How items of one kind are shown: a row each."""

    columns: tuple[Column, ...]
    row: Callable[[Shown], Row]

    def html(self, items: Sequence[Shown], caption: str = "") -> str:
        """Return a table for a notebook. Cells are never markup."""
        head = "".join(f"<th>{markup.escape(column.title)}</th>" for column in self.columns)
        lines = [f"<tr>{head}</tr>"]
        for item in items:
            cells = zip(self.columns, self.row(item), strict=True)
            lines.append("<tr>" + "".join(_cell(column, text) for column, text in cells) + "</tr>")
        title = f"<caption style='text-align:left'>{markup.escape(caption)}</caption>" if caption else ""
        return f"<table>{title}{''.join(lines)}</table>"

    def rich(self, items: Sequence[Shown]) -> Table:
        """Return a table for a terminal."""
        from rich.table import Table
        from rich.text import Text

        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in self.columns:
            justify: Literal["left", "right"] = "right" if column.is_number else "left"
            table.add_column(column.title, justify=justify, overflow="fold", no_wrap=not column.folds)
        for item in items:
            table.add_row(*(Text(cell) for cell in self.row(item)))
        return table


def _cell(column: Column, text: str) -> str:
    style = " style='text-align:right'" if column.is_number else ""
    return f"<td{style}>{markup.escape(text)}</td>"


class Listing(Generic[Item]):
    """A list of the service's, fetched as it is read and then kept; shows its beginning in terminals and notebooks."""

    def __init__(self, items: Iterator[Item], layout: Layout[Item]) -> None:
        self._rest = items
        self._seen: list[Item] = []
        self._layout = layout

    def __iter__(self) -> Iterator[Item]:
        position = 0
        while position < len(self._seen) or self._fetch():
            yield self._seen[position]
            position += 1

    def first(self, count: int) -> list[Item]:
        """Up to ``count`` items from the beginning; no more than needed are fetched."""
        while len(self._seen) < count and self._fetch():
            pass
        return self._seen[:count]

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a column for each field, latencies in microseconds (needs pandas)."""
        return to_pandas(list(self))

    def _repr_html_(self) -> str:
        return self._layout.html(self.first(SHOWN), self._more())

    def __rich__(self) -> Table:
        return self._layout.rich(self.first(SHOWN))

    def __repr__(self) -> str:
        shown = self.first(SHOWN)
        return f"<{plural(len(shown), 'item')}{', and more' if len(self.first(SHOWN + 1)) > SHOWN else ''}>"

    def _more(self) -> str:
        return f"the first {SHOWN}" if len(self.first(SHOWN + 1)) > SHOWN else ""

    def _fetch(self) -> bool:
        for item in self._rest:
            self._seen.append(item)
            return True
        return False


def to_pandas(items: Sequence[BaseModel]) -> Any:
    """Items of one kind as a ``pandas.DataFrame``, a column a field.

    Raises:
        ImportError: pandas is not installed.
    """
    try:
        pandas = importlib.import_module("pandas")
    except ImportError as error:
        raise ImportError("to_pandas() needs pandas; install it with: pip install pandas") from error
    return pandas.DataFrame([item.model_dump() for item in items])


def _task(task: schemas.Task) -> Row:
    found_by = {"database": "database", "joined": "another job"}
    searched = "first choice" if task.trials == 1 and task.answered_from == "search" else plural(task.trials, "trial")
    return (
        titled(task),
        str(task.weight),
        "-" if task.model_share is None else f"{task.model_share:.1%}",
        latency(task.baseline_us),
        latency(task.best_us),
        ratio(task.speedup, task.interval),
        f"{'certified' if task.certified else task.state}{_library(task)}",
        found_by.get(task.answered_from or "search", searched),
    )


def _library(task: schemas.Task) -> str:
    """Return by how much a library is faster, if it is."""
    if task.library is None or task.best_us is None or task.best_us < ALIKE * task.library.us:
        return ""
    return f", {task.library.name.split()[0]} {ratio(task.best_us / task.library.us)} faster"


def called(function: Function) -> str:
    """Return what people call a function: where the model calls it, or else its name.

    A place without a word, as that of a layer of ``nn.Sequential``, goes with the name.
    """
    if function.source is None:
        return function.name
    return function.source if _LETTER.search(function.source) else f"{function.source} ({function.name})"


def titled(function: Function) -> str:
    """Return where the model calls a function, and its name, by which functions that are called at one place differ."""
    return function.name if function.source is None else f"{function.source} {function.name}"


def _target(named: tuple[str, schemas.Job]) -> Row:
    name, job = named
    is_certified = job.state == "succeeded" and job.tasks and all(task.certified for task in job.tasks)
    return (
        name,
        job.id,
        "certified" if is_certified else job.state,
        str(job.progress.trials),
        latency(None if job.model is None else job.model.untuned_us),
        latency(None if job.model is None else job.model.latency_us),
        model_speedup(job),
    )


def _best(best: schemas.Best) -> Row:
    return (
        titled(best),
        best.workload_hash[:12],
        latency(best.baseline_us),
        latency(best.best_us),
        ratio(best.speedup, best.certificate.interval),
        "the unscheduled program" if best.is_baseline else "a schedule",
        json.dumps(best.target, sort_keys=True),
    )


def _record(record: schemas.Record) -> Row:
    imported = record.job_id is None and record.sandbox is None
    certified = "yes" if record.certified else "imported" if imported else "no"
    return (record.id, called(record), latency(record.median_us), certified, record.device_class)


def by_share(tasks: Sequence[schemas.Task]) -> tuple[list[schemas.Task], list[schemas.Task]]:
    """Tasks by their share of the model's time, the largest first, and apart from them those that hardly count.

    A task hardly counts if it neither takes nor took `TRIVIAL` of the model's time. None does as long as a latency is
    missing, nor in a model of few tasks.
    """
    shares = [task.model_share or 0.0 for task in tasks]
    before = [task.weight * (task.baseline_us or 0.0) for task in tasks]
    whole = sum(before)
    ordered = sorted(zip(tasks, shares, before, strict=True), key=lambda each: -each[1])
    known = all(task.model_share is not None and task.baseline_us is not None for task in tasks)
    if not known or not whole or len(tasks) <= FEW:
        return [task for task, _, _ in ordered], []
    counts = [max(share, time / whole) >= TRIVIAL or task.error is not None for task, share, time in ordered]
    shown = [task for (task, _, _), does in zip(ordered, counts, strict=True) if does]
    return shown, [task for (task, _, _), does in zip(ordered, counts, strict=True) if not does]


def in_one_line(tasks: Sequence[schemas.Task]) -> str:
    """Return the line that stands for tasks that are not shown."""
    share = sum(task.model_share or 0.0 for task in tasks)
    return f"{plural(len(tasks), 'more task')} with {share:.1%} of the model's time together"


def model_speedup(job: schemas.Job) -> str:
    """Return the speedup of one run of the model as text; ``-`` while it is not known."""
    return "-" if job.model is None else ratio(job.model.speedup, job.model.interval)


def of_model(model: schemas.ModelLatency | None) -> str:
    """One run of the model before and after, in words; an empty text while it is not known."""
    if model is None:
        return ""
    untuned = f"{latency(model.untuned_us)} untuned: {ratio(model.speedup, model.interval)}"
    if model.measured_us is None:
        return f"the model's functions take {latency(model.best_us)} together, {untuned}"
    return f"one run of the model takes {latency(model.latency_us)}, {untuned}"


def figures(model: schemas.ModelLatency) -> list[tuple[str, float]]:
    """Return the known latencies of one run of a model in microseconds, each with its name; the headline's first."""
    named = (
        ("measured as one program", model.measured_us),
        ("untuned, measured as one program", model.baseline_measured_us),
        ("sum of the certified bests", model.best_us),
        ("sum of the fastest trials", model.searched_us),
        ("sum of the functions without a schedule", model.baseline_us),
    )
    return [(name, us) for name, us in named if us is not None]


def _engine(engine: schemas.ComparedEngine) -> Row:
    interval = engine.ratio
    return (
        engine.title,
        latency(engine.us),
        "-" if interval is None else f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})",
        "-" if engine.error is None else f"{engine.error:.1e}",
        "-" if engine.compile_seconds is None else f"{engine.compile_seconds:.1f} s",
        ", ".join(filter(None, (engine.setting, engine.note)))
        if engine.failure is None
        else ": ".join(filter(None, (engine.failure, engine.install))),
    )


def _recheck(best: schemas.Recheck) -> Row:
    result = best.result
    return (
        titled(best),
        "-" if result is None else result.verdict,
        latency(best.certified_best_us),
        latency(None if result is None else result.best_us),
        _range(None if result is None else result.slowdown),
        (result and result.message) or best.reason,
    )


def _neighbour(found: schemas.Neighbour) -> Row:
    return (
        "; ".join(changed(change) for change in found.changes),
        latency(found.us),
        _range(found.slowdown),
        found.message or "",
    )


def changed(change: schemas.DecisionChange) -> str:
    """Return a changed decision in words: ``T_matmul: tile i[3] 8 → 4``."""
    return f"{change.name} {change.before or 'none'} → {change.after or 'none'}"


def _trial(trial: schemas.Trial) -> Row:
    failure = "" if trial.failure_kind is None else f": {trial.failure_kind}"
    return (
        trial.workload_hash[:8],
        str(trial.number),
        f"{trial.state}{failure}",
        trial.origin,
        "-" if trial.predicted is None else f"{trial.predicted:.3g}",
        latency(trial.median_us),
        trial.worker or "-",
    )


def _range(found: schemas.Range | None) -> str:
    if found is None:
        return "-"
    return f"{found.value:.3f}" + ("" if found.high is None else f" ({found.low:.3f} to {found.high:.3f})")


def _gate(function: schemas.GateFunction) -> Row:
    return (
        titled(function),
        function.change,
        latency(function.reference_us),
        latency(function.candidate_us),
        _range(function.ratio),
        function.message or "",
    )


TASKS = Layout(
    (
        Column("task", folds=True),
        Column("weight", is_number=True),
        Column("share", is_number=True),
        Column("baseline", is_number=True),
        Column("best", is_number=True),
        Column("speedup", is_number=True),
        Column("result"),
        Column("found by"),
    ),
    _task,
)
TARGETS = Layout(
    (
        Column("target", folds=True),
        Column("job"),
        Column("result"),
        Column("trials", is_number=True),
        Column("baseline", is_number=True),
        Column("best", is_number=True),
        Column("speedup", is_number=True),
    ),
    _target,
)
"""The jobs of a group, each with the name of its target, in 80 columns; latencies are of one run of the model."""
BESTS = Layout(
    (
        Column("workload", folds=True),
        Column("hash"),
        Column("baseline", is_number=True),
        Column("best", is_number=True),
        Column("speedup", is_number=True),
        Column("best is"),
        Column("target", folds=True),
    ),
    _best,
)
ENGINES = Layout(
    (
        Column("engine"),
        Column("latency", is_number=True),
        Column("times Loopwright's", is_number=True),
        Column("error", is_number=True),
        Column("compiled in", is_number=True),
        Column("how", folds=True),
    ),
    _engine,
)
GATE = Layout(
    (
        Column("function", folds=True),
        Column("program"),
        Column("reference", is_number=True),
        Column("now", is_number=True),
        Column("time / reference", is_number=True),
        Column("why", folds=True),
    ),
    _gate,
)
RECHECKS = Layout(
    (
        Column("workload", folds=True),
        Column("verdict"),
        Column("certified", is_number=True),
        Column("now", is_number=True),
        Column("slowdown", is_number=True),
        Column("why", folds=True),
    ),
    _recheck,
)
NEIGHBOURS = Layout(
    (
        Column("changed decision", folds=True),
        Column("latency", is_number=True),
        Column("time over the schedule's", is_number=True),
        Column("failure", folds=True),
    ),
    _neighbour,
)
TRIALS = Layout(
    (
        Column("workload"),
        Column("number", is_number=True),
        Column("state"),
        Column("origin"),
        Column("predicted", is_number=True),
        Column("median", is_number=True),
        Column("worker", folds=True),
    ),
    _trial,
)
RECORDS = Layout(
    (
        Column("record"),
        Column("workload", folds=True),
        Column("median", is_number=True),
        Column("certified"),
        Column("device class"),
    ),
    _record,
)
