"""A tuned model is packaged through the service, copied elsewhere, verified and run there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

import loopwright
from loopwright import Client
from tests.integration.sdk.test_cli import Cli
from tests.support.service_client import ServiceClient


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(96, 64), nn.ReLU(), nn.LayerNorm(64), nn.Linear(64, 8)).eval()


@pytest.mark.whole
def test_a_package_is_made_verified_and_run(
    service: ServiceClient, client: Client, model: nn.Module, tmp_path: Path
) -> None:
    x = torch.linspace(-1, 1, 4 * 96).reshape(4, 96)
    job = client.submit(model, example_inputs=(x,), max_trials=12).wait(progress=False)
    assert job.state == "succeeded"
    made = client.package(model, tmp_path / "made", example_inputs=(x,))
    assert client.last_report is not None
    assert client.last_report.misses == ()
    elsewhere = Path(shutil.move(made, tmp_path / "elsewhere"))

    cli = Cli(tmp_path, service)
    done = cli("verify", "elsewhere", "--json", LOOPWRIGHT_URL="http://127.0.0.1:9")  # it needs no service
    found = json.loads(done.out)
    assert found["model"]["state"] == "holds", found
    certified = {task.name: task for task in job.tasks}
    assert {each["name"] for each in found["functions"]} == set(certified)
    for each in found["functions"]:
        assert each["certified_us"] == certified[each["name"]].best_us
        assert each["state"] != "wrong"

    packaged = loopwright.load(elsewhere)
    with torch.no_grad():
        torch.testing.assert_close(packaged(x), model(x), rtol=1e-4, atol=1e-5)
    certificates = {each["name"]: each["certificate"]["id"] for each in packaged.manifest["functions"]}
    for name, task in certified.items():
        assert client.record(task.record_id or "").certificate.id == certificates[name]


def test_the_command_packages_a_saved_program(
    service: ServiceClient, client: Client, model: nn.Module, tmp_path: Path
) -> None:
    torch.export.save(torch.export.export(model, (torch.zeros(4, 96),)), tmp_path / "net.pt2")
    cli = Cli(tmp_path, service)
    done = cli("package", "net.pt2", "-o", "out")
    assert done.status == 0, done.err
    assert "written to out" in done.out
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["name"] == "net"
    again = cli("package", "net.pt2", "-o", "out")
    assert (again.status, again.out) == (2, "")
    assert "is not empty" in again.err
