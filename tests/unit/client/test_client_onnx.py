"""Operators of ONNX: those that TVM's importer lacks, or gets wrong, and those that are refused by their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import tvm
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from tvm import relax

from loopwright import frontends
from loopwright.applying.apply import apply
from loopwright.applying.lookup import LookedUp, lower
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from loopwright.errors import UnsupportedModel
from tests.support.cases import first
from tests.support.onnx_nodes import node_tests, parameters_fixed, run
from tuner.task import extract_tasks

LLVM = target_from("llvm")
REFUSED = {
    "test_batchnorm_example_training_mode": "BatchNormalization.*training",
    "test_cast_FLOAT_to_FLOAT8E4M3FN": "Cast.*float8_e4m3fn",
    "test_col2im": "Col2Im",
    "test_det_2d": "Det",
    "test_equal_string": "Equal.*string",
    "test_quantizelinear_int4": "QuantizeLinear.*int4",
    "test_reduce_sum_empty_set": "data.*elements",
    "test_resize_downsample_scales_linear_align_corners": "Resize.*fractions.*sizes",
    "test_roialign_mode_max": "RoiAlign.*max",
    "test_scan_sum": "Scan.*9",
    "test_string_concat": "StringConcat.*string",
    "test_training_dropout": "Dropout.*training",
}


def model_of(
    nodes: Sequence[onnx.NodeProto],
    values: dict[str, np.ndarray[Any, Any]],
    *,
    weights: Sequence[str] = (),
    outputs: Sequence[str] = ("y",),
    opset: int = 18,
) -> onnx.ModelProto:
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
        for name, value in values.items()
        if name not in weights
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        inputs,
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(values[name], name) for name in weights],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


def check(model: onnx.ModelProto, *values: np.ndarray[Any, Any]) -> None:
    """Compare with ONNX's reference."""
    names = [each.name for each in model.graph.input]
    expected = ReferenceEvaluator(model).run(None, dict(zip(names, values, strict=True)))
    for got, wanted in zip(run(model, *values), expected, strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-5)


def test_the_guide_lists_the_operators_that_are_refused() -> None:
    from loopwright.frontends.onnx.importer import translated

    text = (Path(__file__).parents[3] / "docs/guides/models.md").read_text()
    (listed,) = re.findall(r"so are these operators: ([^.]+)\.", text)
    every = {schema.name for schema in onnx.defs.get_all_schemas() if schema.domain == "" and not schema.deprecated}
    assert set(re.findall(r"`(\w+)`", listed)) == every - translated()


@pytest.mark.parametrize(("name", "said"), REFUSED.items(), ids=str)
def test_what_is_not_taken_is_named(name: str, said: str) -> None:
    case = node_tests()[name]
    fixed = case.model if "string" in said else parameters_fixed(case)
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(fixed)


X = np.arange(24, dtype="float32").reshape(4, 6)
ONES = -np.ones((2, 3), "float32")


@pytest.mark.parametrize("known", [True, False], ids=["constant", "computed"])
@pytest.mark.parametrize(
    ("operator", "indices", "updates", "attributes"),
    [
        ("Gather", [[-1, 0], [-6, 2]], None, {"axis": 1}),
        ("GatherElements", [[-1, 0, -6], [1, -2, 3], [0, 0, 0], [-4, 4, 5]], None, {"axis": 1}),
        ("GatherND", [[-1, 0], [-4, -6]], None, {}),
        ("ScatterElements", [[-1, 0, -6], [1, -2, 3]], ONES, {"axis": 1}),
        ("ScatterElements", [[-1, -1, -6], [1, -2, 3]], ONES, {"axis": 1, "reduction": "add"}),
        ("ScatterND", [[-1, 0], [-4, -6]], ONES[0, :2], {}),
    ],
)
def test_negative_indices_count_from_the_end(
    operator: str, indices: Any, updates: Any, attributes: dict[str, Any], known: bool
) -> None:
    values = {"x": X, "i": np.array(indices, "int64")} | ({} if updates is None else {"u": updates})
    weights = [name for name in values if known and name != "x"]
    model = model_of([helper.make_node(operator, list(values), ["y"], **attributes)], values, weights=weights)
    check(model, *(value for name, value in values.items() if name not in weights))


def test_negative_indices_of_earlier_versions_count_from_the_end() -> None:
    values = {"x": X, "i": np.array([[-1, 0, -6]]), "u": ONES[:1]}
    (result,) = run(
        model_of([helper.make_node("Scatter", list(values), ["y"], axis=1)], values, opset=9), *values.values()
    )
    expected = X.copy()
    expected[0, [-1, 0, -6]] = -1
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [([-3], [-1], [-1], [1]), ([-1], [-100], [1], [-2]), ([-100, -4], [2**63 - 1, -1], [0, 1], [1, 2])]
    + [([-1], [-(2**63) + 1], [axis], [-1]) for axis in (0, 1)]  # the whole axis
    + [([0, -1], [4, -100], [0, 1], [1, -1])],
)
def test_negative_places_of_slices_count_from_the_end(
    starts: list[int], ends: list[int], axes: list[int], steps: list[int]
) -> None:
    places = dict(zip("seat", (np.array(each) for each in (starts, ends, axes, steps)), strict=True))
    model = model_of([helper.make_node("Slice", ["x", *places], ["y"])], {"x": X, **places}, weights=list(places))
    check(model, X)


def test_a_convolution_whose_layout_cannot_be_converted_keeps_its_own_and_reports_say_so() -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (1, 12, 6), "w": (6, 6, 1, 3), "v": (6, 6)}
    values = {name: rng.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}
    values |= {"axis": np.array([2]), "flat": np.array([12, 6]), "back": np.array([1, 12, 6])}
    nodes = [
        helper.make_node("Transpose", ["x"], ["rows"], perm=[0, 2, 1]),
        helper.make_node("Unsqueeze", ["rows", "axis"], ["image"]),
        helper.make_node("Conv", ["image", "w"], ["c"], pads=[0, 1, 0, 1]),
        helper.make_node("Squeeze", ["c", "axis"], ["s"]),
        helper.make_node("Relu", ["s"], ["r"]),
        helper.make_node("Transpose", ["r"], ["t"], perm=[0, 2, 1]),
        helper.make_node("Reshape", ["t", "flat"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["g"]),
        helper.make_node("Reshape", ["g", "back"], ["h"]),
        helper.make_node("Max", ["h", "x"], ["y"]),
    ]
    model = model_of(nodes, values, weights=list(values)[1:])
    check(model, values["x"])
    program = frontends.to_program(model)
    sent = module_from_json(module_to_json(program.module))
    [note] = extract_tasks(sent, LLVM).notes
    assert "convolutions keep their layout" in note
    assert "SLayout" in note
    _, report = apply(LookedUp(lower(program, LLVM), LLVM, {}))
    assert report.notes == (note,)
    assert note in str(report)


def test_models_that_scatter_and_compute_shapes() -> None:
    values = {
        "x": X,
        "w": np.linspace(-1, 1, 48, dtype="float32").reshape(6, 8),
        "i": np.array([[-1, 0, 3]]),
        "u": np.ones((1, 3), "float32"),
        "rest": np.array([-1]),
        "half": np.array([2]),
        "zero": np.array([0]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node("ScatterElements", ["h", "i", "u"], ["s"], axis=1),
        helper.make_node("Shape", ["s"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Div", ["rows", "half"], ["fewer"]),
        helper.make_node("Concat", ["fewer", "rest"], ["wanted"], axis=0),
        helper.make_node("Reshape", ["s", "wanted"], ["r"]),
        helper.make_node("Relu", ["r"], ["y"]),
        helper.make_node("Size", ["r"], ["size"]),
    ]
    model = model_of(nodes, values, weights=list(values)[1:], outputs=("y", "shape", "size"))
    check(model, X)


def body(operator: str) -> onnx.GraphProto:
    """A loop's body: adds the step and an outer value to the state, which it also returns."""
    nodes = [
        helper.make_node("Cast", ["step"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["state", "number"], ["sum"]),
        helper.make_node("Add", ["sum", "x"], ["next"]),
        helper.make_node("Identity", ["next"], ["each"]),
        helper.make_node(operator, ["goes_on"], ["still"]),
    ]
    inputs = [
        helper.make_tensor_value_info("step", TensorProto.INT64, []),
        helper.make_tensor_value_info("goes_on", TensorProto.BOOL, []),
        helper.make_tensor_value_info("state", TensorProto.FLOAT, [6]),
    ]
    outputs = [helper.make_empty_tensor_value_info(name) for name in ("still", "next", "each")]
    return helper.make_graph(nodes, "body", inputs, outputs)


@pytest.mark.parametrize("operator", ["Identity", "Not"], ids=["to its end", "ended at once"])
def test_loops_are_unrolled(operator: str) -> None:
    values = {"x": X[0], "count": np.array(3), "goes": np.array(True)}
    loop = helper.make_node("Loop", ["count", "goes", "x"], ["y", "all"], body=body(operator))
    check(model_of([loop], values, weights=["count", "goes"], outputs=("y", "all")), X[0])


def test_loops_that_values_end_are_refused() -> None:
    values = {"x": X[0], "count": np.array(3)}
    loop = helper.make_node("Loop", ["count", "", "x"], ["y", "all"], body=body("Identity"))
    with pytest.raises(UnsupportedModel, match=r"operator Loop.* 0 "):
        frontends.to_program(model_of([loop], values, outputs=("y", "all")))


def test_a_gru_as_pytorch_has_it() -> None:
    generator = np.random.default_rng(0)
    shapes = {"x": (3, 2, 4), "w": (1, 15, 4), "r": (1, 15, 5), "b": (1, 30)}
    values = {name: generator.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}
    gru = helper.make_node("GRU", list(values), ["y", "last"], hidden_size=5, linear_before_reset=1)
    model = model_of([gru], values, weights=["w", "r", "b"], outputs=("y", "last"))
    check(model, values["x"])


@pytest.mark.parametrize(("operator", "gates", "states"), first(1, [("LSTM", 4, 2), ("GRU", 3, 1), ("RNN", 1, 1)]))
def test_recurrent_layers_of_sequences_of_several_lengths(operator: str, gates: int, states: int) -> None:
    runtime = pytest.importorskip("onnxruntime")
    generator = np.random.default_rng(0)
    shapes = {"x": (4, 3, 2), "w": (2, gates * 3, 2), "r": (2, gates * 3, 3), "b": (2, 6 * gates)}
    values = {name: generator.standard_normal(shape, dtype="float32") for name, shape in shapes.items()}
    values["lengths"] = np.array([2, 4, 1], "int32")
    initial = {f"s{place}": generator.standard_normal((2, 3, 3), dtype="float32") for place in range(states)}
    outputs = ["y", *(f"last{place}" for place in range(states))]
    attributes = {"hidden_size": 3, "direction": "bidirectional", "clip": 0.5}
    layer = helper.make_node(operator, [*values, *initial], outputs, **attributes)
    model = model_of([layer], values | initial, weights=["w", "r", "b", *initial], outputs=outputs)
    for output in model.graph.output:
        output.type.tensor_type.elem_type = TensorProto.FLOAT
    given = {name: values[name] for name in ("x", "lengths")}
    session = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for got, expected in zip(run(model, *given.values()), session.run(None, given), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "said"),
    [
        ({"activations": ["Affine"]}, "RNN.*Affine"),
        ({"input_forget": 1}, "RNN.*input_forget"),
    ],
    ids=["activation", "coupled gates"],
)
def test_what_is_not_taken_of_a_recurrent_layer(attributes: dict[str, Any], said: str) -> None:
    shapes = {"x": (300, 2, 4), "w": (1, 5, 4), "r": (1, 5, 5)}
    values = {name: np.ones(shape, "float32") for name, shape in shapes.items()}
    rnn = helper.make_node("RNN", list(values), ["y"], hidden_size=5, **attributes)
    with pytest.raises(UnsupportedModel, match=said):
        frontends.to_program(model_of([rnn], values, weights=["w", "r"]))


def test_functions_of_the_model_are_expanded() -> None:
    function = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], [helper.make_opsetid("", 18)]
    )
    model = model_of([helper.make_node("Twice", ["x"], ["y"], domain="own")], {"x": X})
    model.opset_import.append(helper.make_opsetid("own", 1))
    with pytest.raises(UnsupportedModel, match=r"operators own\.Twice"):
        frontends.to_program(model)
    model.functions.append(function)
    check(model, X)


@pytest.mark.parametrize("name", ["center_crop_pad_crop", "lstm_defaults"])
def test_shapes_with_symbols_are_refused_where_they_must_be_known(name: str) -> None:
    model = parameters_fixed(node_tests()[f"test_{name}"])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    with pytest.raises(UnsupportedModel, match=r"shape.* has symbols; give their values, as shapes="):
        frontends.to_program(model)


def test_functions_of_onnx_take_shapes_with_symbols() -> None:
    model = model_of([helper.make_node("Swish", ["x"], ["y"])], {"x": X}, opset=24)
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    bound = frontends.to_program(model).bind({"batch": 4})
    machine = relax.VirtualMachine(compile_module(lower(bound, LLVM), LLVM), tvm.cpu())
    np.testing.assert_allclose(machine["main"](tvm.runtime.tensor(X)).numpy(), X / (1 + np.exp(-X)), rtol=1e-5)


NAN = np.where(np.arange(24).reshape(4, 6) % 5, X, np.nan).astype("float32")
HALVES = np.ones((2, 4096), "float16")
NUMBERS = np.array([[7, -7, 9], [-8, 2, 5]], "int32")


@pytest.mark.parametrize(
    ("operator", "values", "attributes", "opset"),
    [
        ("Min", {"a": NAN, "b": X}, {}, 18),
        ("Max", {"a": X, "b": NAN}, {}, 18),
        ("Max", {"a": NAN, "b": X[:1], "c": X}, {}, 18),
        ("Max", {"a": NUMBERS, "b": NUMBERS[::-1].copy()}, {}, 18),
        ("Div", {"a": NUMBERS, "b": np.array([2, -1, -3], "int32")}, {}, 18),
        ("Div", {"a": np.abs(NUMBERS).astype("uint8"), "b": np.array([2, 1, 4], "uint8")}, {}, 18),
        ("ReduceMean", {"a": NUMBERS}, {"axes": [1], "keepdims": 0}, 13),
        ("ReduceSum", {"a": HALVES}, {"axes": [1]}, 11),
        ("ReduceMean", {"a": HALVES}, {"axes": [1]}, 13),
        ("ReduceL2", {"a": HALVES}, {"axes": [1]}, 13),
        ("Softmax", {"a": np.zeros_like(HALVES)}, {}, 13),
        ("Slice", {"a": X}, {"starts": [1, 0], "ends": [-1, 3], "axes": [0, 1]}, 9),
        ("Slice", {"a": X}, {"starts": [1], "ends": [100]}, 1),
        ("Scatter", {"a": X, "i": np.array([[1], [-1]]), "u": ONES[:, :1]}, {"axis": 0}, 10),
        ("Scatter", {"a": X, "i": np.array([[1], [-1]]), "u": ONES[:, :1]}, {"axis": 1}, 9),
        ("ScatterElements", {"a": X, "i": np.array([[1], [-1]]), "u": ONES[:, :1]}, {"axis": 0}, 18),
    ],
)
def test_results_are_those_of_onnx_runtime(
    operator: str, values: dict[str, np.ndarray[Any, Any]], attributes: dict[str, Any], opset: int
) -> None:
    runtime = pytest.importorskip("onnxruntime")
    model = model_of([helper.make_node(operator, list(values), ["y"], **attributes)], values, opset=opset)
    dtype = helper.np_dtype_to_tensor_dtype(values["a"].dtype)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", dtype, None))
    (expected,) = runtime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, values
    )
    (got,) = run(model, *values.values())
    assert got.dtype == expected.dtype
    np.testing.assert_allclose(got, expected, rtol=1e-3)


def test_an_integer_divided_by_zero_does_not_end_the_process() -> None:
    values = {"a": np.array([-(2**31), 7], "int32"), "b": np.array([-1, 0], "int32")}
    (got,) = run(model_of([helper.make_node("Div", ["a", "b"], ["y"])], values), *values.values())
    assert got.tolist() == [-(2**31), 0]


@pytest.mark.parametrize("extent", [1, 3])
def test_a_branch_that_shapes_decide_is_taken_at_import(extent: int) -> None:
    x = np.ones((1, 4, extent), "float32")
    values = {"x": x, "last": np.array(-1), "one": np.array(1), "axis": np.array([-1])}
    then, other = (
        helper.make_graph([helper.make_node(*call, ["s"])], "branch", [], [helper.make_empty_tensor_value_info("s")])
        for call in (("Squeeze", ["r", "axis"]), ("Identity", ["r"]))
    )
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("Shape", ["r"], ["shape"]),
        helper.make_node("Gather", ["shape", "last"], ["n"]),
        helper.make_node("Equal", ["n", "one"], ["c"]),
        helper.make_node("If", ["c"], ["q"], then_branch=then, else_branch=other),
        helper.make_node("Size", ["q"], ["size"]),
        helper.make_node("Cast", ["size"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["q", "f"], ["y"]),
    ]
    check(model_of(nodes, values, weights=list(values)[1:]), x)


def branching(
    then: Sequence[onnx.NodeProto],
    other: Sequence[onnx.NodeProto],
    values: dict[str, Any],
    weights: Sequence[str] = (),
) -> onnx.ModelProto:
    branches = {
        f"{name}_branch": helper.make_graph(nodes, name, [], [helper.make_empty_tensor_value_info("s")])
        for name, nodes in (("then", then), ("else", other))
    }
    return model_of([helper.make_node("If", ["c"], ["y"], **branches)], values, weights=weights)


@pytest.mark.parametrize("shape", [(), (1,)])
def test_a_branch_that_a_value_decides_is_taken_in_the_call(shape: tuple[int, ...]) -> None:
    inner = branching(
        [helper.make_node("Neg", ["x"], ["s"])], [helper.make_node("Abs", ["x"], ["s"])], {"c": np.ones(())}
    )
    inner.graph.node[0].output[0] = "s"
    values = {"c": np.ones(shape, "bool"), "x": ONES}
    model = branching(inner.graph.node, [helper.make_node("Exp", ["x"], ["s"])], values)
    for condition in (True, False):
        check(model, np.full(shape, condition), ONES)


def test_a_call_that_takes_a_branch_without_a_translation_fails() -> None:
    values = {"c": np.array(True), "x": ONES, "axis": np.array([0])}
    squeezed = [helper.make_node("Squeeze", ["x", "axis"], ["s"])]
    model = branching(squeezed, [helper.make_node("Neg", ["x"], ["s"])], values, ["axis"])
    check(model, np.array(False), ONES)
    with pytest.raises(AssertionError, match=r"other branch of If .*Squeeze"):
        run(model, np.array(True), ONES)


def test_branches_of_different_shapes_are_refused() -> None:
    values = {"c": np.array(True), "x": ONES}
    model = branching([helper.make_node("Shape", ["x"], ["s"])], [helper.make_node("Neg", ["x"], ["s"])], values)
    with pytest.raises(UnsupportedModel, match="operator If, whose branches return tensors of different shapes"):
        frontends.to_program(model)
