"""Symbolic extents of exported PyTorch programs, by the names of the user's ``Dim``s."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
import tvm
from torch import nn
from torch.export import Dim
from tvm import relax

from loopwright import Client, frontends
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.program.lowering import bind_shapes
from loopwright.errors import UnsupportedModel
from tests.unit.client.fake_service import Answer, FakeService, job_json
from tests.unit.client.known_bests import serve

BATCH, LENGTH = Dim("batch"), Dim("length", min=2, max=99)


class Rows(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.linear(x) + y.sum(), y * 2


class Both(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


class Either(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cond(y.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))


@pytest.fixture
def exported() -> Any:
    torch.manual_seed(0)
    shapes = {"x": {0: BATCH}, "y": {0: 2 * BATCH, 1: LENGTH}}
    return torch.export.export(Rows().eval(), (torch.ones(2, 4), torch.ones(4, 5)), dynamic_shapes=shapes)


def test_a_model_is_submitted_and_compiled_by_the_names_of_its_dims(
    service: FakeService, client: Client, exported: Any
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    client.submit(exported, "llvm", shapes={"batch": 3, "length": 7})
    assert service.requests[0].json()["shapes"] == {"batch": 3, "length": 7}
    serve(service)
    x, y = torch.randn(3, 4), torch.randn(6, 7)
    machine = relax.VirtualMachine(client.compile(exported, "llvm", shapes={"batch": 3, "length": 7}), tvm.cpu())
    with torch.no_grad():
        expected = exported.module()(x, y)
    for got, wanted in zip(machine["main"](*map(tvm.runtime.from_dlpack, (x, y))), expected, strict=True):
        torch.testing.assert_close(torch.from_dlpack(got), wanted)


def test_a_name_that_is_none_is_answered_by_those_of_dims(exported: Any) -> None:
    module = frontends.to_program(exported).module
    with pytest.raises(InvalidModule, match="batch, length"):
        bind_shapes(module, {"rows": 3})
    assert {str(name): int(limit) for name, limit in module["main"].attrs["tir_var_upper_bound"].items()} == {
        "length": 99
    }


@pytest.mark.parametrize(
    ("declared", "extent", "allowed"),
    [
        (Dim("batch", max=64), 400, "1 to 64"),
        (Dim("batch", min=4, max=64), 3, "4 to 64"),
        (Dim("batch", min=4), 3, "4 or more"),
    ],
)
def test_an_extent_outside_of_the_range_of_its_dim_is_refused(declared: Any, extent: int, allowed: str) -> None:
    inputs = (torch.ones(5, 4), torch.ones(5, 4))
    module = frontends.to_program(
        torch.export.export(Both(), inputs, dynamic_shapes=({0: declared}, {0: declared}))
    ).module
    with pytest.raises(InvalidModule, match=f"batch.*{extent}.*{allowed}"):
        bind_shapes(module, {"batch": extent})
    assert bind_shapes(module, {"batch": 5})["main"].params[0].ty.shape[0] == 5


def test_branches_know_the_names_of_dims() -> None:
    inputs = (torch.ones(3, 4), torch.ones(3))
    either = torch.export.export(Either(), inputs, dynamic_shapes=({0: BATCH}, {0: BATCH}))
    bound = bind_shapes(frontends.to_program(either).module, {"batch": 5})
    assert [int(extent) for extent in bound["main"].params[0].ty.shape] == [5, 4]


def test_files_and_extents_without_a_dim_have_the_names_of_pytorch(tmp_path: Path) -> None:
    inputs = (torch.ones(3, 4), torch.ones(3, 4))
    automatic = torch.export.export(Both(), inputs, dynamic_shapes=({0: Dim.AUTO}, {0: Dim.AUTO}))
    torch.export.save(
        torch.export.export(Both(), inputs, dynamic_shapes=({0: BATCH}, {0: BATCH})), tmp_path / "rows.pt2"
    )
    for model in (automatic, tmp_path / "rows.pt2"):
        (extent, _) = frontends.to_program(model).module["main"].params[0].ty.shape
        assert re.fullmatch(r"s\d+", str(extent.name))


def test_an_extent_within_expressions_only_is_refused() -> None:
    inputs = (torch.ones(3, 4), torch.ones(3, 4))
    hidden = torch.export.export(Both(), inputs, dynamic_shapes=({0: BATCH + 1}, {0: BATCH + 1}))
    with pytest.raises(UnsupportedModel, match="batch"):
        frontends.to_program(hidden)
