"""PyTorch, ONNX, TVM's own front end, tensor expressions: what is made of them, what is said where it fails."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
import tvm
from onnx import TensorProto, helper, numpy_helper
from torch import nn
from tvm import relax, te
from tvm.relax.frontend import nn as relax_nn

from loopwright import frontends
from loopwright.errors import UnsupportedModel
from loopwright.frontends.program import Program
from loopwright.model import Model

X = torch.ones(2, 4)


class Layer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.linear(x))


@pytest.fixture
def layer() -> nn.Module:
    torch.manual_seed(0)
    return Layer().eval()


def machine_of(program: Program) -> relax.VirtualMachine:
    from loopwright.codegen.weights.parameters import attach

    return relax.VirtualMachine(tvm.compile(attach(program.module, program.weights), "llvm"), tvm.cpu())


def run(program: Program, *inputs: np.ndarray) -> np.ndarray:
    return np.asarray(machine_of(program)["main"](*map(tvm.runtime.tensor, inputs)).numpy())


@pytest.mark.whole
def test_every_way_out_of_pytorch(layer: nn.Module, tmp_path: Path) -> None:
    exported = torch.export.export(layer, (X,))
    path = tmp_path / "layer.pt2"
    torch.export.save(exported, path)
    with torch.no_grad():
        expected = layer(X).numpy()
    ways = [
        Model(layer, example_inputs=(X,)),
        Model(layer, example_inputs=X),
        Model(exported),
        Model(path),
        Model(str(path)),
        Model(torch.fx.symbolic_trace(layer), example_inputs=(X,)),
    ]
    for model in ways:
        program = frontends.to_program(model)
        assert program.weights
        np.testing.assert_allclose(run(program, X.numpy()), expected, rtol=1e-5, atol=1e-6)
        payload = frontends.to_payload(model)
        assert payload.format == "tvm-json"


class Mixed(nn.Module):
    """Products and convolutions of every kind, with and without biases."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3, stride=2, padding=1, groups=1)
        self.plain = nn.Conv2d(4, 4, 3, dilation=2, padding="same", groups=2, bias=False)
        self.transposed = nn.ConvTranspose2d(4, 3, 2, stride=2, output_padding=1)
        self.line = nn.Conv1d(3, 5, 3)
        self.unline = nn.ConvTranspose1d(5, 8, 3)
        self.linear = nn.Linear(8, 6)
        self.unbiased = nn.Linear(6, 6, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.transposed(self.plain(torch.relu(self.convolution(x))))
        x = self.unline(self.line(x.flatten(2)))
        x = self.unbiased(self.linear(x.transpose(1, 2)))
        x = torch.baddbmm(x[:, :6, :6], x[:, :6], x[:, :6].transpose(1, 2), beta=0.5, alpha=0.25)
        return torch.addmm(x[0, 0], x[0], x[0], beta=2, alpha=0.5)


@pytest.mark.parametrize(
    ("dtype", "rtol"),
    [
        pytest.param(torch.float16, 4e-3, marks=pytest.mark.whole),
        pytest.param(torch.bfloat16, 4e-2, marks=pytest.mark.whole),
        pytest.param(torch.float32, 1e-5, marks=pytest.mark.whole),
        pytest.param(torch.float64, 1e-12, marks=pytest.mark.whole),
    ],
    ids=str,
)
def test_models_keep_their_dtype(dtype: torch.dtype, rtol: float) -> None:
    torch.manual_seed(0)
    model, x = Mixed().eval().to(dtype), torch.randn(2, 3, 8, 8, dtype=dtype)
    with torch.no_grad():
        expected = model(x)
    program = frontends.to_program(Model(model, example_inputs=x))
    result = torch.from_dlpack(machine_of(program)["main"](tvm.runtime.from_dlpack(x)))
    assert result.dtype == dtype
    scale = float(expected.abs().max())
    np.testing.assert_allclose(result.double(), expected.double(), rtol=0, atol=rtol * scale)


class Named(nn.Module):
    def forward(self, left: torch.Tensor, right: torch.Tensor | None = None, *, factor: Any = None) -> torch.Tensor:
        return left - (left if right is None else right) * (1 if factor is None else factor)


@pytest.mark.parametrize(
    "given",
    [
        {"left": X, "factor": torch.full((2, 4), 3.0)},
        {"left": X, "right": 2 * X, "factor": torch.full((2, 4), 3.0)},
        (X, 2 * X),
    ],
    ids=["some by name", "all by name", "by position"],
)
def test_inputs_have_names_or_places(given: Any) -> None:
    program = frontends.to_program(Model(Named().eval(), example_inputs=given))
    values = list(given.values()) if isinstance(given, dict) else list(given)
    expected = Named()(**given) if isinstance(given, dict) else Named()(*given)
    np.testing.assert_array_equal(run(program, *(value.numpy() for value in values)), expected.numpy())


@pytest.mark.parametrize(
    "given",
    [
        X.numpy(),
        (X.numpy()[::-1],),
        (tvm.runtime.tensor(X.numpy()),),
        {"x": X.numpy()},
        torch.ones(4, 2).t(),
        torch.ones(2, 8)[:, ::2],
    ],
    ids=["NumPy", "NumPy backwards", "TVM", "NumPy by name", "transposed", "strided"],
)
def test_inputs_may_come_in_any_form(layer: nn.Module, given: Any) -> None:
    program = frontends.to_program(Model(layer, example_inputs=given))
    with torch.no_grad():
        np.testing.assert_allclose(run(program, X.numpy()), layer(X).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("given", "said"),
    [(X.to("meta"), "meta"), ((X.to_sparse(),), r"\.to_dense\(\)")],
    ids=["meta", "sparse"],
)
def test_inputs_need_values_in_rows(layer: nn.Module, given: Any, said: str) -> None:
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(Model(layer, example_inputs=given))


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class Exotic(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x)


@pytest.mark.parametrize(
    ("model", "inputs", "said"),
    [
        (Branches(), (X,), r"Branches.*\.py:\d+.*torch\.where"),
        (Exotic(), (X,), r"bessel_j0"),
        (Layer().eval(), (torch.ones(2, 5),), "example_inputs"),
        (Layer().eval(), (), "example_inputs"),
        (nn.Sequential(nn.BatchNorm1d(4)), (X,), r"\.eval\(\)"),
    ],
    ids=["branch on values", "operator", "shape", "arguments", "training"],
)
def test_what_pytorch_models_cannot_be_taken(model: nn.Module, inputs: tuple[torch.Tensor, ...], said: str) -> None:
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(Model(model, example_inputs=inputs))


@pytest.mark.filterwarnings("ignore:`?torch.jit:DeprecationWarning")
def test_a_traced_model_is_refused_with_the_module_to_give(layer: nn.Module) -> None:
    traced = torch.jit.trace(layer, X)
    with pytest.raises(UnsupportedModel, match=r"torch\.nn\.Module"):
        frontends.to_program(Model(traced, example_inputs=(X,)))


def test_options_are_asked_for_and_refused(layer: nn.Module) -> None:
    with pytest.raises(TypeError, match="example_inputs="):
        frontends.to_program(layer)
    with pytest.raises(TypeError, match="inputs"):
        frontends.to_program(Model(torch.export.export(layer, (X,)), example_inputs=(X,)))
    with pytest.raises(TypeError, match="spec"):
        frontends.to_program(Model(layer, example_inputs=(X,), spec={}))
    with pytest.raises(TypeError, match="example_inputs"):
        frontends.to_program(Model("text", example_inputs=(X,)))


@pytest.mark.parametrize("name", ["missing.pt2", "missing.onnx"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileNotFoundError, match=name):
        frontends.to_program(tmp_path / name)


def _onnx(operator: str = "Relu") -> onnx.ModelProto:
    weight = numpy_helper.from_array(np.arange(12, dtype="float32").reshape(4, 3), "w")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node(operator, ["h"], ["y"])],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3])],
        [weight],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_onnx_as_an_object_and_as_a_file(tmp_path: Path) -> None:
    model = _onnx()
    onnx.save(model, tmp_path / "model.onnx")
    for way in (model, tmp_path / "model.onnx", str(tmp_path / "model.onnx")):
        program = frontends.to_program(way)
        assert len(program.weights) == 1
        expected = np.maximum(X.numpy() @ np.arange(12, dtype="float32").reshape(4, 3), 0)
        np.testing.assert_allclose(run(program, X.numpy()), expected)


def test_an_onnx_operator_that_tvm_does_not_know_is_named() -> None:
    with pytest.raises(UnsupportedModel, match="StringNormalizer"):
        frontends.to_program(_onnx("StringNormalizer"))


class RelaxLayer(relax_nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = relax_nn.Linear(4, 3)

    def forward(self, x: relax_nn.Tensor) -> relax_nn.Tensor:
        return relax_nn.op.relu(self.linear(x))


def test_relax_nn_with_its_spec() -> None:
    spec = {"forward": {"x": relax_nn.spec.Tensor([2, 4], "float32")}}
    program = frontends.to_program(Model(RelaxLayer(), spec=spec))
    assert [str(param.name) for param in program.module["forward"].params] == ["x", "linear.weight", "linear.bias"]
    with pytest.raises(TypeError, match="spec="):
        frontends.to_program(RelaxLayer())


def test_tensor_expressions() -> None:
    a = te.placeholder((4, 4), "float32", "A")
    b = te.compute((4, 4), lambda i, j: a[i, j] * 2, "B")
    module = frontends.to_program([a, b]).module
    assert [str(var.name_hint) for var in module.get_global_vars()] == ["main"]
    out = tvm.runtime.empty((4, 4), "float32")
    tvm.compile(module, "llvm")["main"](tvm.runtime.tensor(np.ones((4, 4), "float32")), out)
    np.testing.assert_array_equal(out.numpy(), 2)


def test_a_list_of_other_things_is_no_tensor_expression() -> None:
    with pytest.raises(TypeError, match="TE tensors"):
        frontends.to_program([1, 2])
