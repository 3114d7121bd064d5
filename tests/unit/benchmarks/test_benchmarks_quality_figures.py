"""The arithmetic of the comparison with rivals: ratios, intervals, what is counted, and the verdicts."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.quality import report
from benchmarks.quality.engines import OURS, STOCK
from benchmarks.quality.outcome import CASE, Outcome
from benchmarks.quality.requirements import requirements
from benchmarks.requirement import Requirement, missed
from benchmarks.runner import cpu
from loopwright.comparing.protocol import Answer, ComparedVariant, EngineChoice, EngineResult
from loopwright.comparing.ratios import geometric_mean, paired

CONDITIONS = {"cpu": "some CPU", "features": ["avx2"], "threads": 2, "load": 0.1, "date": "2026-01-01", "code": "abc"}


def engine(*samples: list[float], failures: dict[str, str] | None = None) -> EngineResult:
    """Return an engine's result with samples by process; without any, it could not compute the case."""
    if not samples:
        return EngineResult(Answer(failures=failures or {}))
    answer = Answer({"best": ComparedVariant(1.5, 0.0, "")}, failures or {}, {"torch": "1"})
    return EngineResult(answer, EngineChoice("best", {"best": samples[0][0]}), list(samples), 100.0)


def tuned(*history: tuple[str, int, float | None], tasks: dict[str, tuple[int, float, float]]) -> dict[str, Any]:
    """Return the line of a job; ``tasks`` are weight, baseline and certified best in microseconds."""
    return {
        "kind": "tuned",
        "case": "softmax",
        "budget": {"max_trials": 128, "max_seconds": None},
        "seconds": 20.0,
        "trials": len(history),
        "tasks": [
            {"workload": name, "weight": weight, "baseline_us": baseline, "best_us": best, "certified": True}
            for name, (weight, baseline, best) in tasks.items()
        ],
        "history": [list(entry) for entry in history],
    }


@pytest.fixture
def outcome() -> Outcome:
    """Loopwright takes 10 µs, ONNX Runtime 8 µs, PyTorch 20 µs and stock 30 µs; 9 µs are certified."""
    return Outcome(
        name="softmax",
        family="softmax",
        kind="operator",
        precision="f32",
        tolerance=1e-3,
        engines={
            OURS: engine([10e-6, 10e-6], [10e-6, 10e-6]),
            "PyTorch": engine([20e-6, 21e-6], [20e-6, 19e-6]),
            "ONNX Runtime": engine([8e-6, 8e-6], [8e-6, 8e-6]),
            STOCK: engine([30e-6, 30e-6], [30e-6, 30e-6]),
        },
        conditions=CONDITIONS,
        tuned=tuned(
            ("w", 0, 100.0), ("w", 1, 50.0), ("w", 2, None), ("w", 3, 9.2), ("w", 4, 9.0), tasks={"w": (1, 100.0, 9.0)}
        ),
        stock=None,
    )


def test_a_ratio_is_the_median_of_ratios_within_rounds() -> None:
    """A slow round slows both engines, and does not count more than another."""
    ratio = paired([[2.0, 20.0, 2.2]], [[1.0, 10.0, 1.0]])
    assert ratio.value == pytest.approx(2.0)
    assert 2.0 <= ratio.low <= ratio.high <= 2.2


def test_an_interval_contains_the_differences_between_processes() -> None:
    ratio = paired([[1.0] * 6, [2.0] * 6], [[1.0] * 6, [1.0] * 6])
    assert (ratio.low, ratio.value, ratio.high) == (1.0, 1.5, 2.0)


def test_an_interval_is_the_same_each_time() -> None:
    noisy = [[1.0, 1.2, 0.9, 1.1]]
    assert str(paired(noisy, [[1.0] * 4])) == str(paired(noisy, [[1.0] * 4]))


def test_engines_without_a_common_round_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="share no round"):
        paired([[1.0]], [])


def test_a_geometric_mean_has_the_noise_of_its_cases() -> None:
    certain, noisy = paired([[4.0] * 4], [[1.0] * 4]), paired([[0.5, 1.0, 2.0]], [[1.0] * 3])
    mean = geometric_mean([certain, noisy])
    assert mean.value == pytest.approx(2.0)
    assert mean.low == pytest.approx(np.sqrt(4 * noisy.low), rel=1e-6)


def test_the_fastest_rival_counts(outcome: Outcome) -> None:
    assert outcome.best_rival == "ONNX Runtime"
    assert outcome.against_rivals is not None
    assert outcome.against_rivals.value == pytest.approx(0.8)


def test_stock_is_no_rival(outcome: Outcome) -> None:
    assert outcome.against_stock is not None
    assert outcome.against_stock.value == pytest.approx(3.0)


def test_an_engine_that_cannot_compute_a_case_is_left_out(outcome: Outcome) -> None:
    alone = replace(outcome, engines={OURS: engine([1e-5]), "ONNX Runtime": engine(failures={"best": "no kernel"})})
    assert alone.latency("ONNX Runtime") is None
    assert alone.best_rival is None
    assert alone.against_rivals is None


def test_the_certified_time_is_weighted_over_the_tasks(outcome: Outcome) -> None:
    assert outcome.user_over_certified == pytest.approx(10 / 9)
    two = replace(outcome, tuned=tuned(tasks={"v": (2, 9.0, 3.0), "w": (1, 9.0, 4.0)}))
    assert two.certified == pytest.approx(10e-6)


def test_trials_are_counted_until_95_percent_of_the_final_quality(outcome: Outcome) -> None:
    """9.2 µs have 98 % of the quality of 9.0 µs; the failed trial counts."""
    assert outcome.qualities == pytest.approx([0.09, 0.18, 0.18, 9 / 9.2, 1.0])
    assert outcome.trials_to_near == 3


def test_a_baseline_that_nothing_beats_needs_no_trials(outcome: Outcome) -> None:
    best = replace(outcome, tuned=tuned(("w", 0, 5.0), ("w", 1, 7.0), tasks={"w": (1, 5.0, 5.0)}))
    assert best.trials_to_near == 0


def by_name(found: list[Outcome]) -> dict[str, Requirement]:
    return {one.what.partition(",")[0]: one for one in requirements(found)}


def test_the_requirements_are_checked(outcome: Outcome) -> None:
    fast = replace(outcome, name="gelu", engines={OURS: engine([1e-5]), "PyTorch": engine([2e-5])})
    found = by_name([outcome, fast])
    assert found["single operators"].measured == pytest.approx((0.8 * 2.0) ** 0.5)
    assert found["single operators"].verdict == "**missed**"
    assert found["worst single operator"].measured == pytest.approx(0.8)
    assert found["worst single operator"].shown.endswith(", softmax")
    assert found["models end to end"].verdict == "not measured"


def test_a_requirement_on_costs_is_reached_from_below() -> None:
    verdicts = [Requirement("trials", 32, 16, trials, str(trials), is_cost=True).verdict for trials in (40, 32, 16)]
    assert verdicts == ["**missed**", "must reached", "aim reached"]


def test_products_in_bf16_count_on_cpus_with_amx_only(outcome: Outcome) -> None:
    product = replace(outcome, kind="low precision", precision="bf16")
    without = by_name([product])["bf16 products with AMX"]
    assert (without.measured, without.shown) == (None, "0.80 (0.80 to 0.80) on a CPU without amx_bf16")
    with_amx = replace(product, conditions=CONDITIONS | {"features": ["amx_bf16"]})
    assert by_name([with_amx])["bf16 products with AMX"].verdict == "**missed**"


def test_the_report_names_what_was_missed_and_what_was_not_measured() -> None:
    found = [
        Requirement("a", 1, 2, 0.5, "0.50"),
        Requirement("b", 1, 2, 3.0, "3.00"),
        Requirement("c", 1, 2, None, "no AMX"),
    ]
    assert missed(found) == (
        "Of 2 requirements that were measured, 1 was missed: a (0.50 instead of 1). Not measured: c (no AMX)."
    )
    assert missed([found[1], found[1]]) == "All 2 requirements that were measured were reached."
    assert missed(found[2:]) == "No requirement was measured. Not measured: c (no AMX)."


def test_the_report_is_drawn_from_packed_lines(outcome: Outcome, tmp_path: Path) -> None:
    assert outcome.tuned is not None
    engines = outcome.engines | {"OpenVINO": engine(failures={"ONNX": "no | kernel"})}
    results = {name: asdict(result) for name, result in engines.items()}
    timed = {"kind": "timed", "case": "softmax", "engines": results, "conditions": CONDITIONS}
    lines = list(report.packed([outcome.tuned | {"seconds": 1.0}, outcome.tuned, timed]))
    assert [line["kind"] for line in lines] == [CASE, "tuned", "timed"]
    assert lines[1] == outcome.tuned
    report.draw(lines, tmp_path)
    written = report.REPORT.render(lines)
    assert "| softmax | softmax | 10.0 | 20.0 | 8.0 | ONNX Runtime | **0.80 (0.80 to 0.80)** |" in written
    assert "| OpenVINO | ONNX | no \\| kernel | softmax |" in written
    assert "| single operators | 1 of 1 | 5 | 3 | 1.11 |" in written
    assert "| single operators | tuning, s | 20 | - | - | - | - |" in written
    assert "| PyTorch | best (1) |" in written
    assert "| tuning, at most | 128 trials |" in written
    assert {path.name for path in tmp_path.iterdir()} == {"operator.png", "trials.png"}


def test_the_features_are_those_of_the_first_processor() -> None:
    one = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nflags\t\t: fpu avx2 amx_bf16\n"
    assert cpu(f"{one}\n{one}") == ("Some CPU @ 2 GHz", {"fpu", "avx2", "amx_bf16"})
