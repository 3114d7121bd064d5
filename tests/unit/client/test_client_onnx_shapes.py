"""Extents of ONNX models: names of those without one, and values that are bound before the model is translated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax

from loopwright import Client, UnsupportedModel, frontends
from loopwright.codegen.errors import InvalidModule
from loopwright.frontends.onnx.importer import import_model
from loopwright.model import Model
from tests.unit.client.fake_service import Answer, FakeService, job_json
from tests.unit.client.known_bests import serve

LLVM = {"kind": "llvm", "num-cores": 1}


def widened(*inputs: Sequence[int | str | None]) -> onnx.ModelProto:
    """The sum of its inputs, and of as many ones as the last axis of the first has, which must be known."""
    values = [
        helper.make_tensor_value_info(f"x.{place}", TensorProto.FLOAT, extents) for place, extents in enumerate(inputs)
    ]
    nodes = [
        helper.make_node("Shape", ["x.0"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["extent"]),
        helper.make_node("Concat", ["ones", "extent"], ["wanted"], axis=0),
        helper.make_node("Expand", ["one", "wanted"], ["wide"]),
        helper.make_node("Sum", ["wide", *(each.name for each in values)], ["y"]),
    ]
    weights = {"last": np.array([-1]), "ones": np.array([1]), "one": np.ones(1, "float32")}
    given = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    stated = helper.make_tensor_value_info("y", TensorProto.FLOAT, [-1, "other"])
    graph = helper.make_graph(nodes, "graph", values, [stated], given)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def shape_of(*inputs: Sequence[int | str | None], **shapes: int) -> list[Any]:
    """The shape of the first input of a translated model."""
    values = [
        helper.make_tensor_value_info(f"x.{place}", TensorProto.FLOAT, extents) for place, extents in enumerate(inputs)
    ]
    graph = helper.make_graph([helper.make_node("Relu", ["x.0"], ["y"])], "graph", values, values[:1])
    graph.output[0].name = "y"
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    given = model.SerializeToString()
    program = frontends.to_program(Model(model, shapes=shapes))
    assert model.SerializeToString() == given
    return [getattr(extent, "value", None) or str(extent) for extent in program.module["main"].params[0].ty.shape]


def test_extents_without_a_name_have_that_of_their_input() -> None:
    assert shape_of([-1, 0, None, "?", "n", 5], x_0_1=2, x_0_2=3, n=4) == ["x_0_0", 2, 3, "x_0_3", 4, 5]


def test_extents_that_are_sums_have_the_values_of_their_parts() -> None:
    assert shape_of([1, "past + new", "2 * new", "rest + 1"], ["past", "new"], past=3, new=4)[1:3] == [7, 8]


def test_an_extent_of_zero_needs_a_value() -> None:
    with pytest.raises(UnsupportedModel, match="has no elements; give the extent x_0_0"):
        frontends.to_program(Model(widened([0, 2])))


@pytest.mark.parametrize(
    ("shapes", "said"),
    [({"m": 3}, "names m, .* extents are: n, x_0_0"), ({"n": 0}, "n less than one"), ({"n": 1, "m": 2}, "names m,")],
)
def test_extents_that_no_input_has_are_refused(shapes: dict[str, int], said: str) -> None:
    with pytest.raises(InvalidModule, match=said):
        frontends.to_program(Model(widened([None, "n"]), shapes=shapes))


def test_a_model_that_computes_with_its_shape_is_compiled(client: Client, service: FakeService) -> None:
    serve(service)
    built = client.compile(widened([-1, "n"], [1, "n"]), LLVM, shapes={"x_0_0": 2, "n": 3})
    assert client.last_report is not None
    assert client.last_report.agreement is not None
    x, y = np.ones((2, 3), "float32"), np.arange(3, dtype="float32").reshape(1, 3)
    result = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x), tvm.runtime.tensor(y))
    assert np.array_equal(result.numpy(), 1 + x + y)


@pytest.mark.parametrize(
    ("shapes", "sent"),
    [
        ({"batch": 2, "n": 3}, None),
        ([{"batch": 2, "n": 3}, {"batch": 4, "n": 3}], [{"batch": 2}, {"batch": 4}]),
        ([{"batch": 2, "n": 3}], None),
        ({"batch": range(2, 3), "n": 3}, [{"batch": 2}]),
    ],
)
def test_extents_that_are_bound_are_not_sent_again(
    client: Client, service: FakeService, shapes: Any, sent: Any
) -> None:
    service.on("POST", "/api/v1/jobs", Answer(job_json(), 202))
    client.submit(widened(["batch", "n"]), shapes=shapes)
    assert service.requests[0].json()["shapes"] == sent


def test_many_values_of_an_extent_leave_the_others_bound(client: Client, service: FakeService) -> None:
    serve(service)
    built = client.compile(widened(["batch", "n"]), LLVM, shapes={"batch": range(2, 5), "n": 3})
    x = np.ones((5, 3), "float32")
    result = relax.VirtualMachine(built, tvm.cpu())["main"](tvm.runtime.tensor(x))
    assert np.array_equal(result.numpy(), 1 + x)


def test_an_instance_normalisation_takes_an_extent_with_a_symbol_as_channels() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["batch"], end=1),
        helper.make_node("Expand", ["two", "batch"], ["scale"]),
        helper.make_node("Transpose", ["x"], ["channels"], perm=[1, 0, 2]),
        helper.make_node("InstanceNormalization", ["channels", "scale", "scale"], ["y"]),
    ]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, extents)
        for name, extents in (("x", ["n", 2, 5]), ("y", [2, "n", 5]))
    )
    graph = helper.make_graph(nodes, "graph", [x], [y], [numpy_helper.from_array(np.full(1, 2, "float32"), "two")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    module = import_model(model)
    machine = relax.VirtualMachine(tvm.compile(module, "llvm"), tvm.cpu())
    for batch in (1, 3):
        data = np.arange(batch * 10, dtype="float32").reshape(batch, 2, 5) ** 2
        mean, variance = data.mean(2, keepdims=True), data.var(2, keepdims=True)
        expected = 2 * (data - mean) / np.sqrt(variance + 1e-5) + 2
        result = machine["main"](tvm.runtime.tensor(data)).numpy()
        np.testing.assert_allclose(result, expected.transpose(1, 0, 2), rtol=1e-5, atol=1e-5)
