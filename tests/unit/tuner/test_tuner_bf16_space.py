"""Products of bfloat16 have the space of float16, on GPUs whose tensor cores take them."""

from __future__ import annotations

import json

import pytest

from benchmarks.gpu.workloads import product
from loopwright.codegen.rule import RULE
from loopwright.codegen.serialization import module_from_json
from loopwright.codegen.target import target_from
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from tuner.workload import make_workload


def space(dtype: str, arch: str, *, stock: bool = False) -> DesignSpace:
    mod = module_from_json(make_workload(product(1024, 1024, 1024, dtype, "float32"), "product").module_json)
    make = stock_space if stock else builtin_space
    return make(mod, target_from({"kind": "cuda", "arch": arch}), 1)


def instructions(space: DesignSpace, kind: str) -> list[list[object]]:
    """Return the attributes of the instructions of a kind, of each trace of TVM's rules."""
    traces = [trace.as_json()[0] for trace in space.traces if RULE not in str(trace)]
    return [[each[2] for each in json.loads(json.dumps(trace, default=str)) if each[0] == kind] for trace in traces]


@pytest.mark.whole
def test_bf16_has_as_many_sketches_as_fp16_and_the_same_padding() -> None:
    bf16, fp16 = space("bfloat16", "sm_80"), space("float16", "sm_80")
    assert len(bf16.traces) == len(fp16.traces)
    padding = instructions(bf16, "StorageAlign")
    assert padding == instructions(fp16, "StorageAlign")
    assert all(len(of_one_trace) == 2 for of_one_trace in padding)


@pytest.mark.parametrize(("arch", "stock"), [("sm_75", False), ("sm_80", True)])
def test_older_gpus_and_the_stock_space_have_no_tensor_cores_for_bf16(arch: str, stock: bool) -> None:
    traces = space("bfloat16", arch, stock=stock).traces
    assert traces
    assert not any("wmma" in str(trace) for trace in traces)
