"""Consent to TF32: which functions have it, for which targets, and that nothing is rounded without it."""

from __future__ import annotations

import json

import pytest
import tvm
from tvm import te, topi

from benchmarks.gpu.workloads import product
from loopwright.codegen.errors import InvalidTarget
from loopwright.codegen.functions import prim_funcs
from loopwright.codegen.gpu.tf32 import MATH, check_math, permits_tf32, with_tf32
from loopwright.codegen.math_mode import applied_math
from loopwright.codegen.program.digest import function_digest, normal_form, workload_family
from loopwright.codegen.program.lowering import bind_shapes, lower
from loopwright.codegen.program.schedule import scheduled_module
from loopwright.codegen.serialization import module_from_json, module_to_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support.gpu_programs import PROGRAMS
from tests.support.tuner_programs import mlp
from tuner.space.builtin import builtin_space

AMPERE = target_from({"kind": "cuda", "arch": "sm_80"})


def depthwise() -> tvm.tirx.PrimFunc:
    x, w = te.placeholder((1, 16, 12, 12), name="X"), te.placeholder((16, 1, 3, 3), name="W")
    return te.create_prim_func([x, w, topi.nn.depthwise_conv2d_nchw(x, w, 1, 1, 1)])


def symbolic() -> tvm.IRModule:
    return mlp(1, tvm.tirx.Var("n", "int64"))


def consenting(func: tvm.tirx.PrimFunc) -> tvm.IRModule:
    return with_tf32(normal_form(func))


def test_a_product_without_consent_has_the_digest_that_it_has_in_databases() -> None:
    func = product(232, 236, 240, "float32", "float32")
    assert function_digest(func) == "05da717b79f54049f9ea737f81526eb0"
    assert workload_family(normal_form(func)) == "d9b7baac3c08ccffe6e91112b57378b7"


@pytest.mark.parametrize("name", ["product fp32", "convolution fp32", "attention fp32"])
def test_products_and_convolutions_of_float32_become_workloads_of_their_own(name: str) -> None:
    func = PROGRAMS[name]()
    consented = consenting(func)["main"]
    assert permits_tf32(consented)
    assert function_digest(consented) != function_digest(func)
    assert workload_family(consenting(func)) != workload_family(normal_form(func))


@pytest.mark.parametrize(
    "name", ["softmax fp32", "layer norm fp32", "product fp16, sums fp32", "product int8, sums int32"]
)
def test_functions_without_products_of_float32_stay_the_workloads_that_they_are(name: str) -> None:
    func = PROGRAMS[name]()
    assert function_digest(consenting(func)["main"]) == function_digest(func)


def test_a_depthwise_convolution_has_nothing_for_tensor_cores() -> None:
    assert not permits_tf32(consenting(depthwise())["main"])


def test_consent_survives_binding_serialisation_and_lowering() -> None:
    model = module_from_json(module_to_json(with_tf32(symbolic())))
    lowered = lower(bind_shapes(model, {"n": 3}), AMPERE)
    assert any(permits_tf32(func) for _, func in prim_funcs(lowered))
    plain = lower(bind_shapes(symbolic(), {"n": 3}), AMPERE)
    assert not any(MATH in (func.attrs or {}) for _, func in prim_funcs(plain))


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ({"kind": "llvm"}, "of kind llvm"),
        ({"kind": "cuda", "arch": "sm_75"}, "sm_75"),
    ],
)
def test_targets_without_tf32_are_refused_with_what_to_do(target: dict[str, str], reason: str) -> None:
    with pytest.raises(InvalidTarget, match=f"{reason}.*leave math out"):
        check_math(consenting(PROGRAMS["product fp32"]()), target_from(target))


def test_a_module_that_says_nothing_of_math_is_for_all_targets() -> None:
    check_math(normal_form(PROGRAMS["product fp32"]()), target_from("llvm"))


def test_a_module_without_products_is_refused_as_well_where_it_consents() -> None:
    with pytest.raises(InvalidTarget, match="of kind llvm"):
        check_math(consenting(PROGRAMS["softmax fp32"]()), target_from("llvm"))


def test_a_schedule_that_rounds_to_tf32_is_refused_for_a_function_without_consent() -> None:
    func = PROGRAMS["product fp32"]()
    space = builtin_space(consenting(func), AMPERE, 1)
    accepted = (space.replay(space.traces[0], seed) for seed in range(1, 100))
    trace = json.loads(trace_to_json(next(filter(None, accepted)).trace))
    assert applied_math(trace) == "tf32"
    assert "loopwright_tf32_multiply" in scheduled_module(consenting(func), trace, AMPERE).script()
    with pytest.raises(ValueError, match="rounds factors to TF32; submit the function with math tf32"):
        scheduled_module(normal_form(func), trace, AMPERE)


def test_the_baseline_and_schedules_without_tensor_cores_are_in_float32() -> None:
    space = builtin_space(normal_form(PROGRAMS["product fp32"]()), AMPERE, 1)
    assert applied_math(None) == "fp32"
    assert [applied_math(json.loads(trace_to_json(trace))) for trace in space.traces] == ["fp32"] * len(space.traces)
