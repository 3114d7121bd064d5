"""Tasks, bests and records as tables: the columns once, for terminals, notebooks and pandas alike."""

from __future__ import annotations

import html as markup
import importlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel
from rich.table import Table
from rich.text import Text

from loopwright import schemas
from loopwright.units import latency, plural, ratio

SHOWN = 50
"""Rows of a list that are shown where nobody asked for all."""

Row = Sequence[str]
Item = TypeVar("Item", bound=BaseModel)
Shown = TypeVar("Shown", bound=BaseModel, contravariant=True)


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
        """A table for a notebook. Cells are never markup."""
        head = "".join(f"<th>{markup.escape(column.title)}</th>" for column in self.columns)
        lines = [f"<tr>{head}</tr>"]
        for item in items:
            cells = zip(self.columns, self.row(item), strict=True)
            lines.append("<tr>" + "".join(_cell(column, text) for column, text in cells) + "</tr>")
        title = f"<caption style='text-align:left'>{markup.escape(caption)}</caption>" if caption else ""
        return f"<table>{title}{''.join(lines)}</table>"

    def rich(self, items: Sequence[Shown]) -> Table:
        """A table for a terminal."""
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
        """All of it as a ``pandas.DataFrame``, a column a field, latencies in microseconds (needs pandas)."""
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
    return (
        task.name,
        str(task.weight),
        latency(task.baseline_us),
        latency(task.best_us),
        ratio(task.speedup),
        "certified" if task.certified else task.state,
        found_by.get(task.answered_from or "search", plural(task.trials, "trial")),
    )


def _best(best: schemas.Best) -> Row:
    return (
        best.name,
        best.workload_hash[:12],
        latency(best.baseline_us),
        latency(best.best_us),
        ratio(best.speedup),
        "the unscheduled program" if best.is_baseline else "a schedule",
        json.dumps(best.target, sort_keys=True),
    )


def _record(record: schemas.Record) -> Row:
    certified = "yes" if record.certified else "no"
    return (record.id, record.name, latency(record.median_us), certified, record.device_class)


TASKS = Layout(
    (
        Column("task", folds=True),
        Column("weight", is_number=True),
        Column("baseline", is_number=True),
        Column("best", is_number=True),
        Column("speedup", is_number=True),
        Column("result"),
        Column("found by"),
    ),
    _task,
)
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
