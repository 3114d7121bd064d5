"""The report on one job."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.report import Report, table
from benchmarks.requirement import NO_RESULT, Requirement, missed, verdicts

_HEADS = ("seed", "Loopwright", "stock MetaSchedule", "factor", "speedup over the baseline", "the same job again")
_SMALL_HEADS = ("function", "trials", "seconds", "trials a second", "processor time a trial, ms", "certified, µs")


def values(lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    (figures,) = lines
    race = figures["race"]
    least, greatest = race["spread"]
    raced = (
        f"{race['loopwright_us']:.1f} µs",
        f"{race['stock_us']:.1f} µs",
        f"{race['stock_over_loopwright']:.2f} ({least:.2f} to {greatest:.2f})",
    )
    small = figures.get("small", [])
    required = [_requirement(small)]
    return {
        "missed": missed(required),
        "requirements": verdicts(required),
        "small": table(_SMALL_HEADS, map(_small_row, small), right=True),
        "trials": figures["trials"],
        "size": figures["size"],
        "target": json.dumps(figures["target"]),
        "rounds": table(_HEADS, map(_row, figures["rounds"])),
        "raced": table(["Loopwright", "stock MetaSchedule", "stock / Loopwright"], [raced]),
    }


def _requirement(small: Sequence[dict[str, Any]]) -> Requirement:
    rate = statistics.median(map(_rate, small)) if small else None
    shown = NO_RESULT if rate is None else f"{rate:.1f}/s"
    return Requirement("trials a second, small functions, median", 6, 10, rate, shown, unit="/s")


def _rate(job: dict[str, Any]) -> float:
    return float(job["trials"] / job["seconds"])


def _small_row(job: dict[str, Any]) -> tuple[object, ...]:
    milliseconds = 1e3 * job["processor_seconds"] / job["trials"]
    seconds = f"{job['seconds']:.1f}"
    return (
        job["function"],
        job["trials"],
        seconds,
        f"{_rate(job):.1f}",
        f"{milliseconds:.0f}",
        f"{job['best_us']:.1f}",
    )


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
