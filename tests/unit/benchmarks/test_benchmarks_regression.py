"""The regression check: its requirements."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from benchmarks.search.regression.report import REPORT
from benchmarks.search.runs import Timeline


def lines(*, quality: float, time: float, seconds_in_all: float = 60.0) -> list[dict[str, Any]]:
    """Return the results of two cells in which the new side's programs are as fast and as late as given."""
    found: list[dict[str, Any]] = [{"kind": "plan", "base": "0" * 40, "new": "abc", "trials": 128}]
    for seed in (0, 1):
        for side, final, seconds in (("base", 1e-4, 10.0), ("new", 1e-4 / quality, 10.0 * time)):
            steps = ((1.0, 1e-3), (seconds, final))
            whole = seconds_in_all if side == "new" else 60.0
            run = Timeline(side, "w", seed, "machine", "code", whole, 128, 0, steps)
            found.append({"kind": "run"} | asdict(run))
    return found


@pytest.mark.parametrize(
    ("quality", "time", "seconds", "verdicts"),
    [
        (1.0, 1.0, 66.0, ["met", "met", "met"]),
        (0.97, 1.0, 60.0, ["**missed**", "met", "met"]),
        (1.1, 1.2, 60.0, ["met", "**missed**", "met"]),
        (1.0, 1.0, 68.0, ["met", "met", "**missed**"]),
    ],
)
def test_the_report_checks_the_requirements(quality: float, time: float, seconds: float, verdicts: list[str]) -> None:
    report = REPORT.render(lines(quality=quality, time=time, seconds_in_all=seconds))
    rows = [line for line in report.splitlines() if "at least" in line or "at most" in line]
    assert [row.strip("| ").split(" | ")[-1] for row in rows] == verdicts


def test_a_side_that_never_reaches_the_goal_is_charged_its_whole_run() -> None:
    report = REPORT.render(lines(quality=0.9, time=1.0))
    assert "60.0 (never)" in report
