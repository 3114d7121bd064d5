"""Models that change their buffers, with ``state="functional"``: call after call, as PyTorch computes it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx.helper as oh
import pytest
import torch
import tvm
from onnx import TensorProto
from torch import nn

import loopwright
from loopwright import Client, UnsupportedModel
from tests.unit.client.fake_service import FakeService
from tests.unit.client.known_bests import LLVM, serve

X = torch.linspace(-2, 2, 12).reshape(4, 3)


@pytest.fixture(autouse=True)
def _nothing_is_known(service: FakeService) -> None:
    serve(service)


class Statistics(nn.Module):
    """A counter of integers, a running mean, one that is assigned, the last input, and one that is not saved."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("mean", torch.full((3,), 0.5))
        self.register_buffer("same_mean", self.mean)
        self.register_buffer("last", torch.zeros(4, 3))
        self.register_buffer("seen", torch.zeros(3, dtype=torch.bool), persistent=False)
        self.register_buffer("scale", torch.full((3,), 2.0))
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count += 1
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        change = x - self.last
        self.last.copy_(x)
        self.seen |= (x > 1).any(0)
        return (change - self.same_mean) * self.scale * self.weight / self.count, self.seen


class Decoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.project = nn.Linear(3, 3)
        self.register_buffer("keys", torch.zeros(5, 3))
        self.register_buffer("position", torch.tensor([0]))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(0, self.position, self.project(x))
        scores = (x @ self.keys.T).masked_fill(torch.arange(5) > self.position, -torch.inf)
        self.position += 1
        return torch.softmax(scores, -1) @ self.keys


CASES = {
    "statistics": (Statistics().eval(), [X, X + 1, -X]),
    "key-value cache": (Decoder().eval(), [X[:1], X[1:2], X[2:3]]),
    "batch norm in training": (nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), [X, X + 1]),
}


@pytest.mark.parametrize(("model", "calls"), CASES.values(), ids=CASES)
def test_each_call_and_the_buffers_after_it_are_those_of_pytorch(
    client: Client, model: nn.Module, calls: list[torch.Tensor]
) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compiled = client.compile(model, LLVM, example_inputs=calls[:1], state="functional")
    assert isinstance(compiled, loopwright.StatefulModel)
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    first: Any = None
    with torch.no_grad():
        for x in calls:
            given = x.clone()
            output, expected = compiled(given), model(x)
            given.fill_(torch.nan)
            torch.testing.assert_close(output, expected)
            first = output if first is None else first
            buffers = dict(model.named_buffers())
            for name, value in compiled.buffers.items():
                np.testing.assert_allclose(value, buffers[name].numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
    compiled.reset()
    torch.testing.assert_close(compiled(calls[0]), first)


def test_a_saved_program_takes_tensors_of_tvm_and_is_not_changed(client: Client) -> None:
    program = torch.export.export(nn.BatchNorm1d(3), (X,))
    compiled = client.compile(loopwright.Model(program, state="functional"), LLVM)
    x = tvm.runtime.tensor(X.numpy())
    assert isinstance(compiled(x), tvm.runtime.Tensor)
    assert int(compiled.buffers["num_batches_tracked"]) == 1
    assert int(program.state_dict["num_batches_tracked"]) == 0


def test_a_model_without_state_keeps_none(client: Client) -> None:
    compiled = client.compile(nn.ReLU(), LLVM, example_inputs=(X,), state="functional")
    assert compiled.buffers == {}
    assert torch.equal(compiled(X), X.relu())


class Separating(nn.Module):
    new: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("old", torch.zeros(3))
        self.register_buffer("new", self.old)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.new = self.new + 1
        return x + self.old


class Overlapping(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("row", self.rows[0])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.row += 1
        return x + self.rows


class Assigning(nn.Module):
    last: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("last", torch.zeros(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        change = x - self.last
        self.last = x
        return change


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (Separating(), "new and old are one buffer"),
        (Overlapping(), "row, rows share memory"),
        (Assigning(), r"copy_\(input\)"),
    ],
    ids=["separated names", "overlapping buffers", "input assigned"],
)
def test_state_that_no_buffer_can_keep_is_refused(client: Client, model: nn.Module, said: str) -> None:
    with pytest.raises(UnsupportedModel, match=said):
        client.compile(model, LLVM, example_inputs=(X,), state="functional")


def test_the_option_is_for_models_of_pytorch_and_one_shape() -> None:
    values = [oh.make_tensor_value_info(name, TensorProto.FLOAT, [3]) for name in "xy"]
    graph = oh.make_graph([oh.make_node("Relu", ["x"], ["y"])], "relu", values[:1], values[1:])
    with pytest.raises(TypeError, match=r"state is not for an onnx.*but for a torch"):
        loopwright.frontends.to_program(loopwright.Model(oh.make_model(graph), state="functional"))
    with pytest.raises(ValueError, match="'kept'"):
        loopwright.Model(nn.ReLU(), state="kept")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="one shape"):
        loopwright.Model(nn.ReLU(), state="functional", shapes={"n": range(1, 9)})
