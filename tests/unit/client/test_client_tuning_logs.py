"""Logs of AutoTVM and auto_scheduler: shown as they measured, and never sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import loopwright
from loopwright.results.tuning_logs import LoggedTask, logged_tasks
from tests.unit.client.conftest import Command
from tests.unit.client.fake_service import FakeService


def autotvm(costs: list[float], error: int = 0, channels: int = 64) -> str:
    """A line as `autotvm.record.encode` of TVM 0.10 writes it."""
    arguments = [["TENSOR", [1, 3, 224, 224], "float32"], ["TENSOR", [channels, 3, 7, 7], "float32"], [2, 2], "NCHW"]
    config = {"index": 172, "code_hash": None, "entity": [["tile_ic", "sp", [-1, 1]], ["unroll_kw", "ot", False]]}
    return json.dumps(
        {
            "input": ["llvm -keys=cpu ", "conv2d_NCHWc.x86", arguments, {}],
            "config": config,
            "result": [costs, error, 0.53, 1676344759.52],
            "version": 0.2,
            "tvm_version": "0.10.0",
        }
    )


ANSOR = (
    r'{"i": [["[\"matmul_add\", 512, 512, 512, \"float32\"]", "llvm -keys=cpu -mcpu=core-avx2", '
    r'[16, 64, 64, 0, 0, 0, 0, 0], "", 1, []], [[], [["CHW", 2, "local"], ["SP", 2, 0, 512, [1, 64, 8], 1]]]], '
    r'"r": [[0.00198, 0.00197, 0.002], 0, 0.130737, 1714270206], "v": "v0.6"}'
)


def test_the_best_latency_of_each_task_is_read(tmp_path: Path) -> None:
    log = tmp_path / "conv2d.log"
    lines = [autotvm([0.005, 0.004, 0.009]), autotvm([1e9], error=4), autotvm([0.003, 0.007, 0.008]), "{damaged"]
    log.write_text("\n".join([*lines, autotvm([1e9], error=1, channels=32)]))
    name = 'conv2d_NCHWc.x86(1x3x224x224 float32, {}x3x7x7 float32, [2, 2], "NCHW")'
    assert logged_tasks(log) == [
        LoggedTask("AutoTVM", name.format(64), "llvm -keys=cpu", 5000.0, 3, 1),
        LoggedTask("AutoTVM", name.format(32), "llvm -keys=cpu", None, 1, 1),
    ]


def test_logs_of_both_tuners_in_a_directory(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(ANSOR + "\n")
    (tmp_path / "b.log").write_text(autotvm([0.005]) + "\n")
    (tmp_path / "other.json").write_text('{"nodes": []}\n[1]\n{"i": 7}\n{"input": []}\n')
    ansor, template = logged_tasks(tmp_path)
    assert (ansor.tuner, ansor.name) == ("auto_scheduler", 'matmul_add(512, 512, 512, "float32")')
    assert (ansor.target, ansor.best_us) == ("llvm -keys=cpu -mcpu=core-avx2", pytest.approx(1980))
    assert template.tuner == "AutoTVM"
    assert logged_tasks(tmp_path / "other.json") == logged_tasks(tmp_path / "missing") == []


def test_the_command_shows_them_and_sends_nothing(run: Command, service: FakeService, tmp_path: Path) -> None:
    log = tmp_path / "ansor.json"
    log.write_text(ANSOR + "\n")
    for path in (log, tmp_path):
        done = run("record", "import", str(path))
        assert done.status == 2
        assert "matmul_add(512, 512, 512" in done.out
        assert "1.98 ms" in done.out
        assert "Nothing was sent to the service" in done.out
        assert "loopwright job submit MODEL" in done.out
    shown = json.loads(run("record", "import", str(log), "--json").out)
    assert (shown["imported"], [task["tuner"] for task in shown["tasks"]]) == (0, ["auto_scheduler"])
    assert service.requests == []


def test_the_client_refuses_them(client: loopwright.Client, service: FakeService, tmp_path: Path) -> None:
    log = tmp_path / "autotvm.log"
    log.write_text(autotvm([0.005]) + "\n")
    with pytest.raises(ValueError, match=r"TVM"):
        client.import_records(log)
    log.write_text("nothing of the kind")
    with pytest.raises(ValueError, match=r"database_workload\.json"):
        client.import_records(log)
    assert service.requests == []


def test_the_pair_of_tvm_is_sent_with_a_log_beside_it(
    client: loopwright.Client, service: FakeService, tmp_path: Path
) -> None:
    for name in ("database_workload.json", "database_tuning_record.json"):
        (tmp_path / name).write_text("[]\n")
    (tmp_path / "autotvm.log").write_text(autotvm([0.005]) + "\n")
    service.on("POST", "/api/v1/records/import", {"workloads": 0, "imported": 0, "duplicates": 0, "errors": []})
    assert client.import_records(tmp_path).imported == 0
