"""A model beside other engines, as users compare it: through the service, from Python and from the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from loopwright import Client, Comparison
from tests.integration.sdk.test_cli import Cli
from tests.support.perceptron import PERCEPTRON
from tests.support.service_client import ServiceClient

QUICK: dict[str, Any] = {"rounds": 1, "processes": 1}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first, self.second = nn.Linear(48, 40), nn.Linear(40, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.relu(self.first(x)))


@pytest.fixture(scope="module")
def inputs() -> tuple[torch.Tensor]:
    return (torch.linspace(-1, 1, 4 * 48).reshape(4, 48),)


@pytest.mark.whole
def test_a_tuned_model_is_compared_and_the_comparison_is_stored_with_its_job(
    client: Client, inputs: tuple[torch.Tensor]
) -> None:
    model = Net().eval()
    job = client.submit(model, example_inputs=inputs, max_trials=4).wait(progress=False)
    assert job.state == "succeeded"
    assert job.model is not None
    assert job.model.latency_us == job.model.measured_us
    assert job.model.speedup == pytest.approx(job.model.untuned_us / job.model.latency_us)
    assert job.model.best_us == pytest.approx(sum(task.weight * (task.best_us or 0) for task in job.tasks))
    assert job.comparison() is None
    found = client.compare(model, ["torch", "tvm"], example_inputs=inputs, job=job, progress=False, **QUICK)
    assert {engine.name: engine.failure for engine in found.engines} == dict.fromkeys(["loopwright", "torch", "tvm"])
    assert found.engines[0].note == "2 of 2 functions tuned"
    assert found.engines[-1].note == "no function tuned"
    for engine in found.engines[1:]:
        assert engine.us is not None
        assert engine.error is not None
        assert engine.error < found.tolerance
        assert engine.ratio is not None
        assert engine.ratio.low <= engine.ratio.value <= engine.ratio.high
    assert job.comparison() == found


@pytest.mark.whole
def test_the_command_compares_a_saved_program(
    service: ServiceClient, client: Client, inputs: tuple[torch.Tensor], tmp_path: Path
) -> None:
    torch.export.save(torch.export.export(Net().eval(), inputs), tmp_path / "net.pt2")
    cli = Cli(tmp_path, service)
    done = cli("compare", "net.pt2", "--against", "torch", "--rounds", "1", "--processes", "1", "--json")
    assert done.status == 0, done.err
    found = Comparison.model_validate(json.loads(done.out))
    assert [engine.title for engine in found.engines] == ["Loopwright", "PyTorch"]
    wrong = cli("compare", "net.pt2", "--against", "tensorrt")
    assert (wrong.status, wrong.out) == (2, "")
    assert "tensorrt" in wrong.err
    assert cli("compare", "absent.pt2").status == 2


@pytest.mark.whole
def test_a_model_of_tvm_is_compared_with_its_unscheduled_program(client: Client, perceptron: object) -> None:
    found = client.compare(PERCEPTRON, ["tvm", "torch"], progress=False, **QUICK)
    tuned, untuned, pytorch = found.engines
    assert tuned.failure is None
    assert untuned.failure is None
    assert "not a PyTorch program" in (pytorch.failure or "")
