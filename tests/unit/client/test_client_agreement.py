"""A compiled program is compared with the model itself, in dtype, shape and values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper as oh
import pytest
import torch
from torch import nn

import loopwright
from loopwright import Client, WrongAnswer
from loopwright.codegen.host import cpu
from loopwright.frontends.onnx.reference import OnnxReference
from loopwright.frontends.reference import Call
from loopwright.frontends.torch.reference import TorchReference
from tests.support.cases import first
from tests.unit.client.fake_service import FakeService
from tests.unit.client.known_bests import LLVM, serve

MODEL = nn.Sequential(nn.Linear(8, 4), nn.ReLU()).eval()
INPUTS = (torch.linspace(-1, 1, 24).reshape(3, 8),)


@pytest.fixture(autouse=True)
def _nothing_is_known(service: FakeService) -> None:
    serve(service)


def onnx_model(*extents: Any) -> onnx.ModelProto:
    node = oh.make_node("Mul", ["x", "x"], ["y"])
    values = [oh.make_tensor_value_info(name, onnx.TensorProto.FLOAT, extents) for name in "xy"]
    graph = oh.make_graph([node], "squares", values[:1], values[1:])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)


def test_a_model_of_pytorch_agrees(client: Client) -> None:
    client.compile(MODEL, LLVM, example_inputs=INPUTS)
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.reference == "PyTorch"
    assert client.last_report.agreement.max_rel_error < client.last_report.agreement.tolerance == 1e-3
    assert "as PyTorch computes it: error " in str(client.last_report)


def test_a_quantised_model_may_be_a_step_off(client: Client) -> None:
    nodes = [
        oh.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        oh.make_node("MatMulInteger", ["q", "w", "z"], ["p"]),
        oh.make_node("Cast", ["p"], ["f"], to=onnx.TensorProto.FLOAT),
        oh.make_node("QuantizeLinear", ["f", "t", "z"], ["y"]),
    ]
    weight = np.random.default_rng(0).integers(-128, 128, (96, 16), "int8")
    weights = {"s": np.float32(0.02), "z": np.uint8(9), "w": weight, "t": np.float32(900)}
    x = oh.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [8, 96])
    y = oh.make_tensor_value_info("y", onnx.TensorProto.UINT8, [8, 16])
    constants = [onnx.numpy_helper.from_array(np.asarray(array), name) for name, array in weights.items()]
    graph = oh.make_graph(nodes, "integers", [x], [y], constants)
    client.compile(oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10), LLVM)
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.tolerance == 4e-2


@pytest.mark.parametrize("from_file", first(1, [True, False]))
def test_a_model_of_onnx_agrees(client: Client, tmp_path: Path, from_file: bool) -> None:
    model = onnx_model("n", 5)
    onnx.save(model, tmp_path / "squares.onnx")
    client.compile(tmp_path / "squares.onnx" if from_file else model, LLVM, shapes={"n": 3})
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.reference == "ONNX Runtime"


def gathered() -> onnx.ModelProto:
    """Rows of a table, of which there are ten, times a rate."""
    nodes = [oh.make_node("Gather", ["table", "words"], ["rows"]), oh.make_node("Mul", ["rows", "rate"], ["y"])]
    values = [
        oh.make_tensor_value_info("words", onnx.TensorProto.INT64, ["n"]),
        oh.make_tensor_value_info("rate", onnx.TensorProto.FLOAT, []),
    ]
    table = onnx.numpy_helper.from_array(np.arange(40, dtype="float32").reshape(10, 4), "table")
    output = oh.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 4])
    graph = oh.make_graph(nodes, "rows", values, [output], [table])
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", 18)], ir_version=10)


WORDS, RATE = np.array([9, 0, 7]), np.float32(16000)
EXAMPLES = [{"rate": RATE, "words": WORDS}, (WORDS, RATE), [torch.tensor(WORDS), RATE]]


@pytest.mark.parametrize("examples", EXAMPLES, ids=["by name", "in order", "of PyTorch"])
def test_a_model_of_onnx_is_compared_on_its_example_inputs(
    client: Client, monkeypatch: pytest.MonkeyPatch, examples: Any
) -> None:
    made: list[Any] = []
    right = OnnxReference.call

    def call(self: OnnxReference, *, special: bool = False) -> Call | None:
        made.append(right(self, special=special))
        return made[-1]

    monkeypatch.setattr(OnnxReference, "call", call)
    client.compile(gathered(), LLVM, shapes={"n": 3}, example_inputs=examples)
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert [list(each.inputs[0]) for each in made] == [[9, 0, 7], [9, 0, 7]]
    np.testing.assert_array_equal(made[0].outputs[0], 16000 * np.arange(40).reshape(10, 4)[WORDS])


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ({"words": WORDS}, "1 example inputs with the names words, and the model takes words, rate"),
        ((WORDS, RATE, RATE), "3 example inputs in order, and the model takes words, rate"),
        ((WORDS.astype("int32"), RATE), "example input words is of int32, and the model takes int64"),
    ],
)
def test_example_inputs_that_a_model_of_onnx_does_not_take_are_refused(examples: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        loopwright.frontends.to_program(loopwright.Model(gathered(), shapes={"n": 3}, example_inputs=examples))


@pytest.mark.parametrize(("change", "is_excused"), [(0.1, True), (0.001, False)])
def test_a_model_that_amplifies_rounding_may_differ_as_much(
    client: Client, monkeypatch: pytest.MonkeyPatch, change: float, is_excused: bool
) -> None:
    right = OnnxReference.call

    def call(self: OnnxReference, *, special: bool = False) -> Call:
        made = right(self, special=special)
        assert made is not None
        (output,) = made.outputs
        return Call(made.inputs, [output + 0.1], made.dtypes, lambda: [output + 0.1 + change])

    monkeypatch.setattr(OnnxReference, "call", call)
    if is_excused:
        client.compile(onnx_model(3, 5), LLVM)
    else:
        with pytest.raises(WrongAnswer, match="output 0 differs"):
            client.compile(onnx_model(3, 5), LLVM)


WRONG = [
    (lambda y: [y + 0.1], "output 0 differs from PyTorch's by "),
    (lambda y: [torch.where(y == y.max(), torch.nan, y)], "output 0 has NaN or infinities where PyTorch's has none"),
    (lambda y: [y.double()], r"output 0 is float32\[3, 4\], and PyTorch returns float64\[3, 4\]"),
    (lambda y: [y.reshape(4, 3)], r"output 0 is float32\[3, 4\], and PyTorch returns float32\[4, 3\]"),
    (lambda y: [y, y], "the program returns 1 tensors, and PyTorch 2"),
]


@pytest.mark.parametrize(("change", "message"), first(3, WRONG))
def test_another_answer_is_an_error(client: Client, monkeypatch: pytest.MonkeyPatch, change: Any, message: str) -> None:
    right = TorchReference.call

    def call(self: TorchReference, *, special: bool = False) -> Call:
        made = right(self, special=special)
        assert made is not None
        outputs: Sequence[Any] = change(*made.outputs)
        return Call(made.inputs, outputs, made.dtypes)

    monkeypatch.setattr(TorchReference, "call", call)
    with pytest.raises(WrongAnswer, match=message):
        client.compile(MODEL, LLVM, example_inputs=INPUTS)
    client.compile(MODEL, LLVM, example_inputs=INPUTS, verify=False)
    assert client.last_report is not None
    assert client.last_report.agreement is None


def test_special_values_are_compared_and_a_difference_is_reported(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    right, finite = TorchReference.call, False

    def call(self: TorchReference, *, special: bool = False) -> Call | None:
        made = right(self, special=special)
        assert made is not None
        assert torch.stack([each.isnan().any() for each in made.inputs]).any() == special
        return replace(made, outputs=[each.nan_to_num(0.0) for each in made.outputs]) if finite and special else made

    monkeypatch.setattr(TorchReference, "call", call)
    client.compile(MODEL, LLVM, example_inputs=INPUTS)
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.special == ""
    assert "with special values: the same" in str(client.last_report)
    finite = True
    client.compile(MODEL, LLVM, example_inputs=INPUTS)
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.special == (
        "output 0 has NaN or infinities where PyTorch's has none, or the other way round"
    )
    assert "with NaN or infinities in the inputs, output 0 has NaN" in caplog.text


def test_a_portfolio_is_compared_at_the_extents_of_its_example(client: Client) -> None:
    exported = torch.export.export(MODEL, INPUTS, dynamic_shapes=({0: torch.export.Dim("n")},))
    client.compile(exported, LLVM, shapes={"n": {2: 1, 4: 1}})
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    assert client.last_report.agreement.special == ""


class TooLarge:
    """A model of more than 2 GiB, as protobuf refuses to write it."""

    def SerializeToString(self) -> bytes:
        raise ValueError("Message onnx.ModelProto exceeds maximum protobuf size of 2GB")


@pytest.mark.whole
def test_what_cannot_be_compared_is_compiled(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    exported = torch.export.export(MODEL, INPUTS)
    without_inputs = torch.export.export(MODEL, INPUTS)
    without_inputs.example_inputs = None
    elsewhere = {"kind": "llvm", "mtriple": "aarch64-linux-gnu", "num-cores": 1}
    for model, target in (
        (without_inputs, LLVM),
        (exported, elsewhere),
        (onnx_model("n", 5), LLVM),
        (loopwright.frontends.to_program(exported).module, LLVM),
    ):
        client.compile(model, target)
        assert client.last_report is not None
        assert client.last_report.agreement is None
    monkeypatch.setattr(cpu, "flags", lambda: ("GenuineIntel", {"sse4_2", "popcnt"}))
    client.compile(exported, {"kind": "llvm", "mcpu": "haswell"})
    assert client.last_report.agreement is None
    assert OnnxReference(TooLarge(), {}).call() is None
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert OnnxReference(onnx_model(2, 5), {"x": [2, 5]}).call() is None


def test_a_call_is_made_on_copies() -> None:
    class Counting(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.add_(1)

    inputs = torch.zeros(3)
    call = TorchReference(torch.export.export(Counting(), (inputs,))).call()
    assert call is not None
    assert np.array_equal(inputs, np.zeros(3))
    assert np.array_equal(call.inputs[0], np.zeros(3))
    assert np.array_equal(call.outputs[0], np.ones(3))
