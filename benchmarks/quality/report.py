"""Writes docs/benchmarks/quality.md and its plots from the kept results.

.venv/bin/python -m benchmarks.quality.report [--pack]
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.quality import cells, plots, tables
from benchmarks.quality.outcome import CASE, Outcome, outcomes
from benchmarks.quality.requirements import missed, requirements, rows
from benchmarks.quality.settings import FOLDER
from benchmarks.results import DOCS, kept, pack, report_parser, unpack
from benchmarks.search.tables import table

NAME = "quality"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"
PLOTS = DOCS / NAME


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.quality.report")


def main() -> None:
    if parser().parse_args().pack:
        pack(kept(NAME), raw(FOLDER / "cells.jsonl"))
    found = outcomes(unpack(kept(NAME)))
    REPORT.write_text(text(found, plots.draw(found, PLOTS)))
    print(REPORT)


def raw(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a line that describes each case that was timed, and the last line of each of its steps.

    Raises:
        SystemExit: No case was timed.
    """
    from benchmarks.quality.cases import CASES  # needs PyTorch; the report does not

    found = cells.latest(cells.lines(path))
    timed = [case for case in CASES.values() if (cells.TIMED, case.name) in found]
    if not timed:
        raise SystemExit(f"{path} has no timed case: run `python -m benchmarks.quality` first")
    for case in timed:
        yield {
            "kind": CASE,
            "case": case.name,
            "family": case.family,
            "group": case.kind,
            "precision": case.precision,
            "tolerance": case.tolerance,
        }
        for kind in (cells.TUNED, cells.STOCK, cells.TIMED):
            if (kind, case.name) in found:
                yield found[kind, case.name]


def text(found: Sequence[Outcome], plot_names: Sequence[str]) -> str:
    """Return the report of some outcomes, with links to the plots that were drawn."""
    required = list(requirements(found))
    by_kind = {kind: [outcome for outcome in found if outcome.kind == kind] for kind in _KINDS}
    tolerances = dict(sorted({outcome.precision: outcome.tolerance for outcome in found}.items()))
    return Template(TEMPLATE.read_text()).substitute(
        conditions=tables.conditions(found),
        missed=missed(required),
        requirements=table(["requirement", "must", "aim", "measured", "verdict"], rows(required)),
        tolerances=", ".join(f"{value:g} for {precision}" for precision, value in tolerances.items()),
        operators=tables.latencies(by_kind["operator"]),
        low=tables.latencies(by_kind["low precision"]),
        models=tables.latencies(by_kind["model"]),
        tuning=tables.tuning(found),
        stopping=tables.stopping(found),
        stock=tables.stock(found),
        settings=tables.settings(found),
        seconds=tables.seconds(found),
        memory=tables.memory(found),
        failures=tables.failures(found),
        plots="\n".join(f"![{name.removesuffix('.png')}]({PLOTS.name}/{name})" for name in plot_names),
        results=kept(NAME).name,
    )


_KINDS = ("operator", "low precision", "model")

if __name__ == "__main__":
    main()
