"""Executables of models: each function is compiled by itself, in the caller's pass context, and all are linked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tvm
from tvm import relax
from tvm.ir.instrument import pass_instrument
from tvm.ir.transform import PassInfo

from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.executable import _parts
from loopwright.codegen.program.lowered_bounds import PROVEN
from loopwright.codegen.program.lowering import lower
from tests.support.rule_programs import TARGET

X = np.random.default_rng(0).standard_normal((3, 7)).astype(np.float32)
W = np.random.default_rng(1).standard_normal((7, 5)).astype(np.float32)

BEYOND = """
@T.prim_func(private=True, s_tir=True)
def beyond(x: T.Buffer((4,), "float32"), y: T.Buffer((4,), "float32")):
    for i in range(4):
        with T.sblock("y"):
            j = T.axis.spatial(4, i)
            y[j] = x[j + 1]
"""
CALLING = """
@I.ir_module(s_tir=True)
class Calling:
    @T.prim_func(s_tir=True)
    def outer(x: T.Buffer((4,), "float32")):
        Calling.inner(x.data)

    @T.prim_func(s_tir=True)
    def inner(x: T.handle("float32")):
        T.evaluate(0)
"""


def lowered() -> tvm.IRModule:
    """Return a product and, behind it, a softmax, which are several functions."""
    builder = relax.BlockBuilder()
    x, w = (relax.Var(name, relax.TensorType(array.shape, "float32")) for name, array in (("x", X), ("w", W)))
    with builder.function("main", [x, w]):
        with builder.dataflow():
            product = builder.emit(relax.op.matmul(x, w))
            result = builder.emit_output(relax.op.nn.softmax(relax.op.permute_dims(product)))
        builder.emit_func_output(result)
    return lower(builder.get(), TARGET)


def expected() -> Any:
    powers = np.exp((X @ W).T)
    return powers / powers.sum(axis=-1, keepdims=True)


@pass_instrument
class Lowered:
    """Counts the functions of each module that is lowered."""

    def __init__(self) -> None:
        self.functions: list[int] = []

    def run_after_pass(self, mod: tvm.IRModule, info: PassInfo) -> None:
        if info.name == "s_tir.LowerOpaqueBlock":
            self.functions.append(len(prim_funcs(mod)))


def test_each_function_is_compiled_by_itself_in_the_callers_context(tmp_path: Path) -> None:
    mod, seen = lowered(), Lowered()
    with tvm.transform.PassContext(instruments=[seen]):
        built = compile_module(mod, TARGET)
    assert len(prim_funcs(mod)) > 1
    assert seen.functions == [1] * len(prim_funcs(mod))
    built.export_library(str(tmp_path / "model.so"))
    for program in (built, tvm.runtime.load_module(str(tmp_path / "model.so"))):
        result = relax.VirtualMachine(program, tvm.cpu())["main"](*map(tvm.runtime.tensor, (X, W)))
        np.testing.assert_allclose(result.numpy(), expected(), rtol=1e-5, atol=1e-6)


def test_an_error_in_one_function_is_raised() -> None:
    mod = lowered()
    var, _ = prim_funcs(mod)[0]
    mod.update_func(var, tvm.script.from_source(BEYOND).with_attr(PROVEN, True))
    with pytest.raises(ValueError, match="not proven to stay inside"):
        compile_module(mod, TARGET)


def test_functions_that_call_each_other_stay_together() -> None:
    assert [len(prim_funcs(part)) for part in _parts(tvm.script.from_source(CALLING))] == [2]
    assert [len(prim_funcs(part)) for part in _parts(lowered())] == [1] * len(prim_funcs(lowered()))
