"""Traces: they survive JSON, fit one workload only, and find their intrinsics."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
import tvm
import tvm_ffi

from loopwright.codegen.program.defaults import default_schedule
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.program.schedule import apply_trace_json, scheduled_function, with_default_schedules
from loopwright.codegen.serialization import module_from_json, trace_to_json
from loopwright.codegen.target import target_from
from tests.support.tuner_programs import LLVM, add_one, candidate, elementwise, matmul
from tuner.space.builtin import builtin_space


def test_a_trace_survives_json() -> None:
    mod = module_from_json(matmul().module_json)
    space = builtin_space(mod, target_from(LLVM), seed=1)
    for seed, trace in enumerate(space.traces, start=1):
        schedule = space.replay(trace, seed)
        assert schedule is not None
        text = trace_to_json(schedule.trace)
        again = apply_trace_json(mod, text, seed=99)
        assert tvm_ffi.structural_equal(again.mod, schedule.mod)
        assert trace_to_json(again.trace) == text
        assert json.loads(text)[1], "a point of the space has its decisions"


def test_a_trace_of_another_workload_is_refused() -> None:
    trace = candidate(matmul(), seed=1).trace_json
    assert trace is not None
    with pytest.raises((RuntimeError, ValueError)):
        apply_trace_json(module_from_json(elementwise().module_json), trace)


def test_a_function_keeps_its_name_and_its_place_in_fusion() -> None:
    func = add_one("mine").with_attr("op_pattern", 0)
    scheduled = scheduled_function(func, normal_form(func), [[], []], target_from(LLVM))
    assert str(scheduled.attrs["global_symbol"]) == "mine"
    assert int(scheduled.attrs["op_pattern"]) == 0
    assert scheduled.attrs["tirx.is_scheduled"]
    private = func.without_attr("global_symbol")
    assert "global_symbol" not in scheduled_function(private, normal_form(func), [[], []], target_from(LLVM)).attrs


@pytest.mark.parametrize("trace", [[[], []], None], ids=["tuned", "baseline"])
def test_what_runs_promises_what_was_certified_unless_its_buffers_may_overlap(trace: list[Any] | None) -> None:
    func = add_one("mine").without_attr("tirx.noalias")
    for promise, expected in ((None, True), (True, True), (False, None)):
        written = func if promise is None else func.with_attr("tirx.noalias", promise)
        scheduled = scheduled_function(written, normal_form(written), trace, target_from(LLVM))
        assert scheduled.attrs.get("tirx.noalias") is expected


def test_a_workload_stays_as_it_is_when_its_baseline_is_made() -> None:
    mod = module_from_json(matmul().module_json)
    before = mod.script()
    baseline = default_schedule(mod, target_from({"kind": "cuda", "arch": "sm_80"}))
    assert "threadIdx.x" in baseline.script()
    assert mod.script() == before


def test_on_a_gpu_functions_without_a_schedule_get_threads_and_no_promise() -> None:
    mod = tvm.IRModule({"mine": add_one("mine").without_attr("tirx.noalias")})
    before = mod.script()
    scheduled = with_default_schedules(mod, target_from({"kind": "cuda", "arch": "sm_80"}))
    assert "threadIdx.x" in scheduled.script()
    assert "tirx.noalias" not in scheduled["mine"].attrs
    assert tvm_ffi.structural_equal(with_default_schedules(mod, target_from(LLVM)), mod)
    assert mod.script() == before


@pytest.mark.whole
def test_intrinsics_of_one_vendor_are_loaded_and_the_rest_can_still_be() -> None:
    code = """
import importlib.util
import sys
from tvm.s_tir import TensorIntrin
from tvm.target import Target
from loopwright.codegen.program.intrinsics import load_intrinsics
load_intrinsics(Target({"kind": "llvm", "mtriple": "x86_64-linux-gnu"}))
assert TensorIntrin.get("dot_16x4_vnni", allow_missing=True) is not None
assert "tvm.s_tir.tensor_intrin.cuda" not in sys.modules
assert "tvm.s_tir.tensor_intrin" not in sys.modules
# TVM's own package, whose import takes over ten seconds, is what anybody else would import now.
assert importlib.util.find_spec("tvm.s_tir.tensor_intrin").origin.endswith("__init__.py")
load_intrinsics(Target({"kind": "llvm", "mtriple": "aarch64-linux-gnu"}))
assert TensorIntrin.get("dot_4x4_i8i8s32_neon", allow_missing=True) is not None
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
