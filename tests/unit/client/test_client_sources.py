"""Tasks of PyTorch's and ONNX's models come from their modules and nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from loopwright.codegen.target import target_from
from loopwright.frontends import to_program
from loopwright.model import Model
from tuner.task import extract_tasks

LLVM = target_from("llvm")


def sources(model: Any, example_inputs: Any = None) -> dict[str, tuple[str, ...]]:
    module = to_program(Model(model, example_inputs=example_inputs)).module
    return {task.workload.name: task.sources for task in extract_tasks(module, LLVM).tasks}


class Layer(torch.nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up, self.down = torch.nn.Linear(width, 2 * width), torch.nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.down(torch.nn.functional.gelu(self.up(self.norm(x))))


class Stack(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(Layer(24) for _ in range(2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return torch.softmax(x, -1)


def test_functions_come_from_the_modules_that_compute_them() -> None:
    found = sources(Stack(), (torch.randn(2, 5, 24),)).values()
    assert ("layers.0.up", "layers.1.up") in found
    parts = {f"layers.{layer}.{part}" for layer in (0, 1) for part in ("norm", "up", "down")}
    assert {source for each in found for source in each if source.startswith("layers")} == parts


def test_what_no_inner_module_computes_comes_from_a_line_of_the_model() -> None:
    [line] = {
        source for each in sources(Stack(), (torch.randn(2, 5, 24),)).values() for source in each if "py" in source
    }
    name, number = line.split(":")
    assert name == Path(__file__).name
    assert "torch.softmax" in Path(__file__).read_text().splitlines()[int(number) - 1]


def test_a_saved_program_says_where_its_functions_come_from(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(Stack(), (torch.randn(3, 24),)), tmp_path / "stack.pt2")
    assert ("layers.0.up", "layers.1.up") in sources(tmp_path / "stack.pt2").values()


def test_a_folded_convolution_comes_from_the_convolution() -> None:
    block = torch.nn.Sequential(torch.nn.Conv2d(5, 7, 3), torch.nn.BatchNorm2d(7), torch.nn.ReLU()).eval()
    assert list(sources(torch.nn.Sequential(block), (torch.randn(1, 5, 9, 9),)).values()) == [("0.0",)]


def test_projections_that_are_combined_come_from_all_of_them() -> None:
    class Projected(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.q, self.k = torch.nn.Linear(48, 48), torch.nn.Linear(48, 48)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return torch.relu(self.q(x)), torch.tanh(self.k(x))

    found = sources(Projected(), (torch.randn(1, 48),))
    assert {source for each in found.values() for source in each} >= {"q", "k"}


def product(**node: Any) -> onnx.ModelProto:
    made = helper.make_node("MatMul", ["x", "w"], ["scores"], **node)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3, 16])
    w = helper.make_tensor_value_info("w", TensorProto.FLOAT, [16, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 8])
    graph = helper.make_graph([made, helper.make_node("Relu", ["scores"], ["y"])], "g", [x, w], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


@pytest.mark.parametrize(
    ("name", "scopes", "source"),
    [
        ("/encoder/layer.0/query/MatMul", None, "/encoder/layer.0/query/MatMul"),
        ("", None, "scores"),
        ("node_matmul", "['', 'encoder.layer.0', 'encoder.layer.0.query', 'matmul']", "encoder.layer.0.query"),
        ("node_matmul", "__import__('os').getcwd()", "node_matmul"),
    ],
)
def test_a_function_comes_from_a_node(name: str, scopes: str | None, source: str) -> None:
    model = product(name=name)
    if scopes is not None:
        entry = model.graph.node[0].metadata_props.add()
        entry.key, entry.value = "pkg.torch.onnx.name_scopes", scopes
    assert list(sources(model).values()) == [(source,)]


def test_the_nodes_of_a_loop_come_from_the_loop() -> None:
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["more"], ["goes_on"]),
            helper.make_node("Softmax", ["state"], ["next"], name="inner"),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("more", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, [4, 32]),
        ],
        [
            helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("next", TensorProto.FLOAT, [4, 32]),
        ],
    )
    count = helper.make_tensor("count", TensorProto.INT64, [], [2])
    loop = helper.make_node("Loop", ["count", "", "x"], ["y"], name="decode", body=body)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4, 32]) for name in "xy")
    graph = helper.make_graph([loop], "g", [x], [y], [count])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    assert {source for each in sources(model).values() for source in each} == {"decode"}
