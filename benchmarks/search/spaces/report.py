"""Writes docs/benchmarks/spaces.md from the kept results.

.venv/bin/python -m benchmarks.search.spaces.report [--pack]
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, kept, pack, report_parser
from benchmarks.search.comparison import Cell, complete_cells, geomean, lines_by_kind
from benchmarks.search.requirements import NEAR
from benchmarks.search.run_record import Run, load
from benchmarks.search.spaces.plan import ARMS, FOLDER, SEED, WORKLOADS, race_of
from benchmarks.search.tables import table

TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / "spaces.md"
RESULTS = kept("spaces")


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.search.spaces.report")


def main() -> None:
    if parser().parse_args().pack:
        pack(RESULTS, raw_lines())
    REPORT.write_text(text(read()))
    print(REPORT)


def raw_lines() -> Iterator[dict[str, Any]]:
    """Yield the runs and races of the last comparison. Raises SystemExit if it is not complete."""
    for workload in WORKLOADS:
        paths = [FOLDER / Run(arm, workload, SEED, "").file_name for arm in ARMS]
        if not race_of(workload).exists() or not all(path.exists() for path in paths):
            raise SystemExit(f"{workload} is not complete: run `python -m benchmarks.search.spaces` first")
        for path in paths:
            yield {"kind": "run"} | asdict(load(path))
        yield {"kind": "race", "workload": workload, "seed": SEED} | json.loads(race_of(workload).read_text())


def read(path: Path = RESULTS) -> list[Cell]:
    return complete_cells(lines_by_kind(path))


def text(cells: list[Cell]) -> str:
    run = next(iter(cells[0].curves.values())).run
    return Template(TEMPLATE.read_text()).substitute(
        trials=run.trials,
        seed=run.seed,
        machine=run.machine,
        results=RESULTS.name,
        near=f"{NEAR:.0%}",
        times=times(cells),
        qualities=qualities(cells),
        rates=rates(cells),
    )


def times(cells: list[Cell]) -> str:
    """Return the seconds to the goal by arm, and the factors against A."""
    rows = []
    for cell in cells:
        seconds = {arm: cell.seconds_to(NEAR, arm) for arm in ARMS}
        shown = ["-" if each is None else f"{each:.1f}" for each in seconds.values()]
        rows.append((cell.workload, *shown, *(f"{cell.speedup(arm, 'A', NEAR).run_charged:.1f}x" for arm in ARMS[1:])))
    means = [geomean(cell.speedup(arm, "A", NEAR).run_charged for cell in cells) for arm in ARMS[1:]]
    rows.append(("geometric mean", "", "", "", *(f"{mean:.1f}x" for mean in means)))
    return table(["workload", "A, s", "T, s", "C, s", "T against A", "C against A"], rows)


def qualities(cells: list[Cell]) -> str:
    """Return the final latencies by arm, and the qualities against A."""
    rows = []
    for cell in cells:
        latencies = [f"{cell.curves[arm].final * 1e6:.1f} µs" for arm in ARMS]
        rows.append((cell.workload, *latencies, *(f"{cell.quality(arm):.2f}x" for arm in ARMS[1:])))
    means = [geomean(cell.quality(arm) for cell in cells) for arm in ARMS[1:]]
    rows.append(("geometric mean", "", "", "", *(f"{mean:.2f}x" for mean in means)))
    return table(["workload", "A", "T", "C", "T against A", "C against A"], rows)


def rates(cells: list[Cell]) -> str:
    """Return the trials a second by arm."""
    runs = [(cell.workload, [cell.curves[arm].run for arm in ARMS]) for cell in cells]
    rows = [(workload, *(f"{run.trials / run.seconds:.1f}" for run in each)) for workload, each in runs]
    return table(["workload", "A", "T", "C"], rows)


if __name__ == "__main__":
    main()
