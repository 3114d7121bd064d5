"""Traces as JSON, and which arguments a function only writes."""

from __future__ import annotations

import json

import pytest
import tvm
import tvm_ffi
from tvm import te, topi
from tvm.s_tir.meta_schedule.testing import te_workload

from tests.unit.tuner.programs import LLVM, add_one, candidate, elementwise, matmul
from tuner import ir
from tuner.space.builtin import builtin_space


def test_the_installed_versions_are_the_pinned_ones() -> None:
    ir.check_versions()


def test_a_trace_survives_json() -> None:
    mod = ir.module_from_json(matmul().module_json)
    space = builtin_space(mod, ir.target_from(LLVM), seed=1)
    for seed, trace in enumerate(space.traces, start=1):
        schedule = space.replay(trace, seed)
        assert schedule is not None
        text = ir.trace_to_json(schedule.trace)
        again = ir.apply_trace_json(mod, text, seed=99)
        assert tvm_ffi.structural_equal(again.mod, schedule.mod)
        assert ir.trace_to_json(again.trace) == text
        assert json.loads(text)[1], "a point of the space has its decisions"


def test_a_trace_of_another_workload_is_refused() -> None:
    trace = candidate(matmul(), seed=1).trace_json
    assert trace is not None
    with pytest.raises((RuntimeError, ValueError)):
        ir.apply_trace_json(ir.module_from_json(elementwise().module_json), trace)


def test_a_target_without_cores_has_a_space_too() -> None:
    mod = ir.module_from_json(elementwise().module_json)
    assert builtin_space(mod, ir.target_from('{"kind": "llvm"}'), seed=1).traces


def test_the_output_of_a_reduction_is_only_written() -> None:
    assert ir.write_only(te_workload.create_te_workload("GMM", 0)) == (False, False, True)
    assert ir.write_only(te_workload.create_te_workload("SFM", 0)) == (False, True)


def test_several_outputs_and_an_intermediate_that_is_one() -> None:
    a = te.placeholder((8, 8), name="A")
    total = topi.sum(a, axis=1)
    both = te.create_prim_func([a, total, te.compute((8,), lambda i: a[i, 0] * 2.0, name="twice")])
    assert ir.write_only(both) == (False, True, True)
    read_again = te.create_prim_func([a, total, te.compute((8,), lambda i: total[i] * 2.0, name="twice")])
    assert ir.write_only(read_again) == (False, False, True)


def _function(body: str) -> tvm.tirx.PrimFunc:
    return tvm.script.from_source(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        with T.sblock("root"):
            vi = T.axis.{body}
""")


def test_what_a_function_updates_in_place_is_not_only_written() -> None:
    assert ir.write_only(_function("spatial(4, i)\n            B[vi] = B[vi] + A[vi]")) == (False, False)
    accumulated = "reduce(4, i)\n            B[0] = B[0] + A[vi]"
    assert ir.write_only(_function(accumulated)) == (False, False)


def test_a_block_may_have_any_name() -> None:
    assert ir.write_only(_function("spatial(4, i)\n            B[vi] = A[vi]")) == (False, True)


def test_a_workload_tells_its_arguments() -> None:
    workload = ir.workload(add_one(extent=12, dtype="int8"), "add")
    assert [(arg.shape, arg.dtype) for arg in workload.args] == [((12,), "int8"), ((12,), "int8")]
    assert [str(var.name_hint) for var in ir.module_from_json(workload.module_json).functions] == ["main"]
    assert "def main" in workload.script
