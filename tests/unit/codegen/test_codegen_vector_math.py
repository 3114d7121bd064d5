"""Elementary functions as polynomials: how far they are from the exact values, and where they do not apply."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import tvm
from scipy import special
from torch import nn
from tvm import te, tirx

from loopwright.codegen.cpu.vector_math import EXACT_MATH, with_exact_math, with_vector_math
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import function_digest
from loopwright.codegen.program.lowering import lower
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json, module_to_json
from loopwright.codegen.target import target_from
from tests.support.rule_programs import TARGET, function
from tests.support.tuner_programs import mlp

FUNCTIONS: dict[str, tuple[Callable[..., tirx.Expr], Callable[..., np.ndarray], float]] = {
    "exp": (te.exp, np.exp, 1.1),
    "log": (te.log, np.log, 1.0),
    "tanh": (te.tanh, np.tanh, 6.0),
    "erf": (te.erf, special.erf, 6.0),
    "cosh": (te.cosh, np.cosh, 4.0),
    "sinh": (te.sinh, np.sinh, 5.0),
    "sigmoid": (te.sigmoid, special.expit, 3.0),
}
"""TVM's function, the exact one, and the largest error in units in the last place."""
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 1e-38, 88.72, 88.73, 1e30, -1e30, 3.4e38], dtype=np.float32
)


def mapped(op: Callable[..., tirx.Expr], count: int, dtype: str = "float32") -> tvm.IRModule:
    x = te.placeholder((count,), dtype, name="x")
    return function(x, te.compute(x.shape, lambda i: op(x[i]), name="y"))


def call(mod: tvm.IRModule, x: np.ndarray) -> np.ndarray:
    target = TARGET
    out = tvm.runtime.tensor(np.zeros_like(x))
    compile_module(scheduled_module(mod, None, target), target)["main"](tvm.runtime.tensor(x), out)
    return np.asarray(out.numpy())


def arguments(name: str, count: int) -> np.ndarray:
    """Return numbers of all magnitudes for which the result is a normal number."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0x00800000, 0x7F000000, count, dtype=np.int32)
    x = bits.view(np.float32) * (1 if name == "log" else rng.choice(np.array([-1, 1], dtype=np.float32), count))
    x[: count // 2] = rng.uniform(0.01 if name == "log" else -90, 90, count // 2)
    return np.clip(x, -86.9, 88.7) if name in ("exp", "sigmoid", "cosh", "sinh") else x


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_error_is_within_what_is_promised(name: str) -> None:
    op, exact, most = FUNCTIONS[name]
    x = arguments(name, 200_000)
    expected = exact(x.astype(np.float64))
    unit = np.spacing(np.abs(expected).astype(np.float32)).astype(np.float64)
    assert (np.abs(call(mapped(op, len(x)), x) - expected) / unit).max() < most


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_not_a_number_or_out_of_range_comes_out_as_in_the_c_library(name: str) -> None:
    op, exact, _ = FUNCTIONS[name]
    with np.errstate(all="ignore"):
        expected = exact(SPECIAL.astype(np.float64)).astype(np.float32)
    assert call(mapped(op, len(SPECIAL)), SPECIAL) == pytest.approx(expected, rel=1e-6, abs=1.7e-38, nan_ok=True)


def test_a_masked_score_has_no_weight() -> None:
    x = np.array([-np.inf, -104.0, -88.0], dtype=np.float32)
    assert (call(mapped(te.exp, 3), x) == 0).all()


@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5, -1.0])
def test_powers(exponent: float) -> None:
    x = np.linspace(0.1, 9, 64, dtype=np.float32)
    mod = mapped(lambda v: te.power(v, tirx.const(exponent, "float32")), 64)
    assert call(mod, x) == pytest.approx(x.astype(np.float64) ** exponent, rel=1e-6)


def test_small_whole_powers_are_products() -> None:
    square = mapped(lambda v: te.power(v, tirx.const(2.0, "float32")), 8)
    assert "pow" not in with_vector_math(square["main"], TARGET).script()
    tenth = mapped(lambda v: te.power(v, tirx.const(10.0, "float32")), 8)
    assert "pow" in with_vector_math(tenth["main"], TARGET).script()


def test_functions_of_functions() -> None:
    x = np.linspace(-2, 2, 100, dtype=np.float32)
    mod = mapped(lambda v: te.tanh(te.exp(v)), 100)
    assert call(mod, x) == pytest.approx(np.tanh(np.exp(x.astype(np.float64))), rel=1e-6)


def test_exact_math_leaves_a_function_alone() -> None:
    func = mapped(te.exp, 8)["main"].with_attr(EXACT_MATH, True)
    assert with_vector_math(func, TARGET).same_as(func)


def test_exact_math_is_a_workload_of_its_own_and_survives_lowering() -> None:
    func = mapped(te.exp, 8)["main"]
    exact = with_exact_math(tvm.IRModule({"main": func}))
    assert function_digest(exact["main"]) != function_digest(func)
    model = with_exact_math(mlp(1))
    lowered = lower(module_from_json(module_to_json(model)), TARGET)
    assert all(f.attrs[EXACT_MATH] for _, f in prim_funcs(lowered))
    assert not any(EXACT_MATH in f.attrs for _, f in prim_funcs(lower(mlp(1), TARGET)))


@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_other_dtypes_are_left_alone(dtype: str) -> None:
    func = mapped(te.exp, 8, dtype)["main"]
    assert "T.exp" in with_vector_math(func, TARGET).script()


def test_functions_for_a_gpu_are_left_alone() -> None:
    func = mapped(te.exp, 8)["main"]
    assert with_vector_math(func, target_from({"kind": "cuda", "arch": "sm_80"})).same_as(func)


@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_results_are_within_one_and_one_itself_from_the_bound_on(name: str) -> None:
    x = np.concatenate([np.linspace(-12, 12, 200_001), [4, -4, 9.02, -9.02, 1e20, -1e38]]).astype(np.float32)
    y = call(mapped(FUNCTIONS[name][0], len(x)), x)
    assert np.abs(y).max() == 1
    assert (y[np.abs(x) > 9.1] == np.sign(x[np.abs(x) > 9.1])).all()


@pytest.mark.parametrize("name", ["exp", "log", "tanh", "erf", "cosh", "sinh"])
def test_a_vectorised_loop_has_no_call_of_the_c_library(name: str) -> None:
    schedule = tvm.s_tir.Schedule(mapped(FUNCTIONS[name][0], 64))
    _, inner = schedule.split(schedule.get_loops(schedule.get_sblock("y"))[0], [None, 8])
    schedule.vectorize(inner)
    func = with_vector_math(schedule.mod["main"], TARGET)
    code = tvm.compile(tvm.IRModule({"main": func}), TARGET).mod.inspect_source("ll")
    assert f"{name}f(" not in code
    assert "fmul <8 x float>" in code or "@llvm.fma.v8f32" in code


def test_a_quotient_of_a_row_is_exact() -> None:
    divisors = np.array([0.1, 3.0, 1e-39, 7.7], dtype=np.float32)
    rows = np.arange(200, dtype=np.float32).reshape(4, 50) * divisors[:, None]
    x, y = te.placeholder((4, 50), name="x"), te.placeholder((4,), name="y")
    mod = function(x, y, te.compute(x.shape, lambda i, j: x[i, j] / y[i], name="z"))
    out = tvm.runtime.tensor(np.zeros_like(rows))
    compile_module(scheduled_module(mod, None, TARGET), TARGET)["main"](*map(tvm.runtime.tensor, (rows, divisors)), out)
    assert (out.numpy() == rows / divisors[:, None]).all()


def test_a_result_without_axes_builds() -> None:
    x = te.placeholder((), name="x")
    mod = function(x, te.compute((), lambda: te.tanh(x[()]) * tirx.const(2.0, "float32"), name="y"))
    assert call(mod, np.array(0.5, dtype=np.float32)) == pytest.approx(2 * np.tanh(0.5), rel=1e-6)


@pytest.mark.parametrize(
    "quotient",
    [
        lambda x, y: lambda i, j: x[i, j] / y[i],
        lambda x, y: lambda i, j: x[i, j] / y[j],
        lambda x, y: lambda i, j: y[i] / x[i, j],
        lambda x, y: lambda i, j: x[i, j] / 3.0,
    ],
    ids=["of each row", "of each column", "by a row", "by a number"],
)
def test_quotients_stay(quotient: Callable[..., Callable[..., tirx.Expr]]) -> None:
    x, y = te.placeholder((5, 5), name="x"), te.placeholder((5,), name="y")
    mod = function(x, y, te.compute(x.shape, quotient(x, y), name="z"))
    assert scheduled_module(mod, None, TARGET).script() == mod.script()


@pytest.mark.parametrize("rounds_before", [True, False], ids=["rounded", "loaded"])
def test_what_is_rounded_to_bfloat16_is_bound_once_and_not_read_as_an_integer(rounds_before: bool) -> None:
    ins = te.placeholder((3, 37), "float32" if rounds_before else "bfloat16", "ins")

    def element(*place: tirx.Var) -> tirx.Expr:
        value = ins(*place).astype("bfloat16").astype("float32")
        return (value * tirx.sigmoid(value)).astype("bfloat16")

    mod = function(ins, te.compute((3, 37), element, "outs"))
    schedule = tvm.s_tir.Schedule(mod)
    schedule.vectorize(schedule.get_loops("outs")[-1])
    scheduled = schedule.mod
    scheduled["main"] = with_vector_math(scheduled["main"], TARGET)
    values = np.random.default_rng(7).normal(0, 3, (3, 37)).astype("float32")
    values[0, :4] = np.nan, np.inf, -200.0, 0.0
    rounded = values.astype("bfloat16")
    result = tvm.runtime.empty((3, 37), "bfloat16")
    compile_module(scheduled, TARGET)["main"](tvm.runtime.tensor(values if rounds_before else rounded), result)
    x = rounded.astype("float64")
    np.testing.assert_allclose(result.numpy().astype("float64"), x / (1 + np.exp(-x)), rtol=2**-8, atol=1e-30)


def test_silu_of_each_bfloat16_is_that_of_pytorch_without_the_c_library() -> None:
    bits = np.arange(1 << 16, dtype="uint16").reshape(64, 1024)
    ins = te.placeholder(bits.shape, "bfloat16", "ins")

    def element(*place: tirx.Var) -> tirx.Expr:
        value = ins(*place).astype("float32")
        return (value * tirx.sigmoid(value)).astype("bfloat16")

    schedule = tvm.s_tir.Schedule(function(ins, te.compute(bits.shape, element, "outs")))
    schedule.vectorize(schedule.split(schedule.get_loops("outs")[-1], [None, 16])[-1])
    scheduled = schedule.mod
    scheduled["main"] = with_vector_math(scheduled["main"], TARGET)
    built = compile_module(scheduled, TARGET)
    assert "expf" not in built.inspect_source("ll")
    result = tvm.runtime.empty(bits.shape, "bfloat16")
    built["main"](tvm.runtime.tensor(bits.view("bfloat16")), result)
    expected = nn.functional.silu(torch.from_numpy(bits.view("int16")).view(torch.bfloat16))
    got = torch.from_numpy(result.numpy().view("int16")).view(torch.bfloat16)
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def test_bfloat16_that_a_function_keeps_itself_is_not_read_by_its_bits() -> None:
    ins = te.placeholder((5, 33), name="ins")
    kept = te.compute(ins.shape, lambda *place: ins(*place).astype("bfloat16"), "kept")
    outs = te.compute(ins.shape, lambda *place: te.exp(kept(*place).astype("float32")), "outs")
    values = np.linspace(-3, 3, 5 * 33, dtype="float32").reshape(5, 33)
    expected = np.exp(values.astype("bfloat16").astype("float32"))
    np.testing.assert_allclose(call(function(ins, outs), values), expected, rtol=1e-6)
