"""What commands print with: JSON for programs, tables for people, all of it to standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_NARROWEST = 14
"""Characters that a column which may fold keeps at least; a table that needs more than the terminal is a list instead."""


@dataclass(frozen=True, slots=True)
class Column:
    """``folds``: where space is short, its cells go on in the next line; those of other columns never break."""

    title: str
    is_number: bool = False
    folds: bool = False


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """One JSON document, indented; times as RFC 3339."""
    if isinstance(value, BaseModel):
        plain: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        plain = value
    else:
        plain = [item.model_dump(mode="json") for item in value]
    print(json.dumps(plain, indent=2, ensure_ascii=False))


def print_line(text: str, error: bool = False) -> None:
    Console(soft_wrap=True, stderr=error).print(text, markup=False, highlight=False)


def print_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """A table, or where the terminal is too narrow for it, a list with a line for each cell. Cells are text, never markup."""
    shown = [list(row) for row in rows]
    table = _table(columns, shown)
    console = Console()
    needed = Measurement.get(console, console.options.update(width=10_000), table)
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is folded there, so that a line holds a row.
        Console(width=needed.maximum).print(table)
    elif needed.minimum <= console.width:
        console.print(table)
    else:
        _print_list(columns, shown)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text(value))
    Console().print(table)


def _table(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for index, column in enumerate(columns):
        longest = max([len(column.title), *(len(row[index]) for row in rows)])
        table.add_column(
            column.title,
            justify="right" if column.is_number else "left",
            overflow="fold",
            no_wrap=not column.folds,
            min_width=min(longest, _NARROWEST) if column.folds else longest,
        )
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _print_list(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    width = max(len(column.title) for column in columns)
    for row in rows:
        print_facts([(column.title.ljust(width), cell) for column, cell in zip(columns, row, strict=True)])
        print_line("")
