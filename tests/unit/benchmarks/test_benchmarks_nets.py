"""Nets as users deploy them: the arithmetic of the clocks, the verdicts, and the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from benchmarks.nets import report
from benchmarks.nets.outcome import outcomes
from loopwright.comparing.protocol import Answer, ComparedVariant, EngineChoice, EngineResult


def engines(**us: float) -> dict[str, Any]:
    """Return the results of engines by their microseconds, in two processes of two rounds."""
    found = {}
    for name, each in us.items():
        answer = Answer({"best": ComparedVariant(1.5, 0.0, "7 of 8 functions tuned")}, {}, {"some-package": "1.2"})
        samples = [[each * 1e-6] * 2] * 2
        found[name.replace("_", " ")] = asdict(EngineResult(answer, EngineChoice("best", {"best": each}), samples))
    return found


def line(net: str, *, process: float = 120.0, measured: float | None = 115.0, loaded: float = 300.0) -> dict[str, Any]:
    """Return the line of a net whose certificates sum up to 100 µs."""
    task = {"workload": "w", "name": "dense", "weight": 2, "certified": True}
    return {
        "net": net,
        "precision": "f32",
        "tolerance": 1e-3,
        "conditions": {"cpu": "some CPU", "features": ["avx2"], "threads": 2, "load": 0.1, "date": "2026-01-01"},
        "tuned": {
            "max_seconds": 180.0,
            "seconds": 189.0,
            "measured_us": measured,
            "sum_us": 100.0,
            "tasks": [task, task | {"certified": False}],
        },
        "idle": engines(Loopwright=process, ONNX_Runtime=150.0, PyTorch=400.0),
        "loaded": engines(Loopwright=loaded, ONNX_Runtime=600.0, PyTorch=240.0),
        "starts": {
            "Loopwright": [{"seconds": 0.4, "resident_mib": 90.0}, {"seconds": 0.6, "resident_mib": 120.0}] * 2,
            "ONNX Runtime": [{"seconds": 0.1, "resident_mib": 70.0}],
        },
    }


def test_each_clock_is_over_the_one_that_it_is_compared_with() -> None:
    [net] = outcomes([line("some-net")])
    assert net.job_over_budget == pytest.approx(1.05)
    assert net.process_us == pytest.approx(120.0)
    assert net.process_over_sum == pytest.approx(1.2)
    assert net.measured_over_process == pytest.approx(115 / 120)
    assert net.start("Loopwright", "seconds") == pytest.approx(0.5)


def test_the_best_rival_under_load_may_be_another_one() -> None:
    [net] = outcomes([line("some-net")])
    assert (net.idle.best_rival, net.loaded.best_rival) == ("ONNX Runtime", "PyTorch")
    assert net.loaded.against_rivals is not None
    assert net.loaded.against_rivals.value == pytest.approx(0.8)


def test_the_worst_net_decides_and_is_named() -> None:
    lines = [line("quick"), line("slow", process=160.0, measured=200.0), line("unmeasured", measured=None)]
    found = {one.what: one for one in report.requirements(outcomes(lines))}
    assert found["nets over the best rival, worst"].shown.endswith("slow")
    assert found["nets over the best rival, worst"].verdict == "**missed**"
    off = found["measured_us against the user's process, worst difference"]
    assert (off.shown, off.verdict) == ("25.00 %, slow", "**missed**")
    assert found["user's process over the sum of certificates, median"].measured == pytest.approx(1.2)
    assert found["user's process over the sum of certificates, worst"].measured == pytest.approx(1.6)
    assert found["time of the job over its max_seconds, worst"].verdict == "must reached"
    assert found["second start: seconds to load a compiled net, worst"].verdict == "must reached"
    assert found["resident memory of a fresh process over ONNX Runtime's, worst"].measured == pytest.approx(1.5)


def test_a_net_that_does_not_compile_has_a_row_and_no_figure() -> None:
    refused = line("refused")
    for state in ("idle", "loaded"):
        refused[state]["Loopwright"] = asdict(EngineResult(Answer(failures={"compile": "UnsupportedModel: no If"})))
    [net] = outcomes([refused])
    assert (net.process_us, net.process_over_sum, net.measured_over_process) == (None, None, None)
    page = report.REPORT.render([refused])
    assert "| refused | Loopwright | compile | UnsupportedModel: no If |" in page
    assert "no result" in page


def test_the_page_has_each_net_once_and_its_last_figures() -> None:
    lines = report.packed([line("some-net", process=500.0), line("other"), line("some-net")])
    page = report.REPORT.render(lines)
    assert [each["net"] for each in lines] == ["some-net", "other"]
    assert "| some-net | 2 | 1 | 189 | 1.05 | 100 | 115 | 120 | 1.20 | 0.96 |" in page
    assert "500" not in page
    assert "some-package 1.2" in page
