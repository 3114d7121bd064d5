"""Indices that data decides are limited in lowered models, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program
from tvm.target import Target

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.bounds import unproven
from loopwright.codegen.program.clamping import clamp
from loopwright.codegen.program.lowering import lower
from tests.support.cases import first
from tests.support.programs import product
from tuner.task import extract_tasks

LLVM = Target("llvm")


class Takes(nn.Module):
    def forward(self, x: torch.Tensor, i: torch.Tensor) -> torch.Tensor:
        return torch.gather(x, 1, i) + x[0, 0]


MODELS = {
    "embedding": (nn.Embedding(100, 16), [torch.randint(0, 100, (2, 7))]),
    "gather": (Takes(), [torch.randn(3, 9), torch.randint(0, 9, (3, 4))]),
    "reflections": (nn.ReflectionPad2d(2), [torch.randn(1, 8, 7, 7)]),
    "bilinear": (nn.Upsample(scale_factor=2, mode="bilinear"), [torch.randn(1, 8, 7, 7)]),
    "transposed convolution": (nn.ConvTranspose2d(8, 16, 3, stride=2, padding=1), [torch.randn(1, 8, 15, 15)]),
    "windows of different sizes": (nn.AdaptiveAvgPool2d((3, 5)), [torch.randn(1, 8, 14, 17)]),
    "attention beyond a vector": (nn.TransformerEncoderLayer(32, 4, 64, batch_first=True), [torch.randn(2, 9, 32)]),
}


class Masked(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


MODELS["masks beyond a vector"] = (Masked(), [torch.randn(1, 2, 9, 8)] * 3)


def _lowered(model: nn.Module, inputs: list[torch.Tensor]) -> tvm.IRModule:
    return lower(from_exported_program(torch.export.export(model.eval(), tuple(inputs))), LLVM)


@pytest.mark.parametrize("name", first(5, list(MODELS)))
def test_lowered_models_are_proven_and_compute_the_same(name: str) -> None:
    model, inputs = MODELS[name]
    mod = _lowered(model, inputs)
    assert [finding for _, func in prim_funcs(mod) for finding in unproven(func)] == []
    assert not [note for note in extract_tasks(mod, LLVM).notes if "not proven" in note]
    machine = relax.VirtualMachine(tvm.compile(mod, LLVM), tvm.cpu())
    weights = [tvm.runtime.tensor(each.detach().numpy()) for each in model.state_dict().values()]
    wanted = len(mod["main"].params)
    given = [tvm.runtime.tensor(each.numpy()) for each in inputs] + weights
    found = machine["main"](*given[:wanted])
    found = found if isinstance(found, tvm.runtime.Tensor) else found[0]
    with torch.no_grad():
        np.testing.assert_allclose(found.numpy(), model(*inputs).numpy(), rtol=1e-4, atol=1e-5)


def test_an_index_beyond_the_table_meets_its_ends() -> None:
    model = nn.Embedding(10, 4)
    mod = _lowered(model, [torch.zeros(3, dtype=torch.int64)])
    machine = relax.VirtualMachine(tvm.compile(mod, LLVM), tvm.cpu())
    places = tvm.runtime.tensor(np.array([-(2**30), 4, 2**30], "int64"))
    table = model.weight.detach().numpy()
    arguments = [places, tvm.runtime.tensor(table)][: len(mod["main"].params)]
    found = machine["main"](*arguments)
    found = found if isinstance(found, tvm.runtime.Tensor) else found[0]
    np.testing.assert_array_equal(found.numpy(), table[[0, 4, 9]])


def test_functions_without_such_indices_are_not_touched() -> None:
    mod = tvm.IRModule({"main": tvm.script.from_source(product(16))})
    assert clamp(mod)["main"].same_as(mod["main"])
