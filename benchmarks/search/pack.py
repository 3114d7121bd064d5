"""Packs the complete cells of the last comparison into the results file that the report is drawn from."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.results import pack
from benchmarks.search.arms import ARMS, SEEDS, TRIALS, plan
from benchmarks.search.comparison import RESULTS, Plan
from benchmarks.search.objectives import RESULTS as OBJECTIVES
from benchmarks.search.race import path_of
from benchmarks.search.rejects import RESULTS as REJECTS
from benchmarks.search.run_record import RUNS, Run, load
from benchmarks.search.workloads import WORKLOADS


def main() -> None:
    """Replace the kept results by the raw ones.

    Raises:
        SystemExit: No cell is complete, or an offline evaluation was not run.
    """
    for path, module in ((OBJECTIVES, "objectives"), (REJECTS, "rejects")):
        if not path.exists():
            raise SystemExit(f"{path} does not exist: run `python -m benchmarks.search.{module}` first")
    cells = [cell for cell in plan(list(WORKLOADS)) if path_of(cell).exists()]
    if not cells:
        raise SystemExit(f"no cell in {RUNS.parent} is complete: run `python -m benchmarks.search` first")
    what = Plan(TRIALS, list(SEEDS), list(WORKLOADS), dict(ARMS))

    def lines() -> Iterator[dict[str, Any]]:
        yield {"kind": "plan"} | asdict(what)
        for cell in cells:
            for arm in cell.arms:
                yield {"kind": "run"} | asdict(load(RUNS / Run(arm, cell.workload, cell.seed, "").file_name))
            yield {"kind": "race", "workload": cell.workload, "seed": cell.seed} | _read(path_of(cell))
        yield {"kind": "objectives"} | _read(OBJECTIVES)
        yield {"kind": "rejects"} | _read(REJECTS)

    pack(RESULTS, lines())


def _read(path: Path) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(path.read_text())
    return fields
