"""The raw results: a file to which every step of every case appends one line, and of which the last line counts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

TUNED, STOCK, TIMED = "tuned", "stock", "timed"
"""The steps of a case, as ``kind`` of its lines."""


def append(path: Path, line: dict[str, Any]) -> None:
    """Append a line, which has ``kind`` and ``case``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as file:
        file.write(json.dumps(line) + "\n")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of a file; none if it does not exist. A line that was cut short is passed over."""
    for text in path.read_text().splitlines() if path.exists() else ():
        try:
            yield json.loads(text)
        except json.JSONDecodeError:
            continue


def latest(found: Iterable[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the last line of each step, by kind and case."""
    return {(line["kind"], line["case"]): line for line in found}
