"""Writes docs/benchmarks/search.md and its plots from the kept results: data, then tables, then the template.

.venv/bin/python -m benchmarks.search.report [--pack]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from string import Template

from benchmarks.results import DOCS, report_parser
from benchmarks.search import plots, tables
from benchmarks.search.comparison import RESULTS, Comparison, read
from benchmarks.search.requirements import missed, requirements, rows

TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / "search.md"
PLOTS = DOCS / "search"


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.search.report")


def main() -> None:
    if parser().parse_args().pack:
        from benchmarks.search import pack  # needs all that the arms need; the report does not

        pack.main()
    results = read()
    REPORT.write_text(text(results))
    plots.draw(results, PLOTS)
    print(REPORT)


def text(results: Comparison) -> str:
    found = list(requirements(results))
    return Template(TEMPLATE.read_text()).substitute(
        trials=results.plan.trials,
        cells=len(results.cells),
        planned=len(results.plan.workloads) * len(results.plan.seeds),
        results=RESULTS.name,
        arms=tables.arms(results),
        machines=tables.machines(results),
        requirements=tables.table(["requirement", "must", "aim", "measured", "verdict"], rows(found)),
        missed=missed(found),
        small_kernel_rates=tables.small_kernel_rates(results),
        speedups=tables.speedups(results),
        seconds_by_cell=tables.seconds_by_cell(results),
        quality=tables.quality(results),
        rates=tables.rates(results),
        objective_workloads=results.objectives["workloads"],
        objectives=tables.objectives(results),
        rejects=tables.rejects(results),
        plots="\n".join(
            f"![{workload}: quality of the best so far by arm]({PLOTS.name}/{workload}.png)"
            for workload in results.workloads
        ),
    )


if __name__ == "__main__":
    main()
