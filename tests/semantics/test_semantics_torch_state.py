"""PyTorch models that compute something else in each call are refused, and nobody's own model is changed."""

from __future__ import annotations

import random

import pytest
import torch
from torch import nn
from torch.nn import functional

from loopwright import frontends
from loopwright.errors import UnsupportedModel
from loopwright.model import Model
from tests.support.models import Calls
from tests.support.torch_models import compiled

X = torch.ones(4, 3)


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen += 1
        return x * self.seen


class Ring(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows[1:] = x[1:]
        return self.rows + x


class Steps(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.step = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.step += 1
        return x * self.step


class Plain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mean = torch.zeros(3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.mul_(0.9).add_(x.mean(0))
        return x - self.mean


class DropPath(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.new_empty(x.shape[0], 1).bernoulli_(0.5) * 2 if self.training else x


class LayerDrop(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if self.training and random.random() < 2 else x


CHANGING = {
    "counter": (Counter().eval(), "seen.*output"),
    "ring": (Ring().eval(), "rows.*output"),
    "attribute": (Steps().eval(), "step.*output"),
    "plain tensor": (Plain().eval(), "mean"),
    "batch norm in training": (nn.BatchNorm1d(3), r"running_mean.*\.eval\(\)"),
    "dropout in training": (nn.Dropout(0.5), r"dropout.*\.eval\(\)"),
    "dropout that is on": (Calls(lambda x: functional.dropout(x, 0.5)).eval(), "dropout.*input"),
    "stochastic depth": (nn.Sequential(nn.Linear(3, 3), DropPath()), r"bernoulli.*\.eval\(\)"),
    "layer drop": (LayerDrop(), r"Python's random.*\.eval\(\)"),
    "randn_like": (Calls(lambda x: x + torch.randn_like(x)).eval(), "randn_like"),
    "rand": (Calls(lambda x: x + torch.rand(3)).eval(), "aten.rand"),
    "randint": (Calls(lambda x: x + torch.randint(0, 4, (3,))).eval(), "randint"),
    "multinomial": (Calls(lambda x: torch.multinomial(x, 2)).eval(), "multinomial"),
    "rrelu": (nn.RReLU(), "rrelu"),
}


@pytest.mark.parametrize(("model", "said"), CHANGING.values(), ids=CHANGING)
def test_a_model_that_is_no_function_is_refused_and_stays_as_it_was(model: nn.Module, said: str) -> None:
    before = {name: value.clone() for name, value in model.state_dict().items()}
    generators = random.getstate(), torch.get_rng_state()
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(Model(model, example_inputs=(X,)))
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert getattr(model, "step", 0) == 0
    assert not getattr(model, "mean", torch.zeros(1)).any()
    assert random.getstate() == generators[0]
    assert torch.equal(torch.get_rng_state(), generators[1])


@pytest.mark.parametrize(
    "model",
    [
        nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5), DropPath()).eval(),
        nn.Sequential(nn.Linear(3, 3), nn.ReLU()),
        nn.Sequential(nn.Unflatten(0, (1, 4)), nn.TransformerEncoderLayer(3, 1, 8, batch_first=True)).eval(),
        Calls(lambda x: functional.scaled_dot_product_attention(x[None], x[None], x[None])),
        nn.Sequential(nn.Unflatten(0, (1, 4)), nn.InstanceNorm1d(4)),
    ],
    ids=["inference", "no mode", "transformer", "attention", "statistics of the input"],
)
def test_a_model_whose_random_layers_are_off_is_taken(model: nn.Module) -> None:
    frontends.to_program(Model(model, example_inputs=(X,)))


class Shifts(nn.Module):
    def forward(self, cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        cache[1:] = cache[:-1] + x
        return cache.sum(0)


def test_an_input_that_is_changed_in_place_is_named(caplog: pytest.LogCaptureFixture) -> None:
    cache, x = torch.arange(12.0).reshape(4, 3), torch.ones(3)
    [expected] = compiled(Shifts(), (cache.clone(), x))(cache.clone(), x)
    torch.testing.assert_close(expected, Shifts()(cache.clone(), x))
    assert [record.getMessage() for record in caplog.records if "in place" in record.getMessage()] == [
        "the model changes its input cache in place; the compiled model leaves it as it is: return the new value if "
        "you need it"
    ]
