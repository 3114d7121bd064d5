"""Writes reports: packed results, the values of a benchmark's report, and its text with these values.

``docs/benchmarks/NAME.jsonl.xz`` has the results of a benchmark, one JSON object a line. ``benchmarks/…/report.md.in``
is the text of its report. The module ``report`` beside it makes the values of the text from these lines alone, so that
everybody who has the repository can write the report again.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.code import ROOT

RAW = ROOT / "benchmarks" / "results"
DOCS = ROOT / "docs" / "benchmarks"


def pack(path: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object a line, compressed."""
    text = "".join(json.dumps(line) + "\n" for line in lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))


def unpack(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects that `pack` wrote."""
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def no_plots(lines: Sequence[dict[str, Any]], folder: Path) -> None:
    """Draw nothing."""


@dataclass(frozen=True)
class Report:
    """The report of a benchmark.

    Attributes:
        name: Of the benchmark, of its packed results and of its page.
        text: The file ``report.md.in``.
        values: Returns the values of the text's names, from the packed lines.
        draw: Draws plots of the packed lines into a folder.
        packed: Returns the lines to pack, from the raw ones; all of them by default.
        options: Options that the benchmark needs to run again.
    """

    name: str
    text: Path
    values: Callable[[Sequence[dict[str, Any]]], Mapping[str, object]]
    draw: Callable[[Sequence[dict[str, Any]], Path], None] = no_plots
    packed: Callable[[Sequence[dict[str, Any]]], Iterable[dict[str, Any]]] = iter
    options: str = ""

    @property
    def results(self) -> Path:
        return DOCS / f"{self.name}.jsonl.xz"

    @property
    def page(self) -> Path:
        return DOCS / f"{self.name}.md"

    @property
    def plots(self) -> Path:
        return DOCS / self.name

    def render(self, lines: Sequence[dict[str, Any]]) -> str:
        """Return the page. Every text may use ``$again``, ``$results``, and ``$machine`` and ``$load`` of a record."""
        command = f".venv/bin/python -m benchmarks {self.name}"
        again = (
            f"To measure again: `{command}{self.options}`, then\n`{command} --pack`. "
            f"The raw figures are in [{self.results.name}]({self.results.name})."
        )
        shared = {"again": again, "results": self.results.name, **_environment(lines[0])}
        return Template(self.text.read_text()).substitute(shared | dict(self.values(lines)))

    def write(self, raw: Sequence[dict[str, Any]] | None = None) -> None:
        """Write the page and its plots, from the packed results, which ``raw`` lines replace first.

        Raises:
            SystemExit: There are no raw lines.
        """
        if raw is not None:
            if not (lines := list(self.packed(raw))):
                raise SystemExit(f"there are no results of {self.name} to pack: run the benchmark first")
            pack(self.results, lines)
        lines = list(unpack(self.results))
        self.draw(lines, self.plots)
        self.page.write_text(self.render(lines))


def _environment(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the machine of a record, and its load before the run; older records have them as texts of their own."""
    if noted := record.get("conditions"):
        machine = f"{noted['cpu']}, {noted['threads']} threads, {noted['date']}"
        return {"machine": machine, "load": f"{noted['load']:.1f}"}
    load = record.get("load_before", record.get("load"))
    return {"machine": record.get("machine", ""), "load": "" if load is None else f"{load:.1f}"}


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], *, right: bool = False) -> str:
    """Return a table as Markdown; with ``right``, all columns but the first are aligned to the right."""
    rule = ["---", *["---:" if right else "---"] * (len(heads) - 1)]
    return "\n".join(f"| {' | '.join(map(str, line))} |" for line in [heads, rule, *rows])
