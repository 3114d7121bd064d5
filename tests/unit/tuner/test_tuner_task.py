"""From modules to tasks."""

from __future__ import annotations

import pytest
import tvm
from tvm import relax, tirx
from tvm.s_tir.meta_schedule.testing import te_workload

from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.program.lowering import bind_shapes
from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import ADD_ONE, add_one, mlp
from tuner.task import extract_tasks
from tuner.types import TensorInfo

LLVM = target_from('{"kind": "llvm", "num-cores": 2}')

PAD = """
@T.prim_func(s_tir=True)
def pad(A: T.Buffer(("n", "m"), "float32"), B: T.Buffer(("n", "m"), "float32")):
    for i, j in T.grid(n, m):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] + T.float32(1)
"""

RELAX_CALLS_TIR = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.sblock("y"):
                vi = T.axis.spatial(n, i)
                y[vi] = {value}

    @R.function
    def main(input: R.Tensor(("n",), dtype="float32")) -> R.Tensor(("n",), dtype="float32"):
        n = T.int64()
        cls = Module
        with R.dataflow():
            gv = R.call_tir(cls.double, ({argument},), out_ty=R.Tensor((n,), dtype="float32"))
            R.output(gv)
        return gv
"""


def _module(*functions: tvm.tirx.PrimFunc) -> tvm.IRModule:
    return tvm.IRModule({f"f{i}": function.with_attr("global_symbol", f"f{i}") for i, function in enumerate(functions)})


def _relax(value: str = "x[vi] * T.float32(2)", argument: str = "input") -> tvm.IRModule:
    return tvm.script.from_source(RELAX_CALLS_TIR.format(value=value, argument=argument))


@pytest.mark.parametrize(
    "name", ["C1D", "C2D", "C3D", "CAP", "DEP", "DIL", "GMM", "GRP", "T2D", "NRM", "SFM", "CBR", "TBG"]
)
def test_every_sample_workload_is_a_task(name: str) -> None:
    found = extract_tasks(tvm.IRModule({"main": te_workload.create_te_workload(name, 0)}), LLVM)
    assert [(task.workload.name, task.weight) for task in found.tasks] == [("main", 1)]
    assert found.notes == ()
    assert all(extent > 0 for arg in found.tasks[0].workload.args for extent in arg.shape)


def test_equal_functions_are_one_task_with_their_weights_added() -> None:
    found = extract_tasks(_module(add_one(), add_one(extent=32), add_one("other")), LLVM)
    assert [(task.workload.name, task.weight) for task in found.tasks] == [("f0", 2), ("f1", 1)]


def test_layers_of_one_shape_are_one_task() -> None:
    found = extract_tasks(mlp(3), LLVM)
    assert [(task.workload.name, task.weight) for task in found.tasks] == [("fused_matmul_relu", 3), ("softmax", 1)]
    assert found.tasks[0].workload.args == (
        TensorInfo((4, 8), "float32"),
        TensorInfo((8, 8), "float32"),
        TensorInfo((4, 8), "float32"),
    )


def test_the_submitted_module_is_not_changed() -> None:
    mod = mlp(2)
    before = module_to_json(mod)
    extract_tasks(mod, LLVM)
    assert module_to_json(mod) == before


def test_what_cannot_be_scheduled_is_left_alone_and_said() -> None:
    scalar = tvm.script.from_source("""
@T.prim_func(s_tir=True)
def scalar(A: T.Buffer((4,), "float32"), n: T.int32, B: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("B"):
            vi = T.axis.spatial(4, i)
            B[vi] = A[vi] + T.Cast("float32", n)
""")
    no_block = tvm.script.from_source("""
@T.prim_func(s_tir=True)
def no_block(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in range(4):
        B[i] = A[i]
""")
    found = extract_tasks(_module(add_one(), scalar, no_block, add_one(extent=0)), LLVM)
    assert [task.workload.name for task in found.tasks] == ["f0"]
    for note, name, word in zip(
        sorted(found.notes), ("f1", "f2", "f3"), ("parameter", "T.sblock", "elements"), strict=True
    ):
        assert note.startswith(f"{name} ")
        assert word in note


@pytest.mark.parametrize(("rows", "columns", "is_tuned"), [(128, 128, True), (128, 129, False), (2, 2**40, False)])
def test_a_function_that_asks_for_too_many_copies_of_a_statement_is_left_alone(
    rows: int, columns: int, is_tuned: bool
) -> None:
    """LLVM would take minutes for them, or all memory."""
    copied = tvm.script.from_source(f"""
@T.prim_func(s_tir=True)
def copied(A: T.Buffer(({rows}, 4), "float32"), B: T.Buffer(({rows}, 4), "float32")):
    for k in range(1000):
        for i in T.unroll({rows}):
            for j in T.vectorized(T.int64({columns})):
                with T.sblock("B"):
                    vi = T.axis.spatial({rows}, i)
                    vj = T.axis.spatial(T.int64(4), j % T.int64(4))
                    B[vi, vj] = A[vi, vj]
""")
    found = extract_tasks(_module(add_one(), copied), LLVM)
    assert [task.workload.name for task in found.tasks] == (["f0", "f1"] if is_tuned else ["f0"])
    assert [f"{rows * columns:,}" in note for note in found.notes] == ([] if is_tuned else [True])


def test_nothing_to_schedule_is_an_error_that_says_why() -> None:
    no_block = tvm.script.from_source("""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32")):
    for i in range(4):
        A[i] = T.float32(0)
""")
    with pytest.raises(InvalidModule, match=r"f0 .*T\.sblock"):
        extract_tasks(_module(no_block), LLVM)
    with pytest.raises(InvalidModule, match="no schedulable function"):
        extract_tasks(tvm.IRModule({}), LLVM)


def test_shapes_bind_in_functions() -> None:
    found = extract_tasks(bind_shapes(_module(tvm.script.from_source(PAD)), {"n": 4, "m": 6}), LLVM)
    assert found.tasks[0].workload.args == (TensorInfo((4, 6), "float32"),) * 2
    static = extract_tasks(
        _module(tvm.script.from_source(PAD.replace('"n", "m"', "4, 6").replace("n, m", "4, 6"))), LLVM
    )
    assert found.tasks[0].workload.hash == static.tasks[0].workload.hash


def test_shapes_bind_in_relax() -> None:
    bound = extract_tasks(bind_shapes(mlp(2, batch=tirx.Var("n", "int64")), {"n": 4}), LLVM)
    assert [task.workload.hash for task in bound.tasks] == [t.workload.hash for t in extract_tasks(mlp(2), LLVM).tasks]


def test_shapes_bind_in_functions_that_relax_calls() -> None:
    mod = _relax()
    before = module_to_json(mod)
    found = extract_tasks(bind_shapes(mod, {"n": 16}), LLVM)
    assert module_to_json(mod) == before
    assert found.tasks[0].workload.args == (TensorInfo((16,), "float32"),) * 2


def test_no_shapes_change_nothing() -> None:
    mod = _relax()
    assert bind_shapes(mod, {}) is mod


@pytest.mark.parametrize("mod", [_module(tvm.script.from_source(PAD)), _relax()], ids=["tir", "relax"])
def test_a_symbolic_shape_without_shapes_is_an_error_that_says_what_to_give(mod: tvm.IRModule) -> None:
    with pytest.raises(InvalidModule, match=r'symbolic shape \(.*n\): give shapes=\{.*"n": 128\}'):
        extract_tasks(mod, LLVM)


def test_a_shape_left_out_is_named() -> None:
    with pytest.raises(InvalidModule, match=r'symbolic shape \(m\): give shapes=\{"m": 128\}'):
        extract_tasks(bind_shapes(_module(tvm.script.from_source(PAD)), {"n": 4}), LLVM)


@pytest.mark.parametrize("mod", [_module(tvm.script.from_source(PAD)), _relax()], ids=["tir", "relax"])
def test_unknown_shapes_are_refused_with_those_that_are_known(mod: tvm.IRModule) -> None:
    with pytest.raises(InvalidModule, match=r"\bq\b.*\bn\b"):
        bind_shapes(mod, {"q": 4})


@pytest.mark.parametrize("extent", [0, -4])
def test_shapes_without_elements_are_refused(extent: int) -> None:
    with pytest.raises(InvalidModule, match=r"shapes .*\bn\b"):
        bind_shapes(_module(tvm.script.from_source(PAD)), {"n": extent})


def test_a_computed_extent_is_said_to_be_unbindable() -> None:
    source = ADD_ONE.format(name="main", extent=16, dtype="float32", constant="1").replace(
        "A: T.Buffer((16", 'A: T.Buffer(("n * 2"'
    )
    with pytest.raises(InvalidModule, match=r"n \* 2"):
        extract_tasks(_module(tvm.script.from_source(source)), LLVM)


CALL = "T.call_extern('float32', 'system', {x}[vi])"


def test_a_function_that_calls_out_is_refused() -> None:
    source = ADD_ONE.format(name="main", extent=16, dtype="float32", constant="1")
    bad = tvm.script.from_source(source.replace("A[vi]", CALL.format(x="A")))
    with pytest.raises(InvalidModule, match=r"f1 .*call_extern"):
        extract_tasks(_module(add_one(), bad), LLVM)


def test_it_is_refused_before_any_pass_could_run_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Folding a call on constants compiles the function and calls it."""

    def pipeline(name: str) -> None:
        raise AssertionError(f"the pipeline {name} was asked for")

    monkeypatch.setattr(relax, "get_pipeline", pipeline)
    mod = bind_shapes(_relax(value=CALL.format(x="x")), {"n": 16})
    with pytest.raises(InvalidModule, match=r"double .*call_extern"):
        extract_tasks(mod, LLVM)


def test_what_tvm_makes_of_operators_may_call_its_library_and_is_left_alone() -> None:
    x, builder = relax.Var("x", relax.TensorType((2, 8), "float32")), relax.BlockBuilder()
    with builder.function("main", [x]):
        with builder.dataflow():
            doubled = builder.emit(relax.op.add(x, x))
            summed = builder.emit(relax.op.cumsum(doubled, axis=1))
            out = builder.emit_output(relax.op.sort(summed, axis=1))
        builder.emit_func_output(out)
    found = extract_tasks(builder.get(), LLVM)
    assert [task.workload.name for task in found.tasks] == ["add"]
    assert sorted(note.split()[0] for note in found.notes) == ["cumsum", "sort"]


def test_an_uncalled_function_that_calls_out_is_refused_too() -> None:
    source = ADD_ONE.format(name="main", extent=16, dtype="float32", constant="1")
    mod = mlp(1)
    mod["unused"] = tvm.script.from_source(source.replace("A[vi]", CALL.format(x="A"))).with_attr(
        "global_symbol", "unused"
    )
    with pytest.raises(InvalidModule, match=r"unused .*call_extern"):
        extract_tasks(mod, LLVM)


OUTSIDE = """
@T.prim_func(s_tir=True)
def {name}(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
    for i in range(16):
        with T.sblock("B"):
            v = T.axis.spatial(16, i)
            B[v] = A[v + 1] + A[v + 2] + A[v + 3] + A[v + 4]
"""


def test_a_function_that_may_leave_its_buffers_is_left_alone_unless_that_is_allowed() -> None:
    mod = _module(add_one(), tvm.script.from_source(OUTSIDE.format(name="outside")))
    found = extract_tasks(mod, LLVM)
    assert len(found.tasks) == 1
    [note] = found.notes
    assert note.startswith("f1 ")
    assert "A[v + 1]" in note
    assert "and 1 more" in note
    assert len(extract_tasks(mod, LLVM, unproven=True).tasks) == 2
