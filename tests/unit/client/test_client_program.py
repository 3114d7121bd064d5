"""Weights stay here: what is sent, and what comes back together."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
import tvm
from torch import nn
from tvm import relax
from tvm.relax.frontend.torch import from_exported_program
from tvm_ffi import structural_equal

from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.weights.parameters import attach
from loopwright.frontends.program import Program, detach

TARGET = tvm.target.Target("llvm")


class Net(nn.Module):
    """Convolutions with and without bias before normalisations, a product, and a scalar."""

    def __init__(self, affine: bool = True) -> None:
        super().__init__()
        self.conv0, self.norm0 = nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8, affine=affine)
        self.conv1, self.norm1 = nn.Conv2d(8, 6, 3, stride=2), nn.BatchNorm2d(6, affine=affine)
        self.linear = nn.Linear(6, 5)
        for norm in (self.norm0, self.norm1):
            nn.init.uniform_(norm.running_mean, -1, 1)
            nn.init.uniform_(norm.running_var, 0.5, 2)
            if affine:
                nn.init.uniform_(norm.weight, -1, 1)
                nn.init.uniform_(norm.bias, -1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm0(self.conv0(x)))
        return self.linear(self.norm1(self.conv1(x)).mean((2, 3)) * 0.5)


def imported(model: nn.Module, x: torch.Tensor) -> tvm.IRModule:
    return from_exported_program(torch.export.export(model, (x,)), unwrap_unit_return_tuple=True)


def lowered(mod: tvm.IRModule) -> tvm.IRModule:
    with TARGET:
        return relax.get_pipeline("zero")(mod)


def run(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    machine = relax.VirtualMachine(tvm.compile(mod, TARGET), tvm.cpu())
    return np.asarray(machine["main"](tvm.runtime.tensor(x)).numpy())


@functools.cache
def network(*, affine: bool = True) -> tuple[nn.Module, torch.Tensor, Program]:
    torch.manual_seed(0)
    model, x = Net(affine).eval(), torch.randn(2, 3, 12, 12)
    return model, x, detach(imported(model, x))


@pytest.mark.parametrize("affine", [pytest.param(True, marks=pytest.mark.whole), False])
def test_a_model_computes_the_same_without_and_with_its_weights(affine: bool) -> None:
    model, x, program = network(affine=affine)
    with torch.no_grad():
        expected = model(x).numpy()
    for mod in (attach(program.module, program.weights), attach(lowered(program.module), program.weights)):
        np.testing.assert_allclose(run(mod, x.numpy()), expected, rtol=1e-4, atol=1e-5)


def test_what_is_sent_holds_no_weights() -> None:
    _, _, program = network()
    sent = module_from_json(module_to_json(program.module))
    main = sent["main"]
    assert [str(param.name) for param in main.params] == ["x", *program.weights]
    assert detach(sent).weights == {}
    assert "metadata" not in sent.script()


def test_normalisations_are_folded_into_convolutions() -> None:
    text = network()[2].module.script()
    for operator, times in (
        ("conv2d", 2),
        ("R.add", 3),
        ("subtract", 0),
        ("divide", 0),
        ("sqrt", 0),
        ("batch_norm", 0),
    ):
        assert text.count(operator) == times, operator
    assert text.count("R.multiply") == 1  # by the scalar
    assert text.count("permute_dims") == 1  # of the input; the weights are transposed already


def test_scalars_are_part_of_the_program() -> None:
    _, _, program = network()
    assert all(np.prod(value.shape) > 1 for value in program.weights.values())
    assert "R.const(0.5" in program.module.script()


def test_a_module_without_constants_is_left_alone() -> None:
    builder = relax.BlockBuilder()
    x = relax.Var("x", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.nn.relu(x)))
    mod = builder.get()
    assert detach(mod) == Program(mod)


def test_equal_constants_are_one_parameter_and_names_do_not_clash() -> None:
    weight = relax.const(np.arange(16, dtype="float32").reshape(4, 4))
    builder = relax.BlockBuilder()
    x = relax.Var("weight_0", relax.TensorType((4, 4), "float32"))
    with builder.function("main", [x]):
        builder.emit_func_output(builder.emit(relax.op.matmul(relax.op.matmul(x, weight), weight)))
    program = detach(builder.get())
    assert [str(param.name) for param in program.module["main"].params] == ["weight_0", "weight_0_"]
    value = np.eye(4, dtype="float32")
    np.testing.assert_allclose(
        run(attach(program.module, program.weights), value), weight.value.numpy() @ weight.value.numpy()
    )


def test_bound_parameters_are_taken_out_again() -> None:
    _, _, program = network()
    bound = relax.transform.BindParams("main", program.weights)(program.module)
    again = detach(bound)
    assert structural_equal(again.module, program.module)
    assert list(again.weights) == list(program.weights)


def test_a_name_that_no_function_has_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing"):
        attach(network()[2].module, {"nothing": np.zeros(2)})
