"""The GPU rule for products of a long depth: its programs compute the same in two kernels, and become machine code."""

from __future__ import annotations

import pytest
from tvm import te, topi

from loopwright.codegen.rule import KNOB, RULE
from tests.support.gpu_products import product
from tests.support.gpu_rules import ARCH, TARGET, check_kernels, kernels, programs_of, source_of
from tests.support.nvrtc import cubin
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
}
named = pytest.mark.parametrize("name", PRODUCTS)


@named
def test_a_product_whose_depth_is_split_computes_the_same(name: str) -> None:
    for schedule in programs_of(PRODUCTS[name], "gpu_split_k", 5):
        assert RULE not in schedule.mod.script()
        assert KNOB not in schedule.mod.script()
        check_kernels(PRODUCTS[name], schedule)


@named
def test_a_product_whose_depth_is_split_becomes_the_machine_code_of_two_kernels(name: str) -> None:
    schedules = programs_of(PRODUCTS[name], "gpu_split_k", 1)
    for schedule in (schedules[0], schedules[-1]):
        source = source_of(PRODUCTS[name], schedule)
        assert kernels(source) == 2
        assert "atomic" not in source
        assert cubin(source, ARCH).startswith(b"\x7fELF")


def test_a_product_that_the_rule_does_not_split_is_left_to_tvm() -> None:
    a, b = te.placeholder((32, 1024), name="A"), te.placeholder((1024, 32), name="B")
    c = topi.nn.matmul(a, b)
    unlike = {
        "enough tiles": product(1024, 512, 1024),
        "a short depth": product(32, 64, 256),
        "a depth of a prime": product(32, 64, 1021),
        "rows and columns of primes": product(37, 41, 1024),
        "bytes": product(32, 64, 1024, dtype="int8", sums="int32"),
        "a transposed result": function(a, b, topi.transpose(c)),
    }
    assert [n for n, mod in unlike.items() if sketches_of(builtin_space(mod, TARGET, 1), RULE + "gpu_split_k")] == []
