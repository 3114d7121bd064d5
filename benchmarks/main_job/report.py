"""Writes docs/benchmarks/main-job.md from the kept results.

.venv/bin/python -m benchmarks.main_job.report [--pack]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from string import Template
from typing import Any

from benchmarks.results import DOCS, figures, kept, report_parser

NAME = "main-job"
TEMPLATE = Path(__file__).with_name("report.md.in")
REPORT = DOCS / f"{NAME}.md"


def parser() -> argparse.ArgumentParser:
    return report_parser("python -m benchmarks.main_job.report")


def main() -> None:
    options = parser().parse_args()
    REPORT.write_text(text(figures(NAME, repack=options.pack)))
    print(REPORT)


def text(figures: dict[str, Any]) -> str:
    race = figures["race"]
    return Template(TEMPLATE.read_text()).substitute(
        trials=figures["trials"],
        size=figures["size"],
        target=json.dumps(figures["target"]),
        rounds="\n".join(
            f"| {found['seed']} | {found['loopwright']['seconds']:.1f} s | {found['stock']['seconds']:.1f} s "
            f"| {found['stock']['seconds'] / found['loopwright']['seconds']:.1f}x "
            f"| {found['loopwright']['baseline_us'] / found['loopwright']['best_us']:.0f}x "
            f"| {found['loopwright']['again_seconds']:.2f} s |"
            for found in figures["rounds"]
        ),
        loopwright=f"{race['loopwright_us']:.1f}",
        stock=f"{race['stock_us']:.1f}",
        ratio=f"{race['stock_over_loopwright']:.2f}",
        least=f"{race['spread'][0]:.2f}",
        greatest=f"{race['spread'][1]:.2f}",
        results=kept(NAME).name,
    )


if __name__ == "__main__":
    main()
