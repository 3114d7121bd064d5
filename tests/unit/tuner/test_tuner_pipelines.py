"""Products on tensor cores have sketches with software pipelines, and no program of theirs that TVM cannot lower."""

from __future__ import annotations

import pytest
import tvm
from tvm import te, topi
from tvm.error import InternalError

from benchmarks.gpu.workloads import product
from loopwright.codegen.gpu.async_copy import ASYNC_STAGES
from loopwright.codegen.program.build import compile_module
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.rule import RULE
from loopwright.codegen.target import target_from
from tuner.space import tensor_core
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from tuner.space.tensor_core import has_odd_pipeline

TARGET = target_from({"kind": "cuda", "arch": "sm_80"})


def workload(dtype: str, sums: str) -> tvm.IRModule:
    return normal_form(product(256, 256, 256, dtype, sums))


def on_tensor_cores(space: DesignSpace) -> list[tvm.s_tir.schedule.Trace]:
    return [trace for trace in space.traces if "meta_schedule.auto_tensorize" in str(trace)]


def pipelined(space: DesignSpace) -> list[tvm.s_tir.schedule.Trace]:
    """Return the sketches with pipelines and tensor cores."""
    return [trace for trace in on_tensor_cores(space) if "software_pipeline_stage" in str(trace)]


@pytest.mark.parametrize(
    ("dtype", "sums"),
    [
        pytest.param("float16", "float32", marks=pytest.mark.whole),
        pytest.param("float16", "float16", marks=pytest.mark.whole),
        ("bfloat16", "float32"),
        pytest.param("int8", "int32", marks=pytest.mark.whole),
    ],
)
def test_products_on_tensor_cores_have_sketches_with_and_without_pipelines(dtype: str, sums: str) -> None:
    space = builtin_space(workload(dtype, sums), TARGET, 1)
    ahead = [trace for trace in pipelined(space) if ASYNC_STAGES in str(trace)]
    assert 0 < len(ahead) == len(pipelined(space)) / 2 == len(on_tensor_cores(space)) / 3


def test_gpus_without_asynchronous_copies_have_only_tvms_pipelines() -> None:
    older = builtin_space(workload("float16", "float32"), target_from({"kind": "cuda", "arch": "sm_75"}), 1)
    assert pipelined(older)
    assert not any(ASYNC_STAGES in str(trace) for trace in older.traces)


def test_functions_without_tensor_cores_and_the_stock_space_have_no_pipelines() -> None:
    x = te.placeholder((64, 64), name="X")
    assert not pipelined(builtin_space(normal_form(te.create_prim_func([x, topi.nn.softmax(x)])), TARGET, 1))
    product_fp32 = workload("float32", "float32")
    of_tvm = [trace for trace in builtin_space(product_fp32, TARGET, 1).traces if RULE not in str(trace)]
    assert len(of_tvm) == len(stock_space(product_fp32, TARGET, 1).traces)
    assert not pipelined(stock_space(workload("float16", "float32"), TARGET, 1))


def test_the_space_has_no_pipeline_of_an_odd_number_of_iterations_within_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """TVM lowers only even ones."""
    space = builtin_space(workload("float16", "float32"), TARGET, 1)
    traces = pipelined(space)
    draws = [(traces[seed % len(traces)], seed) for seed in range(1, 60)]
    with monkeypatch.context() as patched:
        patched.setattr(tensor_core, "has_odd_pipeline", lambda mod: False)
        found: dict[bool, tuple[tvm.s_tir.schedule.Trace, int, tvm.IRModule]] = {}
        for trace, seed in draws:
            schedule = space.replay(trace, seed)
            if schedule is not None:
                found.setdefault(has_odd_pipeline(schedule.mod), (trace, seed, schedule.mod))
            if len(found) == 2:
                break
    (trace, seed, even), (odd_trace, odd_seed, odd) = found[False], found[True]
    assert space.replay(trace, seed) is not None
    assert space.replay(odd_trace, odd_seed) is None
    compile_module(even, TARGET)
    with pytest.raises(InternalError, match="fragment_info_"):
        compile_module(odd, TARGET)
