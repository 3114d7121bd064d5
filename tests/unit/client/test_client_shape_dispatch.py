"""One module for every extent: tuned variants for buckets, padded where it is right, and untuned functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

import loopwright
from loopwright import frontends
from loopwright.applying import lookup
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.program.lowering import bind_shapes
from loopwright.frontends.program import Program
from tests.support.cases import first
from tests.unit.client.fake_service import FakeService, best_json, job_json
from tests.unit.client.known_bests import LLVM, LOOKUP, serve

TARGET = tvm.target.Target(LLVM)


class Perceptron(nn.Module):
    """Two results, of which one has its samples in the second axis."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = self.layers(x)
        return y, y.T.relu()


class Attention(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x @ x.transpose(1, 2), dim=-1) @ x


def exported(model: nn.Module, *shape: int, axis: int = 0) -> Any:
    sizes = ({axis: torch.export.Dim("n", min=2, max=512)},)
    return torch.export.export(model.eval(), (torch.rand(*shape),), dynamic_shapes=sizes)


def serve_bests(
    service: FakeService,
    model: Any,
    extents: list[int],
    *,
    baseline_us: float = 100.0,
    best_us: float = 10.0,
    known: Callable[[str], bool] = lambda _: True,
) -> None:
    """Let the service know each function at the extents: as the unscheduled program, said to be as fast as told."""
    program = frontends.to_program(model)
    bests = []
    for extent in extents:
        lowered = lookup.lower(Program(bind_shapes(program.module, {"n": extent}), program.weights), TARGET)
        for name, [digest, *_] in lookup.digests(lowered).items():
            if known(name):
                bests.append(best_json(digest, None, baseline_us=baseline_us, best_us=best_us))
    serve(service, *bests)


def called(built: Any, x: torch.Tensor) -> list[torch.Tensor]:
    out = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.from_dlpack(x))
    return [torch.from_dlpack(each) for each in (out if isinstance(out, tvm.ir.Array) else [out])]


def served(client: loopwright.Client) -> list[tuple[int, int | None]]:
    assert client.last_report is not None
    return [(each.extent, each.smallest) for each in client.last_report.served]


def test_a_perceptron_takes_any_batch_and_pads_it_to_the_next_bucket(
    service: FakeService, client: loopwright.Client
) -> None:
    model = Perceptron()
    program = exported(model, 4, 16)
    serve_bests(service, program, [4, 16, 64])
    shapes = {"n": {4: 90, 16: 50, 64: 50}}
    client.compile(program, LLVM, shapes=shapes)
    assert len(service.seen("POST", LOOKUP)) == 1
    assert client.last_plan is not None
    assert client.last_plan.not_padded is None
    assert served(client) == [(4, 1), (16, 5), (64, 17)]
    lock = client.lock(loopwright.Model(program, shapes=shapes), target=LLVM)
    assert len(lock.functions) == 9
    with loopwright.Client("http://127.0.0.1:1") as alone:
        built = alone.compile(program, lock=lock, shapes=shapes)
        assert served(alone) == served(client)
        with pytest.raises(loopwright.NotLocked, match="no best of"):
            alone.compile(program, lock=lock, shapes={"n": {4: 90, 16: 50, 65: 50}})
    for extent in (1, 2, 4, 5, 15, 16, 17, 63, 64, 65, 200):
        x = torch.rand(extent, 16)
        for found, expected in zip(called(built, x), model(x), strict=True):
            torch.testing.assert_close(found, expected.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.whole
def test_attention_runs_exactly_or_untuned_because_padding_would_change_it(
    service: FakeService, client: loopwright.Client
) -> None:
    model = Attention()
    program = exported(model, 2, 8, 16, axis=1)
    serve_bests(service, program, [8, 32])
    shapes = {"n": {8: 50, 32: 20}}
    for given in (shapes, loopwright.plan_shapes(shapes)):  # whatever a plan without the model says
        built = client.compile(program, LLVM, shapes=given)
        assert served(client) == [(8, 8), (32, 32)]
    assert "padded" not in str(client.last_report)
    for extent in (2, 7, 8, 9, 31, 32, 33):
        x = torch.rand(2, extent, 16)
        torch.testing.assert_close(called(built, x)[0], model(x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("baseline_us", "best_us", "smallest"),
    first(
        2,
        [
            (10_000.0, 2_500.0, 5),
            (100.0, 99.5, None),
            (10_000.0, 5_000.0, 9),
            (10_000.0, 9_990.0, 16),
            (1.0, 0.1, None),
        ],
    ),
)
def test_a_bucket_serves_what_would_be_slower_untuned(
    service: FakeService, client: loopwright.Client, baseline_us: float, best_us: float, smallest: int | None
) -> None:
    program = exported(nn.Linear(16, 8), 4, 16)
    serve_bests(service, program, [16], baseline_us=baseline_us, best_us=best_us)
    client.compile(program, LLVM, shapes={"n": range(16, 17)})
    assert served(client) == [(16, smallest)]


@pytest.mark.whole
def test_what_is_partly_known_serves_its_own_extent(service: FakeService, client: loopwright.Client) -> None:
    program = exported(Perceptron(), 4, 16)
    serve_bests(service, program, [16], known=lambda name: "relu" in name)
    client.compile(program, LLVM, shapes={"n": range(16, 17)})
    assert served(client) == [(16, 16)]
    serve(service)
    client.compile(program, LLVM, shapes={"n": range(16, 17)})
    assert served(client) == [(16, None)]
    assert "n=16: untuned" in str(client.last_report)


@pytest.mark.whole
def test_a_portfolio_is_submitted_as_its_buckets(service: FakeService, client: loopwright.Client) -> None:
    service.on("POST", "/api/v1/jobs", job_json())
    program = exported(Perceptron(), 4, 16)
    client.submit(program, shapes={"n": range(1, 257)})
    plan = client.last_plan
    assert plan is not None
    assert service.requests[0].json()["shapes"] == plan.shapes
    assert len(plan.buckets) == 7
    client.submit(program, shapes=client.plan_shapes(program, {"n": range(1, 257)}, max_buckets=2))
    assert service.requests[1].json()["shapes"] == [{"n": 128}, {"n": 256}]


def test_a_portfolio_needs_a_symbolic_extent_of_the_model(client: loopwright.Client) -> None:
    with pytest.raises(InvalidModule, match="they have: n"):
        client.plan_shapes(exported(Perceptron(), 4, 16), {"m": range(1, 9)})


@pytest.mark.whole
def test_integers_are_padded_with_values_that_occur(service: FakeService, client: loopwright.Client) -> None:
    """A division by the zero of a padding would end the process."""

    class Division(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return 100 // x

    sizes = ({0: torch.export.Dim("n", min=2, max=512)},)
    x = torch.full((4, 8), 7, dtype=torch.int32)
    program = torch.export.export(Division(), (x,), dynamic_shapes=sizes)
    serve_bests(service, program, [16])
    built = client.compile(program, LLVM, shapes={"n": range(16, 17)})
    assert served(client) == [(16, 3)]
    np.testing.assert_array_equal(called(built, x)[0].numpy(), np.full((4, 8), 14))
