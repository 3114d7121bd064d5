"""The regression check: its requirements, and how each version of the code is asked for a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.search.ours import Request
from benchmarks.search.paired import Timeline
from benchmarks.search.regression.report import text
from benchmarks.search.regression.sides import Side
from benchmarks.search.run_record import ROOT
from tuner.types import DeviceClass

DEVICE_CLASS = DeviceClass('{"kind": "llvm"}', "model", ("avx2",), 2, 2, "runtime")


def lines(*, quality: float, time: float) -> list[dict[str, Any]]:
    """Return the results of two cells in which the new side's programs are as fast and as late as given."""
    found: list[dict[str, Any]] = [{"kind": "plan", "base": "0" * 40, "new": "abc", "trials": 128}]
    for seed in (0, 1):
        for side, final, seconds in (("base", 1e-4, 10.0), ("new", 1e-4 / quality, 10.0 * time)):
            steps = ((1.0, 1e-3), (seconds, final))
            run = Timeline(side, "w", seed, "machine", "code", 60.0, 128, 0, steps)
            found.append({"kind": "run"} | run.to_json())
    return found


@pytest.mark.parametrize(
    ("quality", "time", "verdicts"),
    [(1.0, 1.0, ["met", "met"]), (0.97, 1.0, ["**missed**", "met"]), (1.1, 1.2, ["met", "**missed**"])],
)
def test_the_report_checks_the_requirements(quality: float, time: float, verdicts: list[str]) -> None:
    report = text(lines(quality=quality, time=time))
    rows = [line for line in report.splitlines() if "at least" in line or "at most" in line]
    assert [row.strip("| ").split(" | ")[-1] for row in rows] == verdicts


def test_a_side_that_never_reaches_the_goal_is_charged_its_whole_run() -> None:
    report = text(lines(quality=0.9, time=1.0))
    assert "60.0 (never)" in report


def side(root: Path) -> Side:
    return Side("base", root, DEVICE_CLASS, "address", {"b": 2}, "measurer", {})


def request() -> Request:
    return Request("base", "C", "w", 0, "m", 2, "folder", DEVICE_CLASS, "address", {"b": 2}, "measurer")


def test_this_version_is_asked_with_a_file(tmp_path: Path) -> None:
    [path] = side(ROOT)._arguments(request(), tmp_path)
    assert Request.read(Path(path)) == request()


def test_an_older_version_is_asked_with_eleven_words(tmp_path: Path) -> None:
    module = tmp_path / "benchmarks" / "search" / "ours.py"
    module.parent.mkdir(parents=True)
    module.write_text("arm, workload, seed, machine, trials, *_ = sys.argv[1:]\n")
    words = side(tmp_path)._arguments(request(), tmp_path)
    assert len(words) == 11
    assert words[:6] == ["base", "w", "0", "m", "2", "folder"]
    assert json.loads(words[6])["model"] == "model"
