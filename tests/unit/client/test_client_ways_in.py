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
from loopwright.frontends import Options
from loopwright.program import Program

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


def run(program: Program, *inputs: np.ndarray) -> np.ndarray:
    from loopwright.codegen.weights import attach

    machine = relax.VirtualMachine(tvm.compile(attach(program.module, program.weights), "llvm"), tvm.cpu())
    return np.asarray(machine["main"](*map(tvm.runtime.tensor, inputs)).numpy())


def test_every_way_out_of_pytorch(layer: nn.Module, tmp_path: Path) -> None:
    exported = torch.export.export(layer, (X,))
    path = tmp_path / "layer.pt2"
    torch.export.save(exported, path)
    with torch.no_grad():
        expected = layer(X).numpy()
    ways: list[tuple[Any, Options]] = [
        (layer, Options(example_inputs=(X,))),
        (layer, Options(example_inputs=X)),
        (exported, Options()),
        (path, Options()),
        (str(path), Options()),
        (torch.fx.symbolic_trace(layer), Options(example_inputs=(X,))),
    ]
    for model, options in ways:
        program = frontends.to_program(model, options)
        assert program.weights
        np.testing.assert_allclose(run(program, X.numpy()), expected, rtol=1e-5, atol=1e-6)
        payload = frontends.to_payload(model, options)
        assert payload.format == "tvm-json"


class Branches(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + 1 if x.sum() > 0 else x - 1


class Exotic(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.special.bessel_j0(x)


@pytest.mark.parametrize(
    ("model", "inputs", "said"),
    [
        (Branches(), (X,), r"cannot capture Branches at .*\.py:\d+, `return x .*torch\.where"),
        (Exotic(), (X,), r"bessel_j0"),
        (Layer().eval(), (torch.ones(2, 5),), r"does not run on its example_inputs.*model\(\*example_inputs\)"),
        (Layer().eval(), (), r"does not run on its example_inputs.*missing 1 required positional argument"),
        (nn.Sequential(nn.BatchNorm1d(4)), (X,), r"training mode.*\.eval\(\)"),
    ],
    ids=["branch on values", "operator", "shape", "arguments", "training"],
)
def test_what_pytorch_models_cannot_be_taken(model: nn.Module, inputs: tuple[torch.Tensor, ...], said: str) -> None:
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(model, Options(example_inputs=inputs))


def test_options_are_asked_for_and_refused(layer: nn.Module) -> None:
    with pytest.raises(TypeError, match=r"Layer needs example_inputs=\(tensor, …\)"):
        frontends.to_program(layer)
    with pytest.raises(TypeError, match="knows its inputs"):
        frontends.to_program(torch.export.export(layer, (X,)), Options(example_inputs=(X,)))
    with pytest.raises(TypeError, match=r"spec is not for a torch\.nn\.Module"):
        frontends.to_program(layer, Options(example_inputs=(X,), spec={}))
    with pytest.raises(TypeError, match="example_inputs is not for TVMScript"):
        frontends.to_program("text", Options(example_inputs=(X,)))


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
    program = frontends.to_program(RelaxLayer(), Options(spec=spec))
    assert [str(param.name) for param in program.module["forward"].params] == ["x", "linear.weight", "linear.bias"]
    with pytest.raises(TypeError, match="needs spec="):
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
    with pytest.raises(TypeError, match="a list of TE tensors"):
        frontends.to_program([1, 2])
