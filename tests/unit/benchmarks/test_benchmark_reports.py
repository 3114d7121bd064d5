"""The benchmark reports in the repository are what the kept results say."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import PACKAGES, report_of, reporting
from benchmarks.report import Report, pack, unpack
from benchmarks.runner import Raw
from benchmarks.search import report as search
from benchmarks.search.report import Speedup
from benchmarks.search.runs import Cell, Incumbent, Run, cells, name_of, packed

REPORTS = [name for name in PACKAGES if name != "gpu" and report_of(name).results.exists()]


@pytest.mark.parametrize("name", REPORTS)
def test_a_report_and_its_plots_follow_from_its_kept_results(name: str, tmp_path: Path) -> None:
    report = report_of(name)
    lines = list(unpack(report.results))
    assert report.render(lines) == report.page.read_text()
    if name == "search":  # drawing them takes half a minute
        drawn = {f"{workload}.png" for workload in search.Comparison.of(lines).workloads}
    else:
        report.draw(lines, tmp_path)
        drawn = {path.name for path in tmp_path.iterdir()}
    assert drawn == ({path.name for path in report.plots.iterdir()} if report.plots.exists() else set())


def test_packed_results_read_back_unchanged(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = [{"kind": "run", "seconds": 0.1, "trace_json": "[]"}, {"kind": "race", "unit": "µs"}]
    path = tmp_path / "new" / "some.jsonl.xz"
    pack(path, lines)
    assert list(unpack(path)) == lines


def test_what_packs_may_name_other_raw_results_and_runs_nothing(tmp_path: Path) -> None:
    raw = tmp_path / "raw.jsonl"
    assert reporting("nets").parse_args(["--output", str(raw), "--pack"]).output == raw
    for options in (["--pack", "--only", "resnet-50"], ["--pack", "--report"]):
        with pytest.raises(SystemExit):
            reporting("nets").parse_args(options)


def test_packing_without_a_run_says_what_to_do() -> None:
    with pytest.raises(SystemExit, match="run the benchmark first"):
        replace(report_of("main-job"), name="no-such-report").write(raw=[])


def test_the_rate_of_small_functions_counts_once_they_were_tuned() -> None:
    report = report_of("main-job")
    [line] = unpack(report.results)
    assert "Not measured: trials a second, small functions, median (no result)." in report.render(
        [line | {"small": []}]
    )
    job = {"function": "SFM-1", "trials": 128, "processor_seconds": 25.6, "best_us": 31.25}
    small = [job | {"seconds": seconds} for seconds in (64.0, 16.0, 10.0)]
    page = report.render([line | {"small": small}])
    assert "| trials a second, small functions, median | 6/s | 10/s | 8.0/s | must reached |" in page
    assert "| SFM-1 | 128 | 64.0 | 2.0 | 200 | 31.2 |" in page


def test_the_last_raw_line_counts_and_a_torn_line_does_not(tmp_path: Path) -> None:
    raw = Raw(tmp_path / "some" / "raw.jsonl")
    assert raw.lines() == []
    raw.append({"plan": 1})
    for seconds in (1.0, 2.0):
        raw.append({"kind": "tuned", "case": "softmax", "seconds": seconds})
    with raw.path.open("a") as file:
        file.write('{"kind": "tuned", "ca')
    assert raw.latest("kind", "case") == {("tuned", "softmax"): {"kind": "tuned", "case": "softmax", "seconds": 2.0}}
    raw.replace({"plan": 2})
    assert raw.lines() == [{"plan": 2}]


def _run(arm: str, *steps: tuple[float, str], seconds: float) -> dict[str, Any]:
    incumbents = [Incumbent(at, number, 1.0, trace) for number, (at, trace) in enumerate(steps, 1)]
    run = Run(arm, "MM", 0, "some machine", seconds=seconds, trials=8, incumbents=incumbents, code="abc")
    return {"kind": "run", "key": "now"} | asdict(run)


@pytest.fixture
def lines() -> list[dict[str, Any]]:
    """A takes 100 s to its final 10 µs. C has 8 µs after 5 s of 20 s; R ends at 40 µs after 50 s."""
    latencies = {"slow": 40e-6, "good": 10e-6, "better": 8e-6}
    seconds = {name_of(trace): latency for trace, latency in latencies.items()}
    plan = {"trials": 8, "seeds": [0], "workloads": ["MM"], "arms": {"A": "stock", "C": "cold", "R": "random"}}
    return [
        {"kind": "plan", "key": "now", **plan},
        _run("A", (10.0, "slow"), (100.0, "good"), seconds=120.0),
        _run("C", (1.0, "slow"), (5.0, "better"), seconds=20.0),
        _run("R", (0.5, "wrong results"), (2.0, "slow"), seconds=50.0),
        {"kind": "race", "key": "now", "workload": "MM", "seed": 0, "seconds": seconds, "samples": {}},
    ]


@pytest.fixture
def cell(lines: list[dict[str, Any]]) -> Cell:
    (cell,) = cells(lines)
    return cell


def test_packed_runs_say_the_same_and_only_those_of_the_last_plan(lines: list[dict[str, Any]], cell: Cell) -> None:
    earlier = [line | {"key": "before", "seed": 1} for line in lines]
    begun = [_run("A", (1.0, "slow"), seconds=2.0) | {"seed": 2}]
    assert cells(list(packed([*earlier, *lines, *begun]))) == [cell]
    assert list(packed([*lines[:-1]])) == []


def test_quality_is_the_latency_of_stock_over_that_of_the_arm(cell: Cell) -> None:
    assert cell.quality("C") == pytest.approx(1.25)
    assert cell.quality("R") == pytest.approx(0.25)


def test_speedup_is_the_ratio_of_the_times_to_the_goal(cell: Cell) -> None:
    speedup = Speedup.of(cell, "C", "A", 0.95)
    assert (speedup.run_charged, speedup.strict, speedup.missed) == (20.0, 20.0, False)


def test_a_run_that_missed_the_goal_is_charged_its_whole_time_or_strictly_the_time_of_the_other(cell: Cell) -> None:
    speedup = Speedup.of(cell, "R", "A", 0.95)
    assert (speedup.run_charged, speedup.strict, speedup.missed) == (2.0, 1.0, True)


def test_the_page_of_a_run_on_another_machine_names_it() -> None:
    report: Report = report_of("main-job")
    (figures,) = unpack(report.results)
    noted = {"cpu": "Some CPU", "threads": 3, "date": "2030-01-31", "load": 0.25}
    assert report.render([figures | {"conditions": noted}])
    leaderboard = report_of("leaderboard")
    (figures,) = unpack(leaderboard.results)
    page = leaderboard.render([{name: figures[name] for name in figures if name != "machine"} | {"conditions": noted}])
    assert "Some CPU, 3 threads, 2030-01-31" in page


def test_the_report_on_answers_without_trials_counts_the_unscheduled_program_and_each_flip() -> None:
    noted = {"cpu": "Some CPU", "threads": 2, "date": "2030-01-31", "load": 0.0}
    figures: list[dict[str, Any]] = [
        {"family": "softmax", "function": "a", "seconds": {"unscheduled": 8.0, "first": 4.0, "few": 2.0, "best": 2.0}},
        {"family": "softmax", "function": "b", "seconds": {"unscheduled": 1.0, "first": 9.0, "few": 2.0, "best": 1.0}},
        {"family": "product", "function": "c", "seconds": {"unscheduled": 8.0, "first": 2.0, "few": 2.0, "best": 2.0}},
    ]
    figures[0] |= {"flipped": True, "seconds": {**figures[0]["seconds"], "again": 1.6}}
    figures[2] |= {"flipped": False, "seconds": {**figures[2]["seconds"], "again": 2.1}}
    steps = {"export": 1.0, "lower": 0.5, "predict": 9.0, "build": 2.0, "lower again": 0.4, "build again": 0.5}
    answer = {"kind": "answer", "model": "BERT", "functions": 3, "predicted": 2, **steps}
    lines = [
        {"kind": "plan", "trials": 64, "conditions": noted},
        *({"kind": "function", **each} for each in figures),
        answer,
        {"kind": "share", "pack": "starter", "untuned": 0.9, "certified": 0.75, "kept": 0.5},
    ]
    page = report_of("prior").render(lines)
    assert "| 0 trials, shapes held out, geometric mean | 0.85 | 0.95 | 0.79 | **missed** |" in page
    assert "| 0 trials, the family with the least geometric mean | 0.7 | 0.85 | 0.71 | must reached |" in page
    assert "| 8 trials, geometric mean | 0.95 | 0.98 | 1.00 | aim reached |" in page
    assert "| ResNet-18's time that the starter pack answers | 0.7 | 0.95 | 0.75 | must reached |" in page
    assert "| instant answer, BERT, nothing known | 15 s | 3 s | 12.5 s | must reached |" in page
    assert "| instant answer, BERT, all known | 1 s | 0.3 s | 0.9 s | must reached |" in page
    assert "instant answer, ResNet-18, all known (not run)" in page
    assert "2 functions were searched twice" in page
    assert "1 of them got different programs" in page
    assert "takes 25.0% longer in the median" in page
