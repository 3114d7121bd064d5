"""Writes docs/benchmarks/regression.md from the kept results.

    .venv/bin/python -m benchmarks.search.regression.report [--pack]

`--pack` first replaces the kept results by those of the last complete run.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, RAW, kept, pack, report_parser, unpack
from benchmarks.search.paired import NEAR, Timeline, interval
from benchmarks.search.run_record import load
from benchmarks.search.tables import table

TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / "regression.md"
RESULTS = kept("regression")
MIN_QUALITY = 0.98
MAX_TIME = 1.05
"""Requirements on the geometric means: less is a regression."""


@dataclass(frozen=True, slots=True)
class Cell:
    base: Timeline
    new: Timeline

    @property
    def goal(self) -> float:
        """Latency at `NEAR` of the base's final quality."""
        return self.base.final / NEAR

    @property
    def quality(self) -> float:
        """The base's final latency over the new one's: above 1, the new code finds faster programs."""
        return self.base.final / self.new.final

    @property
    def time(self) -> float:
        """The new time to the goal over the base's: above 1, the new code needs longer."""
        return self.new.seconds_to(self.goal) / self.base.seconds_to(self.goal)


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.search.regression.report")


def main() -> None:
    if parser().parse_args().pack:
        pack(RESULTS, raw())
    REPORT.write_text(text(list(unpack(RESULTS))))
    print(REPORT)


def raw() -> Iterator[dict[str, Any]]:
    """Yield the plan and a line for each run. Raises SystemExit if there is no complete run."""
    last = RAW / "regression" / "last.json"
    if not last.exists():
        raise SystemExit("nothing is complete: run `python -m benchmarks.search.regression` first")
    plan = json.loads(last.read_text())
    folder = last.with_name(plan.pop("folder"))
    yield {"kind": "plan"} | plan
    for race in sorted((folder / "races").iterdir()):
        latencies = json.loads(race.read_text())["seconds"]
        workload, seed = race.stem.rsplit(".", 1)
        for side in ("base", "new"):
            record = load(folder / f"{workload}.{side}.{seed}.json")
            yield {"kind": "run"} | Timeline.of(record, latencies).to_json()


def text(lines: Sequence[dict[str, Any]]) -> str:
    [plan] = [line for line in lines if line["kind"] == "plan"]
    runs = [
        Timeline.from_json({k: v for k, v in line.items() if k != "kind"}) for line in lines if line["kind"] == "run"
    ]
    sides = {side: {(run.workload, run.seed): run for run in runs if run.arm == side} for side in ("base", "new")}
    cells = [Cell(base, sides["new"][key]) for key, base in sides["base"].items()]
    quality, time = interval([cell.quality for cell in cells]), interval([cell.time for cell in cells])
    return Template(TEMPLATE.read_text()).substitute(
        base=plan["base"][:12],
        new=plan["new"],
        trials=plan["trials"],
        near=f"{NEAR:.0%}",
        machines=", ".join(sorted({run.machine for run in runs})),
        count=len(cells),
        results=RESULTS.name,
        summary=table(
            ["", "required", "geometric mean (95 % interval)", "verdict"],
            [
                (
                    "final quality, new against base",
                    f"at least {MIN_QUALITY}",
                    quality,
                    verdict(quality.mean >= MIN_QUALITY),
                ),
                (
                    f"time to {NEAR:.0%} of the base's final quality",
                    f"at most {MAX_TIME}",
                    time,
                    verdict(time.mean <= MAX_TIME),
                ),
            ],
        ),
        cells=table(
            ["workload", "seed", "base, µs", "new, µs", "quality", "base, s", "new, s", "time"],
            [_row(cell) for cell in cells],
        ),
    )


def verdict(is_met: bool) -> str:
    return "met" if is_met else "**missed**"


def _row(cell: Cell) -> tuple[object, ...]:
    latencies = (f"{cell.base.final * 1e6:.1f}", f"{cell.new.final * 1e6:.1f}")
    seconds = [
        f"{run.seconds_to(cell.goal):.1f}" + ("" if run.reaches(cell.goal) else " (never)")
        for run in (cell.base, cell.new)
    ]
    return (cell.base.workload, cell.base.seed, *latencies, f"{cell.quality:.2f}", *seconds, f"{cell.time:.2f}")


if __name__ == "__main__":
    main()
