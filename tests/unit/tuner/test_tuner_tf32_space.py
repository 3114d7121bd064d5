"""Functions that permit TF32 have sketches for tensor cores, beside those that they have without."""

from __future__ import annotations

import json

import pytest
from tvm import te, topi

from loopwright.codegen.gpu import tf32_tensor_core
from loopwright.codegen.gpu.async_copy import ASYNC_STAGES
from loopwright.codegen.gpu.tf32 import with_tf32
from loopwright.codegen.program.digest import normal_form
from loopwright.codegen.serialization import trace_to_json
from loopwright.codegen.target import target_from, with_assumed_attributes
from tests.support.gpu_programs import PROGRAMS
from tests.support.gpu_rules import kernels
from tests.support.rule_programs import function
from tuner.space.builtin import builtin_space, stock_space
from tuner.space.design_space import DesignSpace
from workers.device import cuda

TARGET = target_from({"kind": "cuda", "arch": "sm_80"})


def space(name: str, *, consents: bool) -> DesignSpace:
    mod = normal_form(PROGRAMS[name]())
    return builtin_space(with_tf32(mod) if consents else mod, TARGET, 1)


def instructions(space: DesignSpace, kind: str) -> list[list[list[object]]]:
    """Return the attributes of the instructions of a kind, of each trace that has any."""
    traces = [json.loads(trace_to_json(trace))[0] for trace in space.traces]
    of_each = [[each[2] for each in trace if each[0] == kind] for trace in traces]
    return [found for found in of_each if found]


@pytest.mark.parametrize("name", ["product fp32", pytest.param("convolution fp32", marks=pytest.mark.whole)])
def test_consent_adds_sketches_whose_factors_are_in_registers(name: str) -> None:
    with_consent, without = space(name, consents=True), space(name, consents=False)
    assert len(with_consent.traces) == len(without.traces) + 4
    assert [{tuple(each) for each in trace} for trace in instructions(with_consent, "SetScope")] == [
        {(0, tf32_tensor_core.FRAGMENT)}
    ] * 4
    ahead = [[trace for trace in each.traces if ASYNC_STAGES in str(trace)] for each in (with_consent, without)]
    assert len(ahead[0]) == len(ahead[1]) + 2
    assert not any("wmma" in str(trace) for trace in without.traces)


def test_rows_are_padded_by_what_their_fragments_need() -> None:
    padding = instructions(space("product fp32", consents=True), "StorageAlign")
    in_rows, in_columns, *copied_ahead = padding
    assert copied_ahead == [in_rows, in_columns]
    assert in_rows == [[0, -2, 32, 4], [0, -2, 32, 8]]
    assert in_columns == [[0, -2, 32, 4], [0, -2, 32, 4]]


@pytest.mark.whole
def test_what_follows_a_product_is_computed_in_its_kernel() -> None:
    a, b = te.placeholder((256, 512), name="A"), te.placeholder((512, 256), name="B")
    dense = topi.nn.matmul(a, b)
    gelu = te.compute(dense.shape, lambda i, j: dense[i, j] * 0.5 * (1.0 + te.erf(dense[i, j] * 0.5**0.5)), name="gelu")
    silu = topi.multiply(gelu, topi.sigmoid(gelu))
    consents = builtin_space(with_tf32(function(a, b, silu)), TARGET, 1)
    sketches = [trace for trace in consents.traces if "tf32" in str(trace)]
    assert len(sketches) == 4
    for sketch in sketches:
        schedule = next(filter(None, (consents.replay(sketch, seed) for seed in range(1, 50))))
        assert kernels(cuda.source(schedule.mod, with_assumed_attributes(TARGET))) == 1


@pytest.mark.parametrize("name", [pytest.param("softmax fp32", marks=pytest.mark.whole), "attention fp32"])
def test_functions_whose_products_do_not_fit_keep_their_sketches(name: str) -> None:
    assert len(space(name, consents=True).traces) == len(space(name, consents=False).traces)


def test_the_stock_space_has_no_tf32() -> None:
    stock = stock_space(with_tf32(normal_form(PROGRAMS["product fp32"]())), TARGET, 1)
    assert not any("tf32" in str(trace) for trace in stock.traces)
