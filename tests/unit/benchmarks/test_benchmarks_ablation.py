"""The ablation: every change changes the config, and the report shows what the timelines say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results import pack
from benchmarks.search.ablation import report
from benchmarks.search.ablation.plan import REFERENCES, Cell, cells
from benchmarks.search.ablation.report import Effect, text
from benchmarks.search.ours import ABLATIONS, WARM_ABLATIONS, Request
from benchmarks.search.paired import Timeline, interval
from benchmarks.search.run_record import Incumbent, Run, name_of, this_code
from tuner.search.config import SearchConfig
from tuner.types import DeviceClass


def timeline(arm: str, seed: int, *, final: float, reached: float, workload: str = "w") -> Timeline:
    """Return a run that starts at 1 ms and ends with ``final`` after ``reached`` seconds, of ten in all."""
    return Timeline(arm, workload, seed, "machine", "code", 10.0, 64, 0, ((1.0, 1e-3), (reached, final)))


def lines(*, quality: float, time: float) -> Iterator[dict[str, Any]]:
    """Yield an ablation of one mechanism, without which a search is as much better and slower, on three seeds."""
    yield {"kind": "plan", "trials": 64, "references": list(REFERENCES), "mechanisms": {"beta": "beta is 0"}}
    for seed in range(3):
        for number, reference in enumerate(REFERENCES):
            noisy = 1e-4 * (1 + 0.01 * ((number + seed) % 3 - 1))
            yield {"kind": "run", "warm": False} | timeline(reference, seed, final=noisy, reached=2.0).to_json()
        arm = timeline("beta", seed, final=1e-4 / quality, reached=2.0 * time)
        yield {"kind": "run", "warm": False} | arm.to_json()


def row(report: str, mechanism: str) -> list[str]:
    [line] = [line for line in report.splitlines() if line.startswith(f"| {mechanism} |") and "what" not in line][:1]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("mechanism", ABLATIONS)
def test_every_ablation_changes_the_config(mechanism: str) -> None:
    assert ABLATIONS[mechanism].change(SearchConfig()) != SearchConfig()


def test_a_cell_runs_every_ablation_and_all_references() -> None:
    cold, warm = Cell("w", 0, 64), Cell("w", 0, 64, warm=True)
    assert set(cold.variants) == {*REFERENCES, *ABLATIONS}
    assert set(warm.variants) == {*REFERENCES, *WARM_ABLATIONS}
    assert [cold.variants[reference] for reference in REFERENCES] == ["C"] * len(REFERENCES)
    assert list(cold.variants) != list(Cell("w", 1, 64).variants), "the order differs between cells"
    assert len(cells(warm=True)) == 2 * len(cells(warm=False))


def test_a_mechanism_that_helps_is_reported_as_helping() -> None:
    _, _, quality, time, verdict = row(text(list(lines(quality=0.8, time=2.0))), "beta")
    assert quality.startswith("0.800")
    assert time.startswith("2.000") or time.startswith("5.000"), "a missed goal is charged the whole run"
    assert verdict == "improves quality, saves time"


def test_a_mechanism_that_costs_quality_is_reported_as_costing_it() -> None:
    assert row(text(list(lines(quality=1.25, time=1.0))), "beta")[-1] == "**costs quality**"


def test_references_are_compared_with_each_other() -> None:
    written = text(list(lines(quality=1.0, time=1.0)))
    for reference in REFERENCES:
        low, high = row(written, f"({reference})")[2].split("(")[1].strip(")").split(" to ")
        assert float(low) < 1 < float(high)


def test_kept_cells_of_the_same_code_are_packed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = [line | {"code": this_code()} for line in lines(quality=1.0, time=1.0) if line["kind"] == "run"]
    stale = {**runs[0], "seed": 9, "code": "other"}
    monkeypatch.setattr("benchmarks.search.ablation.plan.RAW", tmp_path)
    monkeypatch.setattr(report, "RESULTS", tmp_path / "ablation.jsonl.xz")
    pack(report.RESULTS, [{"kind": "plan"}, *runs, stale])
    plan, *packed = report.raw()
    assert plan["references"] == list(REFERENCES)
    assert packed == json.loads(json.dumps(runs))


def test_an_effect_within_the_noise_is_not_shown() -> None:
    ratios = [(0.9, 1.2), (1.1, 0.8), (1.0, 1.05), (0.95, 1.0)]
    assert Effect.over(ratios).verdict == "not shown"


def test_an_interval_is_students() -> None:
    """Of 1, 2 and 4 the logarithms have mean log 2 and standard error log 2 / sqrt 3; t(0.975, 2) is 4.303."""
    found = interval([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(2.0)
    assert found.high / found.mean == pytest.approx(found.mean / found.low)
    assert found.high == pytest.approx(2 * 2 ** (4.303 / 3**0.5), rel=1e-3)
    constant = interval([1.5, 1.5])
    assert [constant.mean, constant.low, constant.high] == pytest.approx([1.5] * 3)


def test_a_timeline_takes_its_latencies_from_the_closing_session() -> None:
    run = Run("C", "w", 0, "machine", seconds=9.0, trials=2, incumbents=[Incumbent(1.0, 1, 5e-4, "a")])
    run.incumbents.append(Incumbent(3.0, 2, 1e-4, "b"))
    line = Timeline.of(run, {name_of("a"): 4e-4, name_of("b"): 2e-4})
    assert (line.final, line.seconds_to(3e-4), line.reaches(3e-4)) == (2e-4, 3.0, True)
    assert (line.seconds_to(1e-4), line.reaches(1e-4)) == (9.0, False)
    assert Timeline.from_json(line.to_json()) == line


def test_a_request_survives_its_file(tmp_path: Any) -> None:
    device_class = DeviceClass('{"kind": "llvm"}', "model", ("avx2",), 2, 2, "runtime")
    request = Request("new", "C", "w", 3, "m", 64, "folder", device_class, "address", {"b": 2}, "measurer")
    request.write(tmp_path / "request.json")
    assert Request.read(tmp_path / "request.json") == request
