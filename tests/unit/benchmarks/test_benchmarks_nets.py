"""Nets as users deploy them: the arithmetic of the clocks, the verdicts, and the page."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import nn

from benchmarks.nets import report, worker
from benchmarks.nets.outcome import outcomes
from benchmarks.nets.what import What
from benchmarks.nets.worker import Function
from loopwright.comparing.protocol import Answer, ComparedVariant, EngineChoice, EngineResult
from loopwright.frontends import to_payload
from loopwright.model import Model
from tests.support.played_fleet import TARGET
from tuner.inspection.submission import parse
from workers.device.build import artifact_of
from workers.device.whole_model import NotMeasured
from workers.messages import HOST, BuildRequest, ModelProgram


def engines(**us: float) -> dict[str, Any]:
    """Return the results of engines by their microseconds, in two processes of two rounds."""
    found = {}
    for name, each in us.items():
        answer = Answer({"best": ComparedVariant(1.5, 0.0, "7 of 8 functions tuned")}, {}, {"some-package": "1.2"})
        samples = [[each * 1e-6] * 2] * 2
        found[name.replace("_", " ")] = asdict(EngineResult(answer, EngineChoice("best", {"best": each}), samples))
    return found


def line(net: str, *, process: float = 120.0, measured: float = 115.0, loaded: float = 300.0) -> dict[str, Any]:
    """Return the line of a net whose certified functions take 100 µs together, now and when the job measured them.

    The job's time of the whole model is of a moment when the machine was half as fast.
    """
    task = {"workload": "w", "name": "dense", "weight": 2, "certified": True}
    return {
        "net": net,
        "precision": "f32",
        "tolerance": 1e-3,
        "conditions": {"cpu": "some CPU", "features": ["avx2"], "threads": 2, "load": 0.1, "date": "2026-01-01"},
        "tuned": {
            "max_seconds": 180.0,
            "seconds": 189.0,
            "measured_us": 2 * measured,
            "sum_us": 100.0,
            "tasks": [task, task | {"certified": False}],
        },
        "idle": engines(Loopwright=process, ONNX_Runtime=150.0, PyTorch=400.0),
        "loaded": engines(Loopwright=loaded, ONNX_Runtime=600.0, PyTorch=240.0),
        "fleet": engines(**{What.MODEL: measured, What.FUNCTIONS: 100.0}),
        "starts": {
            "Loopwright": [{"seconds": 0.4, "resident_mib": 90.0}, {"seconds": 0.6, "resident_mib": 120.0}] * 2,
            "ONNX Runtime": [{"seconds": 0.1, "resident_mib": 70.0}],
        },
    }


def test_each_clock_is_over_the_one_that_it_is_compared_with() -> None:
    [net] = outcomes([line("some-net")])
    assert net.job_over_budget == pytest.approx(1.05)
    assert net.process_us == pytest.approx(120.0)
    assert net.process_over_sum is not None
    assert net.process_over_sum.value == pytest.approx(1.2)
    assert net.measured_over_process is not None
    assert net.measured_over_process.value == pytest.approx(115 / 120)
    assert net.start("Loopwright", "seconds") == pytest.approx(0.5)


def test_the_best_rival_under_load_may_be_another_one() -> None:
    [net] = outcomes([line("some-net")])
    assert (net.idle.best_rival, net.loaded.best_rival) == ("ONNX Runtime", "PyTorch")
    assert net.loaded.against_rivals is not None
    assert net.loaded.against_rivals.value == pytest.approx(0.8)


def test_the_worst_net_decides_and_is_named() -> None:
    lines = [line("quick"), line("slow", process=160.0, measured=200.0), line("unmeasured")]
    del lines[-1]["fleet"][What.MODEL]
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


def test_the_fleet_times_the_model_and_each_function_as_often_as_it_is_called(monkeypatch: pytest.MonkeyPatch) -> None:
    net = nn.Sequential(nn.Linear(24, 40), nn.Softmax(-1), nn.Linear(40, 8)).eval()
    payload = to_payload(Model(net, example_inputs=(torch.zeros(3, 24),)))
    [parsed] = parse(payload.format, payload.data, TARGET, None, None)
    requests = [BuildRequest(task.workload.module_json, None, TARGET) for task in parsed.tasks]
    functions = tuple(
        Function(task.workload.args, artifact_of(request), weight)
        for weight, (task, request) in enumerate(zip(parsed.tasks, requests, strict=True), 2)
    )
    assert len(functions) > 1
    model = ModelProgram(parsed.module_json, TARGET, {})
    answers = worker.seconds(HOST, model, functions, iter([What.MODEL, What.FUNCTIONS, What.FUNCTIONS]), lambda: None)
    assert 0 < next(answers) < 1
    assert 0 < next(answers) < 1
    monkeypatch.setattr(worker, "_median", lambda runner, position: 10.0**position)
    assert next(answers) == sum((position + 2) * 10.0**position for position in range(len(functions)))
    del answers  # and its processes
    monkeypatch.setattr("workers.device.whole_model.MAX_WEIGHT_BYTES", 64)
    with pytest.raises(NotMeasured, match="its weights take"):
        next(worker.seconds(HOST, model, functions, iter([What.MODEL]), lambda: None))


def test_a_moment_when_the_machine_is_slow_is_slow_for_both_clocks() -> None:
    disturbed = line("some-net")
    for results, name in ((disturbed["idle"], "Loopwright"), (disturbed["fleet"], What.MODEL)):
        results[name]["samples"][1] = [3 * each for each in results[name]["samples"][1]]
    disturbed["fleet"][What.FUNCTIONS]["samples"] = [[], []]
    disturbed["fleet"][What.FUNCTIONS]["answer"]["failures"] = {"": "died by signal 9"}
    [net] = outcomes([disturbed])
    assert net.measured_over_process is not None
    assert net.measured_over_process.low == pytest.approx(115 / 120)
    assert net.measured_over_process.high == pytest.approx(115 / 120)
    assert net.process_over_sum is None
    assert "| some-net | - | 230 | 240 | - | 0.96 (0.96 to 0.96) |" in report.REPORT.render([disturbed])


def test_a_net_that_does_not_compile_has_a_row_and_no_figure() -> None:
    refused = line("refused")
    for state in ("idle", "loaded"):
        refused[state]["Loopwright"] = asdict(EngineResult(Answer(failures={"compile": "UnsupportedModel: no If"})))
    [net] = outcomes([refused])
    assert (net.process_us, net.process_over_sum, net.measured_over_process) == (None, None, None)
    page = report.REPORT.render([refused])
    assert "| Loopwright | compile | UnsupportedModel: no If | refused |" in page
    assert "no result" in page


def test_the_page_has_each_net_once_and_its_last_figures() -> None:
    lines = report.packed([line("some-net", process=500.0), line("other"), line("some-net")])
    page = report.REPORT.render(lines)
    assert [each["net"] for each in lines] == ["some-net", "other"]
    assert "| some-net | 2 | 1 | 189 | 1.05 | 100 | 230 | 120 | 1.20 | 1.92 |" in page
    assert "| some-net | 100 | 115 | 120 | 1.20 (1.20 to 1.20) | 0.96 (0.96 to 0.96) |" in page
    assert "500" not in page
    assert "some-package 1.2" in page
