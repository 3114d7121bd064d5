"""The name of a workload: equal for what is the same program, different for all else, everywhere."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import tvm
from hypothesis import given, settings
from hypothesis import strategies as st
from tvm import te
from tvm.s_tir.meta_schedule.testing import te_workload

from tests.unit.tuner.programs import add_one, matmul
from tuner import ir
from tuner.errors import InvalidModule
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
    return ir.digest(ir.wrap(tvm.script.from_source(PROGRAM.format(**fields))))


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
    assert _digest(dict(zip(VARIABLES, names, strict=True))) == _digest()


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
    assert _digest(names) == _digest()


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
    assert len({ir.digest(ir.wrap(tvm.script.from_source(source.format(**names)))) for names in variants}) == 1


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
    assert _digest(**change) != _digest()


@given(st.floats(-(2.0**100), 2.0**100, width=32))
@settings(max_examples=20, deadline=None)
def test_constants_that_differ_in_the_last_bit_differ(value: float) -> None:
    def digest(constant: float) -> str:
        a = te.placeholder((4,), name="A")
        b = te.compute((4,), lambda i: a[i] + tvm.tirx.const(constant, "float32"), name="B")
        return ir.digest(ir.wrap(te.create_prim_func([a, b])))

    assert digest(value) != digest(float(np.nextafter(np.float32(value), np.float32(np.inf))))


def test_it_does_not_depend_on_the_symbol_of_the_function() -> None:
    assert ir.digest(ir.wrap(add_one("first"))) == ir.digest(ir.wrap(add_one("second")))


def test_it_survives_json_and_printing() -> None:
    for name in ("GMM", "SFM", "CBR", "C1D"):
        mod = ir.wrap(te_workload.create_te_workload(name, 0))
        assert ir.digest(ir.module_from_json(ir.module_to_json(mod))) == ir.digest(mod)
        assert ir.digest(tvm.script.from_source(ir.script(mod))) == ir.digest(mod)


def test_sample_workloads_all_differ() -> None:
    names = ("C1D", "C2D", "DEP", "DIL", "GMM", "GRP", "T2D", "NRM", "SFM", "CBR", "TBG")
    digests = [ir.digest(ir.wrap(te_workload.create_te_workload(n, size))) for n in names for size in (0, 1)]
    assert len(set(digests)) == len(digests)


def test_a_fresh_process_finds_the_same() -> None:
    code = (
        "from tvm.s_tir.meta_schedule.testing import te_workload; from tuner import ir; "
        "print(ir.workload(te_workload.create_te_workload('GMM', 0), 'x').hash)"
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
    assert ir.digest(ir.wrap(_sum(1000))) != ir.digest(ir.wrap(_sum(1001)))


def test_nesting_that_cannot_be_read_back_is_the_users_to_mend() -> None:
    a = te.placeholder((4,), name="A")

    def nested(i: tvm.tirx.Var) -> tvm.ir.Expr:
        value = a[i]
        for _ in range(250):
            value = te.exp(value)
        return value

    deep = te.create_prim_func([a, te.compute((4,), nested, name="B")])
    with pytest.raises(InvalidModule, match="nested too deeply"):
        extract_tasks(tvm.IRModule({"main": deep}), ir.target_from("llvm"))
