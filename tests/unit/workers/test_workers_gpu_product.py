"""The GPU rule for products without tensor cores: its programs compute the same, and become machine code."""

from __future__ import annotations

import pytest
from tvm import te, topi
from tvm.s_tir import Schedule

from loopwright.codegen.gpu.async_copy import ASYNC_STAGES
from loopwright.codegen.rule import RULE
from loopwright.codegen.rules.analysis.program import AnalysedProgram
from loopwright.codegen.rules.analysis.rule import MachineLimits
from loopwright.codegen.rules.gpu.product import GpuProduct
from loopwright.codegen.target import target_from
from tests.support.cases import cases
from tests.support.gpu_products import product
from tests.support.gpu_rules import TARGET, check_machine_code, check_rule, programs_of, source_of
from tests.support.rule_programs import function, sketches_of
from tuner.space.builtin import builtin_space

PRODUCTS = {
    "in order": product(32, 64, 1024, transposed=False, epilogue=True),
    "transposed": product(48, 40, 512),
    "rows of a prime": product(37, 64, 512, transposed=False),
    "a depth that is odd but for a factor of 8": product(16, 24, 8 * 73),
    "one row": product(1, 128, 1024, transposed=False, epilogue=True),
    "batched": product(12, 24, 512, batches=(2,), epilogue=True),
    "fp16, sums fp32": product(16, 64, 512, dtype="float16", epilogue=True),
    "fp16, sums fp16": product(16, 32, 512, dtype="float16", sums="float16", transposed=False),
    "bf16, sums fp32": product(32, 32, 512, dtype="bfloat16", transposed=False),
    "a short depth": product(64, 96, 40, transposed=False, epilogue=True),
    "a short depth, transposed": product(96, 64, 40, epilogue=True),
    "a depth of a prime": product(32, 64, 67),
}
TILED = cases(PRODUCTS, "rows of a prime")


@pytest.mark.parametrize(("name", "every"), TILED)
def test_a_product_by_tiles_computes_the_same(name: str, every: bool) -> None:
    check_rule(PRODUCTS[name], "gpu_product", every)


@pytest.mark.parametrize(("name", "every"), cases(PRODUCTS))
def test_a_product_by_tiles_becomes_machine_code(name: str, every: bool) -> None:
    check_machine_code(PRODUCTS[name], "gpu_product", every)


def test_a_pipelined_tile_is_copied_while_another_one_is_multiplied() -> None:
    copies = [source_of(PRODUCTS["in order"], schedule).count("cp.async.cg.shared") for schedule in _pipelined()]
    assert min(copies) > 0


def test_gpus_without_asynchronous_copies_have_no_pipelines() -> None:
    older = MachineLimits.of(target_from({"kind": "cuda", "arch": "sm_75"}))
    stages = {knob.name: knob.values for knob in GpuProduct().knobs(_program("in order"), older)}["stages"]
    assert stages == (1,)


@pytest.mark.whole
def test_a_product_that_the_rule_does_not_fit_is_left_to_tvm() -> None:
    a, b = te.placeholder((32, 1024), name="A"), te.placeholder((1024, 32), name="B")
    c = topi.nn.matmul(a, b)
    unlike = {
        "fp16, enough tiles": product(1024, 512, 1024, dtype="float16"),
        "fp16, a short depth": product(32, 64, 256, dtype="float16"),
        "fp16, a depth of a prime": product(32, 64, 1021, dtype="float16"),
        "rows and columns of primes": product(37, 41, 1024),
        "bytes": product(32, 64, 1024, dtype="int8", sums="int32"),
        "a transposed result": function(a, b, topi.transpose(c)),
    }
    assert [n for n, mod in unlike.items() if sketches_of(builtin_space(mod, TARGET, 1), RULE + "gpu_product")] == []


def _pipelined() -> list[Schedule]:
    schedules = programs_of(PRODUCTS["in order"], "gpu_product", 0)
    return [schedule for schedule in schedules if ASYNC_STAGES in str(schedule.trace)]


def _program(name: str) -> AnalysedProgram:
    program = AnalysedProgram.of(PRODUCTS[name])
    assert program is not None
    return program
