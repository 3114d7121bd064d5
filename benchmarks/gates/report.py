"""The report on false alarms of checks."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

REQUIRED = 0.01
"""Share of runs that may find a regression where there is none."""


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (found,) = lines
    runs = found["runs"]
    alarms = sum(run["verdict"] == "regression" for run in runs)
    names = list(dict.fromkeys(run["workload"] for run in runs))
    rows = [_row(name, [run for run in runs if run["workload"] == name]) for name in names]
    reached = "reached" if alarms / len(runs) < REQUIRED else "**missed**"
    return {
        "bound": f"{found['bound'] - 1:.0%}",
        "noise": "disturbed by bursts of work on all cores" if found["noise"] else "otherwise idle",
        "verdict": (
            f"False alarms: {alarms} of {len(runs)} runs ({alarms / len(runs):.2%}); required: less than "
            f"{REQUIRED:.0%}, {reached}"
        ),
        "table": table(_HEADS, [*rows, _row("all", runs)]),
    }


_HEADS = (
    "workload", "runs", "false alarms", "unclear", "rounds, median (maximum)", "seconds per run, median",
    "ratio, 5th to 95th percentile",
)  # fmt: skip


def _row(name: str, runs: list[dict[str, Any]]) -> list[str]:
    verdicts = Counter(run["verdict"] for run in runs)
    rounds = [run["rounds"] for run in runs]
    ratios = sorted(run["slowdown"][0] for run in runs)
    low, high = (ratios[round(share * (len(ratios) - 1))] for share in (0.05, 0.95))
    return [
        name,
        str(len(runs)),
        str(verdicts["regression"]),
        str(verdicts["unclear"]),
        f"{statistics.median(rounds):g} ({max(rounds)})",
        f"{statistics.median(run['seconds'] for run in runs):.1f}",
        f"{low:.3f} to {high:.3f}",
    ]


REPORT = Report("gates", Path(__file__).with_name("report.md.in"), values)
