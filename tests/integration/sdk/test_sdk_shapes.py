"""A portfolio of shapes through the service: submitted as buckets, compiled to one module."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import tvm
from torch import nn
from tvm import relax

from loopwright import Client
from tests.integration.sdk.test_cli import Cli
from tests.support.sdk import tuned
from tests.support.service_client import ServiceClient

SHAPES = {"n": {8: 50, 64: 50}}


@pytest.fixture(scope="module")
def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(96, 64), nn.ReLU()).eval()


@pytest.fixture(scope="module")
def program(model: nn.Module) -> torch.export.ExportedProgram:
    sizes = ({0: torch.export.Dim("n", min=2, max=512)},)
    return torch.export.export(model, (torch.rand(4, 96),), dynamic_shapes=sizes)


def test_a_portfolio_is_tuned_in_one_job_and_runs_at_every_extent(
    service: ServiceClient, client: Client, model: nn.Module, program: torch.export.ExportedProgram, tmp_path: Path
) -> None:
    job = tuned(client.submit(program, shapes=SHAPES, max_trials=24))
    assert [task.name.rpartition(" ")[2] for task in job.tasks] == ["[n=8]", "[n=64]"]
    built = client.compile(program, shapes=SHAPES)
    report = client.last_report
    assert report is not None
    assert report.misses == ()
    assert [each.extent for each in report.served] == [8, 64]
    largest = report.served[1]
    assert largest.smallest is not None
    assert largest.smallest < largest.extent, "a product of 64 rows is tuned well enough for fewer rows"
    machine = relax.VirtualMachine(built, tvm.cpu())
    for extent in (1, 5, 8, 9, largest.smallest, 63, 64, 65):
        x = torch.rand(extent, 96)
        found = torch.from_dlpack(machine["main"](tvm.runtime.from_dlpack(x)))
        torch.testing.assert_close(found, model(x).detach(), rtol=1e-3, atol=1e-3)

    torch.export.save(program, tmp_path / "net.pt2")
    [name] = {str(symbol) for node in program.graph.find_nodes(op="placeholder") for symbol in _symbols(node)}
    done = Cli(tmp_path, service)("schedule", "compile", "net.pt2", "-o", "net.so", "--shape", f"{name}=8:50,64:50")
    assert done.status == 0, done.err
    assert "2 buckets for 2 extents" in done.err
    assert (tmp_path / "net.so").exists()


def _symbols(node: torch.fx.Node) -> list[torch.SymInt]:
    value = node.meta.get("val")
    return [extent for extent in getattr(value, "shape", ()) if isinstance(extent, torch.SymInt)]
