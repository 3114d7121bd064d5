"""Printing for commands: JSON for programs, tables for people, all of it to standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from rich.console import Console
from rich.style import Style
from rich.table import Table
from rich.text import Text

from loopwright.codegen.labels import visible
from loopwright.results.tables import Column

_NARROWEST = 14
"""Characters that a column which may fold keeps at least; a table that then is too wide becomes a list."""


def print_json(value: BaseModel | Sequence[BaseModel] | dict[str, Any]) -> None:
    """One JSON document, indented; times as RFC 3339."""
    if isinstance(value, BaseModel):
        plain: Any = value.model_dump(mode="json")
    elif isinstance(value, dict):
        plain = value
    else:
        plain = [item.model_dump(mode="json") for item in value]
    print(json.dumps(plain, indent=2, ensure_ascii=False))


def print_line(text: str, error: bool = False, link: str | None = None) -> None:
    """Print text, on standard error if ``error``; in terminals that know links it is one to ``link``."""
    lines = "\n".join(visible(line) for line in text.split("\n"))
    style = Style.null() if link is None else Style(link=link)
    Console(soft_wrap=True, stderr=error).print(Text(lines, style), highlight=False)


def print_table(
    columns: Sequence[Column], rows: Iterable[Sequence[str]], *, links: Sequence[str] | None = None
) -> None:
    """Print a table, or a list with a line for each cell if the terminal is too narrow. Cells are never markup.

    ``links``: where the first cell of each row leads, in terminals that know links.
    """
    shown = [[visible(cell) for cell in row] for row in rows]
    longest = [max([len(column.title), *(len(row[index]) for row in shown)]) for index, column in enumerate(columns)]
    narrowest = [
        min(width, _NARROWEST) if column.folds else width for column, width in zip(columns, longest, strict=True)
    ]
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column, width in zip(columns, narrowest, strict=True):
        justify: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.title, justify=justify, overflow="fold", no_wrap=not column.folds, min_width=width)
    for number, (first, *others) in enumerate(shown):
        style = Style.null() if links is None else Style(link=links[number])
        table.add_row(Text(first, style), *(Text(cell) for cell in others))
    gaps = 2 * (len(columns) - 1)
    console = Console()
    if not console.is_terminal:
        # A file or a pipe has no width: nothing is folded there, so that a line holds a row.
        Console(width=sum(longest) + gaps).print(table)
    elif sum(narrowest) + gaps <= console.width:
        console.print(table)
    else:
        _print_list(columns, shown)


def print_facts(facts: Sequence[tuple[str, str]]) -> None:
    """Names and values, one a line."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in facts:
        table.add_row(name, Text("\n".join(visible(line) for line in value.split("\n"))))
    Console().print(table)


def _print_list(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    width = max(len(column.title) for column in columns)
    for row in rows:
        print_facts([(column.title.ljust(width), cell) for column, cell in zip(columns, row, strict=True)])
        print_line("")
