"""The benchmark reports in the repository are what the kept results say."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

import benchmarks.database.report
import benchmarks.gates.report
import benchmarks.leaderboard.report
import benchmarks.load.report
import benchmarks.lookup.report
import benchmarks.main_job.report
import benchmarks.models.report
import benchmarks.quality.report
import benchmarks.scale.report
import benchmarks.search.report
import benchmarks.search.spaces.report
import benchmarks.shapes.report
import benchmarks.walls.report
from benchmarks import results
from benchmarks.quality import plots
from benchmarks.quality.outcome import outcomes
from benchmarks.search import comparison
from benchmarks.search.requirements import Requirement, missed
from benchmarks.search.run_record import Incumbent, Run, name_of


@pytest.mark.parametrize(
    "report",
    [
        benchmarks.database.report,
        benchmarks.gates.report,
        benchmarks.shapes.report,
        benchmarks.leaderboard.report,
        benchmarks.load.report,
        benchmarks.lookup.report,
        benchmarks.main_job.report,
        benchmarks.models.report,
        benchmarks.scale.report,
        benchmarks.walls.report,
    ],
)
def test_a_report_follows_from_its_kept_figures(report: Any) -> None:
    assert report.text(results.figures(report.NAME, repack=False)) == report.REPORT.read_text()


def test_the_search_report_follows_from_its_kept_results() -> None:
    assert benchmarks.search.report.text(comparison.read()) == benchmarks.search.report.REPORT.read_text()


def test_the_report_on_spaces_follows_from_its_kept_results() -> None:
    report = benchmarks.search.spaces.report
    assert report.text(report.read()) == report.REPORT.read_text()


@pytest.mark.whole
def test_the_report_on_compiled_code_follows_from_its_kept_results(tmp_path: Path) -> None:
    report = benchmarks.quality.report
    found = outcomes(results.unpack(results.kept(report.NAME)))
    names = plots.draw(found, tmp_path)
    assert report.text(found, names) == report.REPORT.read_text()
    assert {path.name for path in report.PLOTS.iterdir()} == set(names)


def test_every_plot_of_the_search_report_is_in_the_repository() -> None:
    plots = {path.stem for path in benchmarks.search.report.PLOTS.glob("*.png")}
    assert plots == set(comparison.read().workloads)


def test_packed_results_read_back_unchanged(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "run", "seconds": 0.1, "trace_json": "[]"}, {"kind": "race", "unit": "µs"}]
    path = tmp_path / "new" / "some.jsonl.xz"
    results.pack(path, lines)
    assert list(results.unpack(path)) == lines


def test_packing_without_a_run_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "RAW", tmp_path)
    with pytest.raises(SystemExit, match=r"main-job\.json does not exist: run the benchmark first"):
        results.figures("main-job", repack=True)


def _run(arm: str, *steps: tuple[float, str], seconds: float) -> dict[str, Any]:
    incumbents = [Incumbent(at, number, 1.0, trace) for number, (at, trace) in enumerate(steps, 1)]
    return {"kind": "run"} | asdict(
        Run(arm, "MM", 0, "some machine", seconds=seconds, trials=8, incumbents=incumbents, code="abc")
    )


@pytest.fixture
def cell(tmp_path: Path) -> comparison.Cell:
    """A takes 100 s to its final 10 µs. C has 8 µs after 5 s of 20 s; R ends at 40 µs after 50 s."""
    latencies = {"slow": 40e-6, "good": 10e-6, "better": 8e-6}
    lines: list[dict[str, Any]] = [
        {"kind": "plan", "trials": 8, "seeds": [0], "workloads": ["MM"], "arms": {}},
        _run("A", (10.0, "slow"), (100.0, "good"), seconds=120.0),
        _run("C", (1.0, "slow"), (5.0, "better"), seconds=20.0),
        _run("R", (2.0, "slow"), seconds=50.0),
        {
            "kind": "race",
            "workload": "MM",
            "seed": 0,
            "seconds": {name_of(trace): latency for trace, latency in latencies.items()},
            "samples": {},
        },
        {"kind": "objectives"},
        {"kind": "rejects"},
    ]
    path = tmp_path / "results.jsonl.xz"
    results.pack(path, lines)
    (cell,) = comparison.read(path).cells
    return cell


def test_quality_is_the_latency_of_stock_over_that_of_the_arm(cell: comparison.Cell) -> None:
    assert cell.quality("C") == pytest.approx(1.25)
    assert cell.quality("R") == pytest.approx(0.25)


def test_speedup_is_the_ratio_of_the_times_to_the_goal(cell: comparison.Cell) -> None:
    speedup = cell.speedup("C", "A", 0.95)
    assert (speedup.run_charged, speedup.strict, speedup.missed) == (20.0, 20.0, False)


def test_a_run_that_missed_the_goal_is_charged_its_whole_time_or_strictly_the_time_of_the_other(
    cell: comparison.Cell,
) -> None:
    speedup = cell.speedup("R", "A", 0.95)
    assert (speedup.run_charged, speedup.strict, speedup.missed) == (2.0, 1.0, True)


def test_the_report_names_each_missed_requirement() -> None:
    found = [Requirement("trials a second", 4, 10, 3.8, "/s"), Requirement("quality", 1.1, 1.3, 1.17)]
    assert missed(found) == "1 of 2 requirements was missed: trials a second (3.8/s instead of 4/s)."
    assert [one.verdict for one in found] == ["**missed**", "must reached"]
    assert missed(found[1:]) == "All 1 requirements were met."
