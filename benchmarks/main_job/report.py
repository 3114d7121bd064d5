"""The report on one job."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table

_HEADS = ("seed", "Loopwright", "stock MetaSchedule", "factor", "speedup over the baseline", "the same job again")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    race = figures["race"]
    least, greatest = race["spread"]
    raced = (
        f"{race['loopwright_us']:.1f} µs",
        f"{race['stock_us']:.1f} µs",
        f"{race['stock_over_loopwright']:.2f} ({least:.2f} to {greatest:.2f})",
    )
    return {
        "trials": figures["trials"],
        "size": figures["size"],
        "target": json.dumps(figures["target"]),
        "rounds": table(_HEADS, map(_row, figures["rounds"])),
        "raced": table(["Loopwright", "stock MetaSchedule", "stock / Loopwright"], [raced]),
    }


def _row(found: dict[str, Any]) -> tuple[object, ...]:
    ours, stock = found["loopwright"], found["stock"]
    return (
        found["seed"],
        f"{ours['seconds']:.1f} s",
        f"{stock['seconds']:.1f} s",
        f"{stock['seconds'] / ours['seconds']:.1f}x",
        f"{ours['baseline_us'] / ours['best_us']:.0f}x",
        f"{ours['again_seconds']:.2f} s",
    )


REPORT = Report("main-job", Path(__file__).with_name("report.md.in"), values)
