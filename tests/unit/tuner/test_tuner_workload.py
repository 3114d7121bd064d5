"""Workloads: their arguments, which of them are only written, and the context in which TVM's rules work on them."""

from __future__ import annotations

import tvm
from tvm import te, topi
from tvm.s_tir.meta_schedule.testing import te_workload

from loopwright.codegen.functions import write_only
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import add_one, elementwise
from tuner.space.builtin import builtin_space
from tuner.workload import make_workload


def test_a_target_without_cores_has_a_space_too() -> None:
    mod = module_from_json(elementwise().module_json)
    assert builtin_space(mod, target_from('{"kind": "llvm"}'), seed=1).traces


def test_the_output_of_a_reduction_is_only_written() -> None:
    assert write_only(te_workload.create_te_workload("GMM", 0)) == (False, False, True)
    assert write_only(te_workload.create_te_workload("SFM", 0)) == (False, True)


def test_several_outputs_and_an_intermediate_that_is_one() -> None:
    a = te.placeholder((8, 8), name="A")
    total = topi.sum(a, axis=1)
    both = te.create_prim_func([a, total, te.compute((8,), lambda i: a[i, 0] * 2.0, name="twice")])
    assert write_only(both) == (False, True, True)
    read_again = te.create_prim_func([a, total, te.compute((8,), lambda i: total[i] * 2.0, name="twice")])
    assert write_only(read_again) == (False, False, True)


def _function(body: str) -> tvm.tirx.PrimFunc:
    return tvm.script.from_source(f"""
@T.prim_func(s_tir=True)
def main(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
    for i in T.serial(4):
        with T.sblock("root"):
            vi = T.axis.{body}
""")


def test_what_a_function_updates_in_place_is_not_only_written() -> None:
    assert write_only(_function("spatial(4, i)\n            B[vi] = B[vi] + A[vi]")) == (False, False)
    accumulated = "reduce(4, i)\n            B[0] = B[0] + A[vi]"
    assert write_only(_function(accumulated)) == (False, False)


def test_a_block_may_have_any_name() -> None:
    assert write_only(_function("spatial(4, i)\n            B[vi] = A[vi]")) == (False, True)


def test_a_workload_tells_its_arguments() -> None:
    workload = make_workload(add_one(extent=12, dtype="int8"), "add")
    assert [(arg.shape, arg.dtype) for arg in workload.args] == [((12,), "int8"), ((12,), "int8")]
    assert [str(var.name_hint) for var in module_from_json(workload.module_json).functions] == ["main"]
    assert "def main" in workload.script
