"""A submission from its text to its tasks."""

from __future__ import annotations

import json
from typing import Any

import pytest
import tvm

from loopwright import frontends
from loopwright.codegen.errors import InvalidModule, InvalidTarget, UnsupportedVersion
from loopwright.codegen.math_mode import MathMode
from loopwright.codegen.program.digest import normal_form, workload_digest
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support import convolution_programs, gpu_programs
from tests.support.programs import LIBRARY_ONLY, NAMED_CALLS
from tests.support.rule_programs import product
from tests.support.tuner_programs import LLVM, add_one, add_one_script, elementwise, matmul, mlp, split_outer, traced
from tuner.errors import InvalidSpace
from tuner.inspection.answers import Submission
from tuner.inspection.submission import parse
from tuner.space.builtin import builtin_space
from tuner.space.user import check_trace
from tuner.types import TensorInfo

MODES: tuple[MathMode, ...] = ("fp32", "tf32")

MODULE = """
from tvm.script import ir as I
from tvm.script import tirx as T

@I.ir_module
class Module:
    @T.prim_func(s_tir=True)
    def one(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("B"):
                vi = T.axis.spatial(16, i)
                B[vi] = A[vi] + T.float32(1)

    @T.prim_func(s_tir=True)
    def two(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32")):
        for i in range(32):
            with T.sblock("B"):
                vi = T.axis.spatial(32, i)
                B[vi] = A[vi] + T.float32(1)
"""

RELAX = """
from tvm.script import ir as I, relax as R

@I.ir_module
class Module:
    @R.function
    def main(
        x: R.Tensor((4, 8), dtype="float32"), w: R.Tensor((8, 8), dtype="float32")
    ) -> R.Tensor((4, 8), dtype="float32"):
        with R.dataflow():
            lv = R.matmul(x, w)
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
"""


def _parse(
    data: str,
    fmt: str = "tvmscript",
    target: str = LLVM,
    shapes: dict[str, int] | list[dict[str, int]] | None = None,
    space: list[Any] | None = None,
) -> Submission:
    (answer,) = parse(fmt, data, target, shapes, space)
    return answer


def _tasks(answer: Submission) -> list[tuple[str, int]]:
    return [(task.workload.name, task.weight) for task in answer.tasks]


def test_a_function() -> None:
    answer = _parse(add_one_script())
    (task,) = answer.tasks
    assert (task.workload.name, task.weight) == ("main", 1)
    assert task.workload.args == (TensorInfo((16,), "float32"),) * 2
    assert (
        task.workload.hash
        == workload_digest(normal_form(add_one()))
        == workload_digest(module_from_json(task.workload.module_json))
    )
    assert "def main" in task.workload.script
    assert (answer.left_alone, answer.space_json) == ((), None)


def test_a_function_keeps_its_name() -> None:
    answer = _parse(add_one_script(name="gelu"))
    assert _tasks(answer) == [("gelu", 1)]
    assert [str(v.name_hint) for v in module_from_json(answer.module_json).functions] == ["gelu"]


def test_a_module() -> None:
    assert _tasks(_parse(MODULE)) == [("one", 1), ("two", 1)]


def test_relax() -> None:
    assert _tasks(_parse(RELAX)) == [("fused_matmul_relu", 1)]


def test_json_and_script_of_a_module_are_the_same_tasks() -> None:
    mod = mlp(2)
    by_json, by_script = _parse(module_to_json(mod), "tvm-json"), _parse(mod.script())
    assert _tasks(by_json) == [("fused_matmul_relu", 2), ("softmax", 1)]
    assert [task.workload.hash for task in by_json.tasks] == [task.workload.hash for task in by_script.tasks]


def test_shapes_are_bound_in_what_is_kept() -> None:
    symbolic = add_one_script(extent="n").replace("A: T.Buffer((n", 'A: T.Buffer(("n"')
    source = symbolic.replace("    for", "    n = T.int32()\n    for")
    answer = _parse(source, shapes={"n": 8})
    assert answer.tasks[0].workload.args == (TensorInfo((8,), "float32"),) * 2
    assert '"n"' not in module_from_json(answer.module_json).script()
    with pytest.raises(InvalidModule, match=r'give shapes=\{"n": 128\}'):
        _parse(source)


@pytest.mark.parametrize("shapes", [None, [{}, {}]])
def test_a_module_that_only_calls_a_library_has_nothing_to_tune(shapes: list[dict[str, int]] | None) -> None:
    answer = _parse(LIBRARY_ONLY, shapes=shapes)
    assert answer.tasks == ()
    assert [note.split()[0] for note in answer.left_alone] == ["nothing", "tests.double"]
    assert _parse(LIBRARY_ONLY, space=[GOOD]).tasks == ()


def test_a_module_may_call_by_name_as_json_too() -> None:
    payload = frontends.to_payload(frontends.to_program(LIBRARY_ONLY).module)
    assert _parse(payload.data, payload.format).left_alone == _parse(LIBRARY_ONLY).left_alone
    payload = frontends.to_payload(frontends.to_program(NAMED_CALLS).module)
    answer = _parse(payload.data, payload.format, shapes={"m": 12, "n": 8, "k": 4})
    assert _tasks(answer) == [("fused_linear0_m12_n8_relu0", 1), ("linear0_m8_n4", 1)]


def test_a_module_that_calls_nothing_has_nothing_to_tune() -> None:
    answer = _parse(LIBRARY_ONLY.replace('R.call_dps_packed("tests.double", (x,), out_ty=', "R.reshape(x, (8, 4)) #"))
    assert answer.tasks == ()
    [note] = answer.left_alone
    assert "calls no function" in note


def test_another_version_of_tvm() -> None:
    graph = json.loads(module_to_json(mlp(1)))
    graph["metadata"]["tvm_version"] = "0.19.0"
    with pytest.raises(UnsupportedVersion, match=r"0\.19\.0"):
        _parse(json.dumps(graph), "tvm-json")


@pytest.mark.parametrize(
    ("fmt", "data", "message"),
    [
        ("tvmscript", "def main(:", "not Python syntax"),
        ("tvmscript", "print('hello')", "outside the module"),
        ("tvmscript", "import os", "not accepted"),
        ("tvmscript", add_one_script().replace("A[vi]", "A[vi, vi]"), "TVM cannot parse"),
        ("tvmscript", add_one_script().replace("A[vi]", "Z[vi]"), "Z"),
        ("tvm-json", "{}", "not TVM's JSON"),
        ("tvm-json", "nonsense", "not TVM's JSON"),
        ("tvm-json", str(tvm.ir.save_json(add_one())), "not a module"),
    ],
)
def test_what_is_no_module(fmt: str, data: str, message: str) -> None:
    with pytest.raises(InvalidModule, match=message):
        _parse(data, fmt)


def test_a_module_that_tvm_cannot_lower() -> None:
    mismatched = RELAX.replace("w: R.Tensor((8, 8)", "w: R.Tensor((7, 8)")
    with pytest.raises(InvalidModule, match="TVM cannot"):
        _parse(mismatched)


def test_an_unknown_target() -> None:
    with pytest.raises(InvalidTarget):
        _parse(add_one_script(), target='{"kind": "abacus"}')


def test_a_space_from_a_stochastic_function() -> None:
    space = [traced(elementwise(), split_outer)]
    answer = _parse(elementwise().script, space=space)
    assert json.loads(answer.space_json or "") == space


def test_a_space_needs_no_cores_in_the_target() -> None:
    assert _parse(elementwise().script, target='{"kind": "llvm"}', space=[traced(elementwise(), split_outer)]).tasks


def test_a_space_may_fit_one_function_of_several() -> None:
    names = {"one": elementwise().module_json, "two": matmul().module_json}
    functions = {n: module_from_json(m)["main"].with_attr("global_symbol", n) for n, m in names.items()}
    answer = _parse(module_to_json(tvm.IRModule(functions)), "tvm-json", space=[traced(elementwise(), split_outer)])
    assert len(answer.tasks) == 2


def _with_object(kind: str) -> list[Any]:
    """Return an instruction with an object of TVM in place of an index map."""
    return [
        "TransformLayout",
        ["b0", json.dumps({"root_index": 0, "nodes": [{"type": kind}]})],
        [0, 0, None, False],
        [],
    ]


GOOD = traced(elementwise(), split_outer)
TILE = ["SamplePerfectTile", ["l1"], [2, 64], ["v1", "v2"]]
PLACE = ["SampleComputeLocation", ["b0"], [], ["l1"]]
DRAWN = ["SampleCategorical", [], [[16, 1 << 40], [0.5, 0.5]], ["v1"]]


@pytest.mark.parametrize(
    ("space", "message"),
    [
        ([], "no trace was given"),
        (["x"], "trace 0 is not TVM's"),
        ([[]], "trace 0 is not TVM's"),
        ([[[], [], []]], "trace 0 is not TVM's"),
        ([GOOD, {"a": 1}], "trace 1 is not TVM's"),
        ([[["GetSBlock"], []]], "malformed instruction"),
        ([[[["GetSBlock", [], ["B", "main"]]], []]], "malformed instruction"),
        ([[[[1, [], [], []]], []]], "malformed instruction"),
        ([[[["Tensorize", [], [], []]], []]], "uses Tensorize"),
        ([[[["UnsafeSetDType", [], [], []]], []]], "uses UnsafeSetDType"),
        ([[[["Nonsense", [], [], []]], []]], "uses Nonsense"),
        ([[[["Annotate", [], [], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["l1", '"x"'], ["pragma_import_llvm"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["b0", [[0, 0, -16, 1]]], ["buffer_dim_align"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["b0", [1]], ["explicit_read_region"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["l1", -1], ["pragma_auto_unroll_max_step"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["l1", 1 << 40], ["meta_schedule.unroll_explicit"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["l1", [0, -3]], ["software_pipeline_order"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["l1", "v1"], ["pragma_auto_unroll_max_step"], []]], []]], "sets the annotation"),
        ([[[DRAWN, ["Annotate", ["l1", "v1"], ["pragma_auto_unroll_max_step"], []]], []]], "sets the annotation"),
        ([[[["Annotate", ["b0", '{"nodes": [{"type": "str"}]}'], ["warp_execution"], []]], []]], "sets the annotation"),
        ([[[_with_object("ffi.Module")], []]], "contains ffi.Module, which"),
        ([[[_with_object("ir.EnvFunc")], []]], "contains ir.EnvFunc, which"),
        ([[[["TransformLayout", ["b0", "{}"], [0, 0, None, False], []]], []]], "contains what is not TVM's JSON"),
        ([[[["Split", ["l1", {"a": 1}], [True, False], ["l2"]]], []]], "contains a mapping"),
        ([[[["GetSBlock", [], ["no such block", "main"], ["b0"]]], []]], "no trace of the space applies"),
        ([[[["GetSBlock", 7, None, "b0"]], []]], "malformed instruction"),
        ([[[["Split", ["l9"], [True, False], ["l1"]]], []]], "no trace of the space applies"),
        ([[[["GetLoops", [], [], []]], [[0, "x"]]]], r'the decision \[0, "x"\]'),
        ([[[["ComputeAt", [None, "l1"], [1, -1], []]], []]], "nothing in the place"),
        *(
            ([[[TILE], [decision]]], "the decision")
            for decision in ([0, [4]], [0, [4, 0]], [0, 7], [0, None], [0, [4, "4"]])
        ),
        *(
            ([[[TILE], [decision]]], "the decision")
            for decision in ([1, [4, 4]], [-1, [4, 4]], [True, [4, 4]], "x", [0])
        ),
        *(([[[DRAWN], [[0, decision]]]], "the decision") for decision in (-1, 2, True, [0], None)),
        *(([[[PLACE], [[0, decision]]]], "the decision") for decision in (-3, [1, -1], None, "x")),
    ],
)
def test_a_bad_space(space: list[Any], message: str) -> None:
    with pytest.raises(InvalidSpace, match=message):
        _parse(elementwise().script, space=space)


@pytest.mark.parametrize(
    ("mod", "target"),
    [
        (product(24, 32, 16), {"kind": "llvm", "num-cores": 2}),
        (convolution_programs.conv_nhwc(8, 6, 17, 3), {"kind": "llvm", "num-cores": 2}),
        pytest.param(
            tvm.IRModule({"main": gpu_programs.PROGRAMS["product fp16, sums fp32"]()}),
            {"kind": "cuda", "arch": "sm_90"},
            marks=pytest.mark.whole,
        ),
    ],
    ids=["product", "convolution", "tensor cores"],
)
def test_every_trace_of_the_built_in_space_may_be_submitted(mod: tvm.IRModule, target: dict[str, Any]) -> None:
    space = builtin_space(mod, target_from(target), 1, experimental=True)
    drawn = [space.replay(trace, seed) for trace in space.traces for seed in (1, 2, 3)]
    for trace in [*space.traces, *space.seeds, *(schedule.trace for schedule in drawn if schedule is not None)]:
        check_trace(json.loads(trace_to_json(trace)), "the trace", also=frozenset({"Tensorize"}))


def test_with_tf32_the_products_are_workloads_of_their_own_and_the_rest_is_not() -> None:
    target = '{"kind": "cuda", "arch": "sm_80"}'
    [exact], [permitting] = (list(parse("tvmscript", RELAX, target, None, None, math=math)) for math in MODES)
    [task], [other] = exact.tasks, permitting.tasks
    assert task.workload.hash != other.workload.hash
    assert [each.workload.math for each in (task, other)] == ["fp32", "tf32"]
    [plain], [same] = (list(parse("tvmscript", MODULE, target, None, None, math=math)) for math in MODES)
    assert [each.workload.hash for each in plain.tasks] == [each.workload.hash for each in same.tasks]


def test_a_module_that_permits_tf32_permits_it_again() -> None:
    target = '{"kind": "cuda", "arch": "sm_80"}'
    [first] = parse("tvmscript", RELAX, target, None, None, math="tf32")
    [again] = parse("tvm-json", first.module_json, target, None, None)
    assert [task.workload.hash for task in again.tasks] == [task.workload.hash for task in first.tasks]
    with pytest.raises(InvalidTarget, match="leave math out"):
        list(parse("tvm-json", first.module_json, '{"kind": "llvm"}', None, None))
