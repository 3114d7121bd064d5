"""What TVM prints, and what people write, passes the gate and means the same after it."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
import tvm_ffi
from tvm import relax
from tvm.s_tir import Schedule

from tests.unit.guard.scripts import MATMUL, RELAX, modules, with_constants
from tuner.guard.tvmscript import check_tvmscript


def test_printed_modules_pass_unchanged() -> None:
    count = 0
    for name, mod in modules():
        text = mod.script()
        assert check_tvmscript(text) == text, name
        assert tvm_ffi.structural_equal(tvm.script.from_source(text), mod), name
        count += 1
    assert count > 40


def test_printed_schedule_passes() -> None:
    sch = Schedule(tvm.script.from_source(check_tvmscript(MATMUL)))
    block = sch.get_sblock("C")
    i, j, k = sch.get_loops(block)
    outer, inner = sch.split(j, [None, 16])
    sch.reorder(i, outer, k, inner)
    sch.parallel(i)
    sch.vectorize(inner)
    sch.unroll(outer)
    sch.annotate(block, "meta_schedule.note", "reads (A, B)")
    sch.decompose_reduction(block, k)
    text = sch.mod.script()
    assert tvm_ffi.structural_equal(tvm.script.from_source(check_tvmscript(text)), sch.mod)


@pytest.mark.parametrize("text", [MATMUL, RELAX], ids=["matmul", "relax"])
def test_imports_go_and_line_numbers_stay(text: str) -> None:
    cleaned = check_tvmscript(
        "\ufeff" + text.replace("\n", "\r\n") + "# Metadata omitted. Use show_meta=True in script()"
    )
    assert "import" not in cleaned
    assert cleaned.split("\n")[1:] == [*text.split("\n")[1:-1], "# Metadata omitted. Use show_meta=True in script()"]
    assert tvm.script.from_source(cleaned) is not None


def test_relax_script_means_the_same() -> None:
    mod = tvm.script.from_source(check_tvmscript(RELAX))
    assert {gv.name_hint for gv in mod.get_global_vars()} == {"main", "double"}
    assert mod.attrs["name"] == "a (b)"


@pytest.mark.parametrize("call", ["call_dps_packed", "call_pure_packed"])
def test_relax_may_name_a_function_of_a_library(call: str) -> None:
    """Tuning runs nothing that Relax calls, so the name may stand."""
    result = {"call_dps_packed": "out_ty", "call_pure_packed": "ty_args"}[call]
    arguments = {"call_dps_packed": '"env.relu", (x,)', "call_pure_packed": '"env.relu", x'}[call]
    text = f"""@R.function
def main(x: R.Tensor((4,), "float32")):
    return R.{call}({arguments}, {result}=R.Tensor((4,), "float32"))
"""
    assert check_tvmscript(text) == text
    assert isinstance(tvm.script.from_source(text), relax.Function)


def test_constants_that_come_along_are_taken() -> None:
    mod = with_constants()
    # As the importer for PyTorch leaves weights in an attribute.
    attributed = mod["main"].with_attr("params", [tvm.runtime.tensor(np.ones(3, "float32"))])
    for printed in (mod, mod["main"], attributed):
        text = printed.script(show_meta=True)
        assert check_tvmscript(text) == text
        assert tvm_ffi.structural_equal(tvm.script.from_source(text), printed, map_free_vars=True)


BODIES = {
    "meta_var": "n = T.meta_var(4)\n    for i in range(n):\n        A[i] = T.Cast('float32', i)",
    "let": "x: T.let = A[0] * T.float32(2)\n    A[1] = x",
    "assertion": "assert A[0] < T.float32(1), ('ValueError', ['A[0] (the first); __sic__'])\n    A[1] = A[0]",
    "condition": "if A[0] < T.float32(1) and not A[1] < A[2]:\n        A[0] = -A[1]\n    else:\n        A[0] = A[2]",
    "annotation": "for i in T.serial(4, annotations={'note': 'text: f() ** 2'}):\n        A[i] = T.float32('inf')",
    "threads": "for i in T.thread_binding(4, thread='threadIdx.x'):\n        A[i] = T.min(A[i], A[0])",
    "shadowed dialect": "I = T.meta_var(2)\n    A[I] = T.float32(1)",
    "builtin name, bound": "for max in range(4):\n        A[max] = T.float32(1)",
    "llvm intrinsic": "A[0] = T.call_llvm_pure_intrin('float32', 'llvm.exp.f32', A[1])",
    "while": "i: T.int32 = 0\n    while i < 4:\n        A[i] = T.float32(0)\n        i += 1",
}


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_idioms_pass_and_parse(body: str) -> None:
    text = f"@T.prim_func(s_tir=True)\ndef main(A: T.Buffer((4,), 'float32')):\n    {body}\n"
    assert isinstance(tvm.script.from_source(check_tvmscript(text)), tvm.tirx.PrimFunc)
