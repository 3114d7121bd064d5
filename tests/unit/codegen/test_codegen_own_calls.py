"""Calls of a module's own PrimFuncs, by name and with symbolic extents."""

from __future__ import annotations

import numpy as np
import pytest
import tvm
from tvm import relax

from loopwright.codegen.errors import InvalidModule
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.lowering import bind_shapes, lower
from loopwright.codegen.program.own_calls import bind_calls
from loopwright.codegen.serialization import module_to_json
from loopwright.codegen.target import target_from
from loopwright.frontends.dialect import translate
from loopwright.frontends.tvmscript import module_from_script
from tests.support.programs import NAMED_CALLS
from tuner.task import extract_tasks

LLVM = target_from("llvm")
SHAPES = {"m": 12, "n": 8, "k": 4}


def tutorial() -> tvm.IRModule:
    mod: tvm.IRModule = module_from_script(translate(NAMED_CALLS).text)
    return mod


def names(mod: tvm.IRModule) -> list[str]:
    return [str(var.name_hint) for var, _ in prim_funcs(mod)]


def test_a_function_called_by_name_at_two_shapes_becomes_two_static_functions() -> None:
    bound = bind_shapes(tutorial(), SHAPES)
    assert names(bound) == ["linear0_m12_n8", "linear0_m8_n4", "relu0"]
    assert "call_dps_packed" not in bound.script()
    found = extract_tasks(bound, LLVM)
    assert [task.workload.name for task in found.tasks] == ["fused_linear0_m12_n8_relu0", "linear0_m8_n4"]
    assert found.notes == ()


def test_what_is_bound_computes_what_the_calls_compute() -> None:
    generator = np.random.default_rng(0)
    shapes = ((1, 12), (8, 12), (8,), (4, 8), (4,))
    x, w0, b0, w1, b1 = (generator.standard_normal(shape, dtype="float32") for shape in shapes)
    machine = relax.VirtualMachine(relax.build(lower(bind_shapes(tutorial(), SHAPES), LLVM), "llvm"), tvm.cpu())
    got = machine["main"](*(tvm.runtime.tensor(value) for value in (x, w0, b0, w1, b1))).numpy()
    np.testing.assert_allclose(got, np.maximum(x @ w0.T + b0, 0) @ w1.T + b1, rtol=1e-4, atol=1e-4)


def test_the_extents_to_give_are_those_of_the_relax_function() -> None:
    with pytest.raises(InvalidModule, match=r"symbolic shape \(k, m, n\)"):
        extract_tasks(tutorial(), LLVM)
    with pytest.raises(InvalidModule, match=r"symbolic shape \(k\)"):
        extract_tasks(bind_shapes(tutorial(), {"m": 12, "n": 8}), LLVM)


CALLS = """
@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def double(x: T.Buffer(("n",), "float32"), y: T.Buffer(("n",), "float32")):
        for i in range(n):
            with T.sblock("y"):
                vi = T.axis.spatial(n, i)
                y[vi] = x[vi] * T.float32(2)

    @R.function
    def main(x: R.Tensor((16,), "float32"), z: R.Tensor(("batch",), "float32")):
        batch = T.int64()
        cls = Module
        with R.dataflow():
            gv = {call}
            R.output(gv)
        return gv
"""


def calling(call: str) -> tvm.IRModule:
    mod: tvm.IRModule = tvm.script.from_source(CALLS.format(call=call))
    return mod


def test_the_only_shape_of_a_function_leaves_it_its_name() -> None:
    for call in ("R.call_tir(cls.double, (x,)", 'R.call_dps_packed("double", (x,)'):
        mod = calling(f'{call}, out_ty=R.Tensor((16,), "float32"))')
        before = module_to_json(mod)
        bound = bind_calls(mod)
        assert names(bound) == ["double"]
        assert [int(param.shape[0]) for param in bound["double"].params] == [16, 16]
        assert module_to_json(mod) == before
        assert bind_calls(bound) is bound


def test_extents_have_other_names_in_the_function_than_in_its_caller() -> None:
    mod = calling('R.call_tir(cls.double, (z,), out_ty=R.Tensor((batch,), "float32"))')
    with pytest.raises(InvalidModule, match=r"symbolic shape \(batch\)"):
        extract_tasks(mod, LLVM)
    assert bind_shapes(mod, {"batch": 4})["double"].params[0].shape[0] == 4


def test_a_library_keeps_its_calls() -> None:
    mod = calling('R.call_dps_packed("of.a.library", (x,), out_ty=R.Tensor((16,), "float32"))')
    assert bind_calls(mod) is mod


def test_the_symbol_of_a_function_names_it_as_well() -> None:
    mod = calling('R.call_dps_packed("other", (x,), out_ty=R.Tensor((16,), "float32"))')
    mod["double"] = mod["double"].with_attr("global_symbol", "other")
    assert "cls.double, (x,)" in bind_calls(mod).script()


def test_a_call_that_contradicts_itself_is_refused() -> None:
    mod = calling('R.call_dps_packed("double", (x,), out_ty=R.Tensor((8,), "float32"))')
    with pytest.raises(InvalidModule, match="a call of double gives its extent n the values 16 and 8"):
        bind_calls(mod)


def test_a_call_with_another_number_of_tensors_is_refused() -> None:
    mod = calling('R.call_dps_packed("double", (x, x), out_ty=R.Tensor((16,), "float32"))')
    with pytest.raises(InvalidModule, match="gives 3 arguments and results, and the function has 2 parameters"):
        bind_calls(mod)
