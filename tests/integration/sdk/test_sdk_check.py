"""A gate for CI: a model against its reference, on the fleet, from the command line and from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import nn

from loopwright import CheckFailed, CheckResult, Client, InvalidRequest, Job
from tests.integration.sdk.test_cli import Cli
from tests.support.played_service import PlayedService
from tests.support.programs import product_relu
from tests.support.service_client import ServiceClient


def saved(path: Path, width: int) -> Path:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 8)).eval()
    torch.export.save(torch.export.export(model, (torch.zeros(4, 64),)), path)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("check")
    saved(made / "model.pt2", 32)
    saved(made / "larger.pt2", 2048)
    return made


@pytest.fixture(scope="module")
def cli(folder: Path, service: ServiceClient) -> Cli:
    return Cli(folder, service)


@pytest.fixture(scope="module")
def reference(cli: Cli, folder: Path) -> Path:
    done = cli("check", "model.pt2", "--record", "reference.json", "--max-trials", "8", "--name", "the reference")
    assert done.status == 0, done.err
    return folder / "reference.json"


def test_the_same_model_passes_with_certified_latencies_without_being_measured(
    cli: Cli, client: Client, reference: Path
) -> None:
    done = cli("check", "model.pt2", "--against", "reference.json", "--max-trials", "8", "--json")
    assert done.status == 0, done.err
    assert (done.json["verdict"], done.json["rounds"]) == ("no regression", 0)
    assert {each["change"] for each in done.json["functions"]} == {"same"}
    bests = {task.name: task.best_us for task in client.job(json.loads(reference.read_text())["job"]).tasks}
    assert {each["name"]: each["candidate_us"] for each in done.json["functions"]} == pytest.approx(bests)
    assert {each["name"]: each["reference_us"] for each in done.json["functions"]} == pytest.approx(bests)


def test_a_changed_function_is_compared_from_python(client: Client, reference: Path, folder: Path) -> None:
    found = client.check(folder / "larger.pt2", reference, max_slowdown=9.9, max_trials=8, progress=False)
    assert found.result.rounds >= 3
    assert found.passed == (found.result.verdict != "regression")
    assert {each.change for each in found.result.functions} == {"changed"}
    again = Job(client._transport, found.job.info).gate()
    assert again is not None
    assert again.result == found.result
    assert found.record(folder / "larger.json").exists()
    assert {each["name"] for each in json.loads((folder / "larger.json").read_text())["functions"]} == {
        task.name for task in found.job.tasks
    }


@pytest.mark.whole
def test_what_cannot_be_compared_is_refused(service: PlayedService, client: Client, cli: Cli, folder: Path) -> None:
    with pytest.raises(InvalidRequest, match="nobody"):
        client.check(folder / "model.pt2", "nobody", progress=False)
    (folder / "odd.json").write_text("{}")
    for against, status in (("odd.json", 2), ("nobody", 2)):
        assert cli("check", "model.pt2", "--against", against).status == status
    assert cli("check", "model.pt2").status == 2
    assert cli("check", "model.pt2", "--against", "nobody", LOOPWRIGHT_URL="http://127.0.0.1:9").status == 3
    with service.stage.held(after=3):
        unfinished = client.submit(product_relu(92), max_trials=500)
        unfinished.cancel()
        with pytest.raises(CheckFailed):
            CheckResult.of(unfinished.wait(progress=False))
