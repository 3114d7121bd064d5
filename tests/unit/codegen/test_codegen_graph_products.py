"""Products, what follows them, and the shapes between."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax

from loopwright.codegen.program.lowering import lower
from tests.support.cases import first
from tests.support.models import LLVM, Calls, called, check


def normal(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(len(shape)))


@pytest.mark.parametrize(
    "activation",
    first(2, [nn.GELU(), nn.ELU(), nn.GELU("tanh"), nn.SiLU(), nn.ReLU(), nn.Tanh(), nn.Hardswish()]),
    ids=lambda module: type(module).__name__,
)
def test_a_layer_over_sequences_is_one_function_with_its_activation(activation: nn.Module) -> None:
    mod = check(nn.Sequential(nn.Linear(16, 24), activation), normal(2, 5, 16))
    [name] = called(mod)
    assert name.startswith("fused_matmul_add_")


def test_a_logarithm_that_is_exact_near_zero_is_computed_apart() -> None:
    mod = check(nn.Sequential(nn.Linear(16, 24), nn.Mish()), normal(2, 5, 16))
    assert called(mod)[0] == "fused_matmul_add"
    assert "log1p" in called(mod)


def test_a_residual_is_added_by_the_product_before_it() -> None:
    mod = check(Calls(lambda x, layer: x + torch.relu(layer(x)), layer=nn.Linear(16, 16)), normal(2, 5, 16))
    assert called(mod) == ["fused_matmul_add_relu_add"]


def test_products_over_sequences_are_those_of_matrices() -> None:
    models = [nn.Sequential(nn.Linear(16, 24), nn.ReLU()) for _ in range(2)]
    of_sequences, of_rows = check(models[0], normal(2, 5, 16)), check(models[1], normal(10, 16))
    assert "fused_matmul_add_relu" in of_sequences.script()
    blocks = [str(mod["fused_matmul_add_relu"].body) for mod in (of_sequences, of_rows)]
    assert blocks[0].replace("lv", "x").count("v_k") == blocks[1].count("v_k")
    assert "//" not in blocks[0]


def test_batched_products_copy_nothing() -> None:
    a, b = normal(2, 3, 5, 8), normal(2, 3, 8, 7)
    assert called(check(Calls(torch.matmul), a, b)) == ["matmul"]
    assert called(check(Calls(lambda a, b: a @ b.transpose(-1, -2)), a, normal(2, 3, 7, 8))) == ["matmul"]


def test_a_layer_that_transposes_there_and_back_does_neither() -> None:
    def forward(x: torch.Tensor, layer: nn.Module) -> Any:
        return layer(x.transpose(0, 1)).transpose(0, 1) + x

    assert called(check(Calls(forward, layer=nn.Linear(16, 16)), normal(2, 5, 16))) == ["fused_matmul_add_add"]


def test_weights_that_are_parameters_are_read_transposed() -> None:
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType(shape, "float32")) for name, shape in (("x", (2, 5, 8)), ("w", (7, 8))))
    with builder.function("main", [x, w]):
        product = builder.emit(relax.op.matmul(x, relax.op.permute_dims(w)))
        builder.emit_func_output(builder.emit(relax.op.nn.relu(product)))
    mod = lower(builder.get(), LLVM)
    assert called(mod) == ["fused_matmul_relu"]
    assert list(mod["fused_matmul_relu"].params[0].shape) == [10, 8]
    values = normal(2, 5, 8).numpy(), normal(7, 8).numpy()
    machine = relax.VirtualMachine(tvm.compile(mod, LLVM), tvm.cpu())
    got = machine["main"](*map(tvm.runtime.tensor, values)).numpy()
    np.testing.assert_allclose(got, np.maximum(values[0] @ values[1].T, 0), rtol=1e-4, atol=1e-5)


def test_symbolic_shapes_are_left_alone() -> None:
    builder = relax.BlockBuilder()
    n = tvm.tirx.Var("n", "int64")
    x = relax.Var("x", relax.TensorType((n, 5, 8), "float32"))
    w = relax.Var("w", relax.TensorType((8, 7), "float32"))
    with builder.function("main", [x, w]):
        product = builder.emit(relax.op.matmul(x, w))
        builder.emit_func_output(builder.emit(relax.op.nn.relu(product)))
    assert called(lower(builder.get(), LLVM)) == ["fused_matmul_relu"]


def test_lowering_twice_is_lowering_once() -> None:
    mod = check(nn.Sequential(nn.Linear(16, 24), nn.GELU()), normal(2, 5, 16))
    again = lower(mod, LLVM)
    assert called(again) == called(mod)
