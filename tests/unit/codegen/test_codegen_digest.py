"""The name of a workload: equal for what is the same program, different for all else, everywhere."""

from __future__ import annotations

import ast
import functools
import gc
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import relax, te
from tvm.s_tir.meta_schedule.testing import te_workload

from loopwright.applying.lookup import lower
from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.digest import function_digest, normal_form, workload_digest, workload_family
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import canonical_target, target_from
from loopwright.frontends.program import Program, detach
from tests.support.tuner_programs import add_one, matmul
from tuner.inspection import submission
from tuner.task import extract_tasks

PROGRAM = """
@T.prim_func(s_tir=True)
def main(
    {A}: T.Buffer(({m}, {k}), "{dtype}"), {B}: T.Buffer(({k}, {m}), "{dtype}"), {D}: T.Buffer(({m}, {m}), "{dtype}")
):
    {C} = T.sblock_alloc_buffer(({m}, {m}), "{dtype}")
    for {i}, {j}, {r} in T.grid({m}, {m}, {k}):
        with T.sblock("C"):
            {vi}, {vj}, {vr} = T.axis.remap("SSR", [{i}, {j}, {r}])
            with T.init():
                {C}[{vi}, {vj}] = T.{dtype}({zero})
            {C}[{vi}, {vj}] = {C}[{vi}, {vj}] + {A}[{vi}, {vr}] * {B}[{vr}, {vj}]
    for {i2} in T.{loop}({m}):
        for {j2} in T.serial({m}):
            with T.sblock("{block}"):
                {vi2}, {vj2} = T.axis.remap("SS", [{i2}, {j2}])
                {D}[{vi2}, {vj2}] = {value}
"""
SCALE = "{C}[{vi2}, {vj2}] * T.{dtype}({factor})"
VARIABLES = ("A", "B", "C", "D", "i", "j", "r", "i2", "j2", "vi", "vj", "vr", "vi2", "vj2")
PARAMETERS = {
    "m": "8",
    "k": "16",
    "dtype": "float32",
    "zero": "0",
    "factor": "2",
    "loop": "serial",
    "block": "D",
    "value": SCALE,
}


def _digest(names: dict[str, str] | None = None, **changes: str) -> str:
    fields = {name: name for name in VARIABLES} | (names or {}) | PARAMETERS | changes
    fields["value"] = fields["value"].format(**fields)
    return workload_digest(normal_form(tvm.script.from_source(PROGRAM.format(**fields))))


@functools.cache
def _original() -> str:
    return _digest()


_IDENTIFIERS = st.from_regex(r"\A[a-z][a-z0-9_]{0,8}\Z").filter(
    lambda s: (
        s not in ("as", "in", "is", "if", "or", "and", "not", "for", "def", "del", "try", "from", "with", "pass")
        and s
        not in ("elif", "else", "range", "main", "break", "class", "raise", "while", "yield", "async", "await", "int")
        and s not in ("import", "lambda", "return", "global", "assert", "except", "continue", "nonlocal", "finally")
    )
)


@settings(max_examples=20, deadline=None)
@given(st.lists(_IDENTIFIERS, min_size=len(VARIABLES), max_size=len(VARIABLES), unique=True))
def test_renaming_never_changes_it(names: list[str]) -> None:
    assert _digest(dict(zip(VARIABLES, names, strict=True))) == _original()


@pytest.mark.parametrize(
    "names",
    [
        {"i2": "i", "j2": "j", "vi2": "vi", "vj2": "vj"},
        {"i2": "j", "j2": "i", "vi2": "vj", "vj2": "vi"},
        {"i2": "r", "vi2": "vr"},
        {"A": "B", "B": "A"},
        {"A": "v3", "B": "v1", "C": "v0", "D": "v2"},
    ],
    ids=["the same loop names again", "swapped loop names", "a reduction's name", "swapped buffers", "canonical names"],
)
def test_names_used_again_or_swapped_do_not_change_it(names: dict[str, str]) -> None:
    assert _digest(names) == _original()


def test_names_in_branches_and_threads_do_not_change_it() -> None:
    source = """
@T.prim_func(s_tir=True)
def main({A}: T.Buffer((8, 8), "float32"), {B}: T.Buffer((8, 8), "float32")):
    for {i} in T.thread_binding(8, thread="threadIdx.x"):
        for {j} in range(8):
            with T.sblock("B"):
                {vi}, {vj} = T.axis.remap("SS", [{i}, {j}])
                if {vi} < 4:
                    {B}[{vi}, {vj}] = {A}[{vi}, {vj}] * T.float32(2)
                else:
                    for {k} in range(2):
                        {B}[{vi}, {vj}] = {A}[{vj}, {vi}] * T.Cast("float32", {k})
"""
    names = ("A", "B", "i", "j", "k", "vi", "vj")
    variants = [dict(zip(names, order, strict=True)) for order in (names, names[::-1], names[3:] + names[:3])]
    assert (
        len({workload_digest(normal_form(tvm.script.from_source(source.format(**names)))) for names in variants}) == 1
    )


@pytest.mark.parametrize(
    "change",
    [
        {"m": "4"},
        {"k": "8"},
        {"m": "16", "k": "8"},
        {"dtype": "float64"},
        {"zero": "1"},
        {"factor": "3"},
        {"factor": "2.0000002"},
        {"factor": "-2"},
        {"loop": "parallel"},
        {"loop": "unroll"},
        {"block": "E"},
        {"value": "{C}[{vj2}, {vi2}] * T.{dtype}({factor})"},
        {"value": "{C}[{vi2}, {vj2}] + T.{dtype}({factor})"},
        {"value": "T.{dtype}({factor}) * {C}[{vi2}, {vj2}]"},
        {"value": "{A}[{vi2}, {vj2}] * T.{dtype}({factor})"},
        {"value": "T.exp({C}[{vi2}, {vj2}])"},
        {"value": "T.log({C}[{vi2}, {vj2}])"},
    ],
    ids=lambda change: " ".join(f"{k}={v}" for k, v in change.items()),
)
def test_any_other_change_changes_it(change: dict[str, str]) -> None:
    assert _digest(names=None, **change) != _original()


@given(st.floats(-(2.0**100), 2.0**100, width=32))
@settings(max_examples=20, deadline=None)
def test_constants_that_differ_in_the_last_bit_differ(value: float) -> None:
    def digest(constant: float) -> str:
        a = te.placeholder((4,), name="A")
        b = te.compute((4,), lambda i: a[i] + tvm.tirx.const(constant, "float32"), name="B")
        return workload_digest(normal_form(te.create_prim_func([a, b])))

    assert digest(value) != digest(float(np.nextafter(np.float32(value), np.float32(np.inf))))


def test_it_does_not_depend_on_the_symbol_of_the_function() -> None:
    assert workload_digest(normal_form(add_one("first"))) == workload_digest(normal_form(add_one("second")))


def test_it_survives_json_and_printing() -> None:
    for name in ("GMM", "SFM", "CBR", "C1D"):
        mod = normal_form(te_workload.create_te_workload(name, 0))
        assert workload_digest(module_from_json(module_to_json(mod))) == workload_digest(mod)
        assert workload_digest(tvm.script.from_source(mod.script())) == workload_digest(mod)


def test_sample_workloads_all_differ() -> None:
    names = ("C1D", "C2D", "DEP", "DIL", "GMM", "GRP", "T2D", "NRM", "SFM", "CBR", "TBG")
    digests = [workload_digest(normal_form(te_workload.create_te_workload(n, size))) for n in names for size in (0, 1)]
    assert len(set(digests)) == len(digests)


def test_a_fresh_process_finds_the_same() -> None:
    code = (
        "from tvm.s_tir.meta_schedule.testing import te_workload; from tuner.workload import make_workload; "
        "print(make_workload(te_workload.create_te_workload('GMM', 0), 'x').hash)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == matmul().hash


def _sum(terms: int) -> tvm.tirx.PrimFunc:
    a = te.placeholder((4,), name="A")

    def value(i: tvm.tirx.Var) -> tvm.ir.Expr:
        total = a[i]
        for _ in range(terms - 1):
            total = total + a[i]
        return total

    return te.create_prim_func([a, te.compute((4,), value, name="B")])


def test_long_sums_have_one_too() -> None:
    assert workload_digest(normal_form(_sum(1000))) != workload_digest(normal_form(_sum(1001)))


def test_a_thread_that_parses_meanwhile_does_not_disturb_it() -> None:
    """CPython 3.11 counts the depth of trees once for all threads, which switch while garbage is collected."""
    mod, here, thresholds = normal_form(_sum(150)), threading.get_ident(), gc.get_threshold()
    expected = workload_digest(mod)
    with ThreadPoolExecutor(1) as pool:

        def parse_elsewhere(phase: str, _: dict[str, int]) -> None:
            if threading.get_ident() == here:
                pool.submit(ast.parse, "a = 1").result()

        gc.callbacks.append(parse_elsewhere)
        gc.set_threshold(100)
        try:
            assert workload_digest(mod) == expected
        finally:
            gc.set_threshold(*thresholds)
            gc.callbacks.remove(parse_elsewhere)
    assert gc.isenabled()


def test_nesting_that_cannot_be_read_back_is_the_users_to_mend() -> None:
    a = te.placeholder((4,), name="A")

    def nested(i: tvm.tirx.Var) -> tvm.ir.Expr:
        value = a[i]
        for _ in range(250):
            value = te.exp(value)
        return value

    deep = te.create_prim_func([a, te.compute((4,), nested, name="B")])
    with pytest.raises(InvalidModule, match="nested too deeply"):
        extract_tasks(tvm.IRModule({"main": deep}), target_from("llvm"))


STORED = {
    "GMM": ("f4db12bdc903392fe36e29edf2479e64", "4904cb240779d3890335d1a43c0924ba"),
    "SFM": ("0932033ffde5e444c2bd7abf16193ed6", "180c785252b2d6dee9e099d7ca3a15ab"),
    "CBR": ("e7941ebee622b67bb93f282a588484ad", "19e21471257b79956e70d6c2b144f4cb"),
    "C2D": ("9d8cf67a9c4317ab6bfe420af7b6c0ac", "1945117ea8c47c9541b745b380e6ac34"),
}
"""Digest and family of TVM's sample workloads as databases hold them. They change with `TVM_VERSION` at most."""
STORED_OF_RELAX = {
    "fused_matmul_relu": "67bcf224dc334964cc65eb0a97ad2f3a",
    "matmul1": "afed6b56ab9214b2b4c091b2e49ee8b1",
    "softmax": "629bbe44527aeb0f6ed4e12e6463f9ab",
}


@pytest.mark.parametrize("name", STORED)
def test_digests_in_databases_stay_valid(name: str) -> None:
    mod = normal_form(te_workload.create_te_workload(name, 0))
    assert (workload_digest(mod), workload_family(mod)) == STORED[name]


def _model() -> tvm.IRModule:
    """Two layers and a softmax: a fused function, one that is fused with nothing, and constants to be folded."""
    builder = relax.BlockBuilder()
    x, w1, w2 = (
        relax.Var(name, relax.TensorType(shape, "float32"))
        for name, shape in (("x", (1, 64)), ("w1", (64, 32)), ("w2", (32, 16)))
    )
    with builder.function("main", [x, w1, w2]):
        with builder.dataflow():
            hidden = builder.emit(relax.op.nn.relu(relax.op.matmul(x, w1)))
            out = builder.emit_output(relax.op.nn.softmax(relax.op.matmul(hidden, w2)))
        builder.emit_func_output(out)
    return builder.get()


def _weights() -> dict[str, tvm.runtime.Tensor]:
    shapes = {"w1": (64, 32), "w2": (32, 16)}
    return {name: tvm.runtime.tensor(np.ones(shape, "float32")) for name, shape in shapes.items()}


LLVM = target_from({"kind": "llvm", "num-cores": 2})


def _as_the_client_sees_it(program: Program, params: dict[str, tvm.runtime.Tensor] | None = None) -> dict[str, str]:
    lowered = lower(program, LLVM, params)
    return {str(var.name_hint): function_digest(func) for var, func in prim_funcs(lowered)}


def _as_the_service_sees_it(module_json: str) -> dict[str, str]:
    (answer,) = submission.parse("tvm-json", module_json, canonical_target(LLVM), None, None)
    return {task.workload.name: task.workload.hash for task in answer.tasks}


def test_digests_of_relax_models_in_databases_stay_valid() -> None:
    assert _as_the_service_sees_it(module_to_json(_model())) == STORED_OF_RELAX


def test_a_relax_model_has_the_tasks_that_the_client_looks_up() -> None:
    assert _as_the_client_sees_it(Program(_model())) == STORED_OF_RELAX


def test_bound_parameters_change_no_digest() -> None:
    assert _as_the_client_sees_it(Program(_model()), _weights()) == STORED_OF_RELAX


def test_weights_that_stay_with_the_user_change_no_digest() -> None:
    program = detach(relax.transform.BindParams("main", _weights())(_model()))
    assert program.weights
    assert _as_the_client_sees_it(program) == _as_the_service_sees_it(module_to_json(program.module))


def test_functions_that_are_kept_apart_have_equal_digests_on_both_sides() -> None:
    source = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def double(x: T.Buffer((8,), "float32"), y: T.Buffer((8,), "float32")):
        for i in T.serial(8):
            with T.sblock("y"):
                vi = T.axis.spatial(8, i)
                y[vi] = x[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        cls = Module
        with R.dataflow():
            lv = R.call_tir(cls.double, (x,), out_ty=R.Tensor((8,), "float32"))
            gv = R.nn.relu(lv)
            R.output(gv)
        return gv
"""
    mod = tvm.script.from_source(source)
    assert _as_the_client_sees_it(Program(mod)) == _as_the_service_sees_it(module_to_json(mod))


def test_what_a_function_is_called_and_promises_does_not_count() -> None:
    func = add_one("first")
    private = func.without_attr("global_symbol")
    promising = func.with_attr("tirx.noalias", True)
    assert {function_digest(f) for f in (func, private, promising)} == {function_digest(add_one("second"))}
    assert _as_the_service_sees_it(module_to_json(tvm.IRModule({"first": func}))) == {"first": function_digest(func)}


def test_a_line_of_a_text_counts_whatever_it_begins_with() -> None:
    texts = ("a\n# b", "a\n# c", "a")
    assert len({function_digest(add_one("f").with_attr("x", text)) for text in texts}) == len(texts)
