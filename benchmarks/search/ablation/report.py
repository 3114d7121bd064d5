"""Writes docs/benchmarks/ablation.md from the kept results.

    .venv/bin/python -m benchmarks.search.ablation.report [--pack]

`--pack` first replaces the kept results by those of the last run.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, kept, pack, report_parser, unpack
from benchmarks.search.paired import NEAR, Interval, Timeline, geomean, interval
from benchmarks.search.tables import table

TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / "ablation.md"
RESULTS = kept("ablation")


@dataclass(frozen=True, slots=True)
class Cell:
    """The timelines of one cell by arm; ``references`` are those of the unchanged config."""

    workload: str
    seed: int
    warm: bool
    references: Mapping[str, Timeline]
    arms: Mapping[str, Timeline]

    def ratios(self) -> dict[str, tuple[float, float]]:
        """Return each arm's ratios to the references by mechanism, and each reference's ratios to the other references.

        A pair is quality (above 1: better), and time to `NEAR` of the references' median quality (above 1: slower).
        """
        goal = statistics.median(reference.final for reference in self.references.values()) / NEAR

        def compare(arm: Timeline, references: Sequence[Timeline]) -> tuple[float, float]:
            quality = geomean(reference.final for reference in references) / arm.final
            return quality, arm.seconds_to(goal) / geomean(reference.seconds_to(goal) for reference in references)

        everything = list(self.references.values())
        repeated = {
            f"({name})": compare(reference, [other for other in everything if other is not reference])
            for name, reference in self.references.items()
        }
        return repeated | {mechanism: compare(arm, everything) for mechanism, arm in self.arms.items()}


@dataclass(frozen=True, slots=True)
class Effect:
    """What the search is without a mechanism, over cells."""

    quality: Interval
    time: Interval

    @classmethod
    def over(cls, ratios: Sequence[tuple[float, float]]) -> Effect:
        return cls(interval([quality for quality, _ in ratios]), interval([time for _, time in ratios]))

    @property
    def verdict(self) -> str:
        """What the mechanism does, as far as the intervals do not contain 1."""
        findings = []
        if self.quality.high < 1:
            findings.append("improves quality")
        if self.quality.low > 1:
            findings.append("**costs quality**")
        if self.time.low > 1:
            findings.append("saves time")
        if self.time.high < 1:
            findings.append("**costs time**")
        return ", ".join(findings) or "not shown"


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.search.ablation.report")


def main() -> None:
    if parser().parse_args().pack:
        pack(RESULTS, raw())
    lines = list(unpack(RESULTS))
    REPORT.write_text(text(lines))
    print(REPORT)


def raw() -> Iterator[dict[str, Any]]:
    """Yield the plan and a line for each run of a complete cell. Raises SystemExit if no cell is complete."""
    # The harness needs all that the arms need; the report does not.
    from benchmarks.search.ablation.plan import REFERENCES, TRIALS, cells
    from benchmarks.search.cells import load_all
    from benchmarks.search.ours import ABLATIONS, WARM_ABLATIONS
    from benchmarks.search.run_record import Run

    complete = [cell for cell in cells(warm=True) if cell.race.exists()]
    earlier = [line for line in kept_runs() if key(line) not in {(c.workload, c.seed, c.warm) for c in complete}]
    if not complete and not earlier:
        raise SystemExit("no cell is complete: run `python -m benchmarks.search.ablation` first")
    descriptions = {name: variant.description for name, variant in (ABLATIONS | WARM_ABLATIONS).items()}
    yield {"kind": "plan", "trials": TRIALS, "references": list(REFERENCES), "mechanisms": descriptions}
    for cell in complete:
        latencies = json.loads(cell.race.read_text())["seconds"]
        runs = [Run(arm, cell.workload, cell.seed, "") for arm in cell.variants]
        for record in load_all(runs, cell.folder) or []:
            yield {"kind": "run", "warm": cell.warm, **Timeline.of(record, latencies).to_json()}
    yield from earlier


def kept_runs() -> list[dict[str, Any]]:
    """Return the kept lines of runs with the code as it is: their cells need not run again, on whatever machine."""
    from benchmarks.search.run_record import this_code

    lines = unpack(RESULTS) if RESULTS.exists() else iter(())
    return [line for line in lines if line["kind"] == "run" and line["code"] == this_code()]


def key(line: dict[str, Any]) -> tuple[str, int, bool]:
    """Return the cell of a run's line: workload, seed, and whether it is warm."""
    return line["workload"], line["seed"], line["warm"]


def read(lines: Sequence[dict[str, Any]]) -> tuple[dict[str, Any], list[Cell]]:
    """Return the plan and the cells."""
    [plan] = [line for line in lines if line["kind"] == "plan"]
    groups: dict[tuple[str, int, bool], list[Timeline]] = {}
    for line in lines:
        if line["kind"] == "run":
            fields = {name: value for name, value in line.items() if name not in ("kind", "warm")}
            groups.setdefault(key(line), []).append(Timeline.from_json(fields))
    cells = [
        Cell(
            *group,
            references={one.arm: one for one in timelines if one.arm in plan["references"]},
            arms={one.arm: one for one in timelines if one.arm not in plan["references"]},
        )
        for group, timelines in groups.items()
    ]
    return plan, cells


def text(lines: Sequence[dict[str, Any]]) -> str:
    plan, cells = read(lines)
    cold, warm = ([cell for cell in cells if cell.warm is is_warm] for is_warm in (False, True))
    timelines = [timeline for cell in cells for timeline in (*cell.references.values(), *cell.arms.values())]
    return Template(TEMPLATE.read_text()).substitute(
        trials=plan["trials"],
        references=len(plan["references"]),
        near=f"{NEAR:.0%}",
        cells=len(cells),
        machines=", ".join(sorted({f"{one.machine} (code {one.code})" for one in timelines})),
        results=RESULTS.name,
        cold=effects(plan, cold),
        warm=effects(plan, warm) if warm else "Not measured.",
        workloads=by_workload(plan, cells),
        runs=len(timelines),
    )


def effects(plan: dict[str, Any], cells: Sequence[Cell]) -> str:
    """Return the table of mechanisms, with the repeated references first."""
    if len(cells) < 2:
        return "Two complete cells are needed for an interval."
    ratios = [cell.ratios() for cell in cells]
    rows = []
    for name, what in descriptions(plan).items():
        if here := [by_name[name] for by_name in ratios if name in by_name]:
            effect = Effect.over(here)
            verdict = "noise" if name.startswith("(") else effect.verdict
            rows.append((name, what, effect.quality, effect.time, verdict))
    return table(["mechanism", "what was taken out", "quality without it", "time without it", "the mechanism"], rows)


def by_workload(plan: dict[str, Any], cells: Sequence[Cell]) -> str:
    """Return the geometric means over the seeds of each workload: quality / time."""
    workloads = list(dict.fromkeys(cell.workload for cell in cells))
    ratios = [(cell.workload, cell.ratios()) for cell in cells]
    rows = []
    for name in descriptions(plan):
        columns = []
        for workload in workloads:
            here = [by_name[name] for of, by_name in ratios if of == workload and name in by_name]
            columns.append(" / ".join(f"{geomean(values):.2f}" for values in zip(*here, strict=True)) or "-")
        if set(columns) != {"-"}:
            rows.append((name, *columns))
    return table(["mechanism", *workloads], rows)


def descriptions(plan: dict[str, Any]) -> dict[str, str]:
    """Return what each row of a table took out."""
    repeated = {f"({name})": "nothing; compared with the other references" for name in plan["references"]}
    mechanisms: dict[str, str] = plan["mechanisms"]
    return repeated | mechanisms


if __name__ == "__main__":
    main()
